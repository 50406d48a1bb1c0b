"""``python -m tests.conformance FILE...``: compares vector files of any known format with our code.

Exit codes: 0 no mismatch; 1 mismatches; 2 no file, a missing file, an unknown format or files
without a single fact.
"""

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.conformance import (
    allocation,
    languages,
    producer_vectors,
    replay_vectors,
    start_offset,
    upstream_assertions,
)

Compare = Callable[[Path], tuple[int, list[str]]]

SHOWN = 20  # mismatches printed per file
USAGE = 'usage: python -m tests.conformance FILE... (make conformance VECTORS="FILE...")'
KNOWN = (
    "allocation TSV, start-offset TSV, producer-duration TSV, replay JSONL, producer JSONL "
    "(publish, select, latency, retry), language JSONL, upstream-assertions JSONL"
)
COMPARE_BY_COLUMNS: dict[tuple[str, ...], Compare] = {
    allocation.COLUMNS: allocation.compare,
    start_offset.COLUMNS: start_offset.compare,
    producer_vectors.DURATION_COLUMNS: producer_vectors.compare_durations,
}


class UnknownFormatError(Exception):
    """The file is none of the formats compared here."""


def recognise(path: Path) -> Compare:
    """The comparison for a file, by its first line alone: the name says nothing."""
    try:
        with path.open(encoding="utf-8", newline="\n") as lines:
            first = next(lines, "").rstrip("\n")
    except OSError as error:
        raise OSError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        raise UnknownFormatError(f"{path}: unknown format: not UTF-8 text") from None
    by_columns = COMPARE_BY_COLUMNS.get(tuple(first.split("\t")))
    if by_columns is not None:
        return by_columns
    try:
        value = json.loads(first)
    except json.JSONDecodeError:
        value = None
    if upstream_assertions.is_head(value):
        return upstream_assertions.compare
    if isinstance(value, dict) and value.keys() >= languages.KEYS:
        return languages.compare
    if isinstance(value, dict) and value.keys() >= replay_vectors.KEYS:
        return replay_vectors.compare
    if isinstance(value, dict) and producer_vectors.compares(value) is not None:
        return producer_vectors.compare
    raise UnknownFormatError(f"{path}: unknown format (first line {first[:60]!r}); known: {KNOWN}")


def main(arguments: Sequence[str]) -> int:
    """Compares each file, after recognising all of them; returns the exit code."""
    if not arguments:
        print(f"no vector file given\n{USAGE}", file=sys.stderr)
        return 2
    paths = [Path(argument) for argument in arguments]
    try:
        comparisons = [(path, recognise(path)) for path in paths]
    except (OSError, UnknownFormatError) as error:
        print(error, file=sys.stderr)
        return 2
    facts = mismatches = 0
    for path, compare in comparisons:
        seen, wrong = compare(path)
        print(f"{path}: {seen} facts, {len(wrong)} mismatches")
        for description in wrong[:SHOWN]:
            print(f"  {description}")
        if len(wrong) > SHOWN:
            print(f"  ... and {len(wrong) - SHOWN} more")
        facts += seen
        mismatches += len(wrong)
    print(f"{facts} facts, {mismatches} mismatches")
    if facts == 0 and mismatches == 0:
        print("no facts: nothing was compared", file=sys.stderr)
        return 2
    return 1 if mismatches else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

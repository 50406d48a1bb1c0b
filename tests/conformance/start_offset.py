"""Compares compute_pull_from_where with a file of start-offset vectors: one row, one fact.

A row agrees when both its results do: with exceptions and without.
"""

from collections.abc import Callable
from pathlib import Path

from rebalance_core.model.errors import RebalanceError, StartOffsetError
from rebalance_core.model.queue import retry_topic
from rebalance_core.protocol.start_offset import (
    MAX_OFFSET_FAILED,
    REFUSED_MODE,
    SEARCH_OFFSET_FAILED,
    compute_pull_from_where,
    compute_pull_from_where_no_exception,
)

COLUMNS = (
    "version",
    "consumer",
    "consume_from_where",
    "topic_kind",
    "stored_offset",
    "max_offset",
    "timestamp_offset",
    "result",
    "result_no_exception",
)
TOPICS = {"normal": "T", "retry": retry_topic("G")}
LOOK_UP_FAILED = (MAX_OFFSET_FAILED, SEARCH_OFFSET_FAILED)
STUB_ERROR = "stub admin error"  # what the recorder's network stub answers to such a look-up


def compare(path: Path) -> tuple[int, list[str]]:
    """(facts, descriptions of the mismatches) of a start-offset TSV.

    Rows that cannot be read are mismatches; a file with other columns raises ValueError.
    """
    facts, mismatches = 0, []
    with path.open(encoding="utf-8", newline="\n") as lines:
        header = tuple(next(lines, "").rstrip("\n").split("\t"))
        if header != COLUMNS:
            raise ValueError(f"{path}: columns {header}, expected {COLUMNS}")
        for number, line in enumerate(lines, start=2):
            facts += 1
            cells = line.rstrip("\n").split("\t")
            expected = cells[-2:]
            try:
                actual = _results(dict(zip(COLUMNS, cells, strict=True)))
            except (RebalanceError, ValueError, LookupError) as error:
                actual = [f"cannot be computed: {type(error).__name__}: {error}"]
            if actual != expected:
                mismatches.append(
                    f"{path.name}:{number}: {cells[:-2]}: expected {expected}, got {actual}"
                )
    return facts, mismatches


def _results(row: dict[str, str]) -> list[str]:
    return [
        _text(compute_pull_from_where, row),
        _text(compute_pull_from_where_no_exception, row),
    ]


def _text(rule: Callable[..., int], row: dict[str, str]) -> str:
    """The result column as our code has it."""
    try:
        offset = rule(
            consumer_type=row["consumer"].upper(),
            consume_from_where=row["consume_from_where"],
            topic=TOPICS[row["topic_kind"]],
            stored_offset=int(row["stored_offset"]),
            max_offset=_looked_up(row["max_offset"]),
            timestamp_offset=_looked_up(row["timestamp_offset"]),
            version=row["version"],
        )
    except StartOffsetError as error:
        message = STUB_ERROR if str(error) in LOOK_UP_FAILED else str(error)
        java_class = "RuntimeException" if message == REFUSED_MODE else "MQClientException"
        return f"!{java_class}: {message}"
    return str(offset)


def _looked_up(cell: str) -> int | None:
    return None if cell == "error" else int(cell)

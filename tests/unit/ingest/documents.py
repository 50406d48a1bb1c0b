"""The files of the recordings by their kind, and what their parsers make of them."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from rebalance_core.ingest.fact import Fact, Stated, Unread
from rebalance_core.ingest.parse.command_output import read_output
from rebalance_core.ingest.parse.json_tables import data_version
from tests.tree import TREE

DATA = TREE / "tests" / "recordings" / "data"

Parse = Callable[[str, str], list[Fact | Unread]]


def collected(pattern: str) -> Iterator[tuple[str, str]]:
    """Name and text of the collected files whose path inside the collection matches."""
    for path in sorted(DATA.glob("*/collection/**/*")):
        recording, _, *parts = path.relative_to(DATA).parts
        name = "/".join(parts)
        if re.search(pattern, name) and path.is_file():
            yield f"{recording}/{name}", path.read_bytes().decode()


def documented(function: Callable[..., Any]) -> dict[str, str]:
    """What the docstring of a parser says of each kind of its facts."""
    listed = (function.__doc__ or "").partition("    Facts:\n")[2].partition("\n\n")[0]
    return dict(re.findall(r"^ {8}(\w+): ((?:.|\n {12})*)", listed, re.MULTILINE))


def parse_all(pattern: str, parse: Parse, *others: Callable[..., Any]) -> Counter[str]:
    """How many facts of each kind the collected files hold; asserts that all of it is read.

    Every field of every fact must be named where the docstring of the parser, or of one of the
    others that it calls, tells of its kind.
    """
    counts: Counter[str] = Counter()
    kinds: dict[str, str] = {}
    functions: list[Callable[..., Any]] = [parse, *others, read_output, data_version]
    for function in functions:
        kinds |= documented(function)
    for name, text in collected(pattern):
        for fact in parse(text, name):
            assert isinstance(fact, Stated), fact
            undocumented = set(fact.values) - set(re.findall(r"\w+", kinds[fact.kind]))
            assert not undocumented, f"{fact.kind} does not say what {undocumented} is"
            assert fact.source.startswith(name)
            counts[fact.kind] += 1
        counts["files"] += 1
    return counts


def facts(results: list[Fact | Unread], kind: str) -> list[dict[str, Any]]:
    """The values of the facts of one kind, in order."""
    return [dict(fact.values) for fact in results if isinstance(fact, Stated) and fact.kind == kind]


def kinds(results: list[Fact | Unread]) -> list[str]:
    """The kinds of the facts, in order; asserts that all of it was read."""
    assert all(isinstance(result, Stated) for result in results)
    return [result.kind for result in results if isinstance(result, Stated)]


def messages(results: list[Fact | Unread]) -> list[str]:
    """Why what was not read was refused, in order."""
    return [result.message for result in results if isinstance(result, Unread)]


def codes(results: list[Fact | Unread]) -> list[str]:
    """The codes of what was not read, in order."""
    return [result.code for result in results if isinstance(result, Unread)]

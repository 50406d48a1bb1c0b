"""Rows that lost characters without padding to show it, because blanks were squeezed or became
tabs.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

from rebalance_core.ingest.fact import (
    UNPARSABLE_LINE,
    Fact,
    Stated,
    Unread,
    Unreadable,
    shown,
    unread,
)
from rebalance_core.ingest.parse.command_output import Line

MOST_NAMES = 1_000
"""Maximum number of names in a column; comparing this many with each other takes a second."""


def lacks_a_piece(text: str, other: str) -> bool:
    """Return True if the text is the other one without a contiguous run of characters.

    >>> lacks_a_piece("3.0.31@1#2", "10.3.0.31@1#2"), lacks_a_piece("10.31@1#2", "10.3.0.31@1#2")
    (True, True)
    >>> lacks_a_piece("10.3.0.31@1#2", "10.3.0.32@1#2")
    False
    """
    if len(text) >= len(other):
        return False
    same = 0
    while same < len(text) and text[same] == other[same]:
        same += 1
    return text.endswith(other[len(other) - len(text) + same :])


def whole_of(text: str, others: Collection[str]) -> str:
    """Return the first of the others of which the text is a torn form, or an empty string."""
    return min((other for other in others if lacks_a_piece(text, other)), default="")


def refused_rows(
    results: Iterable[Fact | Unread], kind: str, names: Sequence[str], lines: Iterable[Line]
) -> list[Fact | Unread]:
    """Return the results of a table without padding; refuse rows whose names lost characters.

    Such a name appears in a single row and lacks a piece of a name in other rows, and the table has
    no row with that name in its place.

    Args:
        results: the table's results.
        kind: the kind of its facts, each with a ``queue_id``.
        names: the fields before it that make up the row's key.
        lines: the lines of the output.
    """
    results = list(results)
    places = [n for n, p in enumerate(results) if isinstance(p, Stated) and p.kind == kind]
    rows = [results[n] for n in places]
    keys = [
        tuple(str(row.values[name]) for name in (*names, "queue_id"))
        for row in rows
        if isinstance(row, Stated)
    ]
    texts = {line.source: line.text for line in lines}
    for number, name in _torn(keys, len(names)):
        source = results[places[number]].source
        refusal = Unreadable(UNPARSABLE_LINE, f"{shown(name)} is not a whole name: the row is torn")
        results[places[number]] = unread(source, texts.get(source, ""), refusal)
    return results


def _torn(keys: Sequence[tuple[str, ...]], columns: int) -> Iterator[tuple[int, str]]:
    """Yield the index of each torn row among the keys, with the name that lost characters."""
    present = set(keys)
    counts = [Counter(key[column] for key in keys) for column in range(columns)]
    for place, key in enumerate(keys):
        for column, count in enumerate(counts):
            name = key[column]
            if count[name] > 1 or len(count) > MOST_NAMES:
                continue
            wholes = (other for other in count if lacks_a_piece(name, other))
            if any((*key[:column], other, *key[column + 1 :]) not in present for other in wholes):
                yield place, name
                break

"""Paragraphs of every explanation: a list with places, a reason with its formula."""

from collections.abc import Collection, Iterator, Sequence
from itertools import groupby

from rebalance_core.explain.reason import Reason

LONGEST_LIST = 40
AROUND = 2
"""Entries shown on either side of one that matters."""


def truncated(entries: Sequence[str], marked: Collection[int]) -> Iterator[str]:
    """The entries with their places; of a long list its beginning and what is marked."""
    shown = set(range(len(entries)))
    if len(entries) > LONGEST_LIST:
        near = sorted({i + d for i in marked for d in range(-AROUND, AROUND + 1)} & shown)
        near = near[:LONGEST_LIST]
        shown = {*range(LONGEST_LIST - len(near)), *near}
    for is_shown, run in groupby(range(len(entries)), key=shown.__contains__):
        places = list(run)
        if not is_shown:
            yield f"    … and {len(places):,} more"
            continue
        for place in places:
            sign = ">" if place in marked else " "
            yield f"  {sign} [{place}] {entries[place]}"


def reason_lines(reason: Reason) -> Iterator[str]:
    """The sentence, and the formula below it."""
    yield f"  {reason.text}"
    if reason.formula is not None:
        yield from (f"    {line}" for line in reason.formula.lines)

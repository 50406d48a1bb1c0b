"""Finds the periods that are simulated without a break because their changes are close together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

from rebalance_core.timing.group_timeline import GroupTimeline


@dataclass(frozen=True, slots=True)
class ChangeWindow:
    """Changes whose windows meet or overlap.

    Attributes:
        begin_us: where the simulation begins; clients are at rest until then.
        end_us: where the simulation ends; later passes are not simulated.
        changes: numbers of the changes in it.
    """

    begin_us: int
    end_us: int
    changes: range


def stretches_of(timeline: GroupTimeline) -> Iterator[ChangeWindow]:
    """Yield the stretches of a timeline, in order and without overlaps."""
    earliest = [change.earliest_us for change in timeline.changes]
    # a change may take effect before changes that are logged earlier
    soonest = list(accumulate(reversed(earliest), min))[::-1]
    first = 0
    for number, change in enumerate(timeline.changes):
        if number + 1 < len(soonest) and soonest[number + 1] <= change.end_us:
            continue
        yield ChangeWindow(soonest[first], change.end_us, range(first, number + 1))
        first = number + 1

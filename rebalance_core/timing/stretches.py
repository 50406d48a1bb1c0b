"""Periods that are simulated without a break: changes that are close together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

from rebalance_core.timing.group_timeline import GroupTimeline


@dataclass(frozen=True, slots=True)
class ChangeWindow:
    """Changes whose windows touch.

    Attributes:
        begin_us: followed from here, exactly; before it clients were at rest.
        end_us: to here; a pass that begins later is not followed.
        changes: numbers of the changes in it.
    """

    begin_us: int
    end_us: int
    changes: range


def stretches_of(timeline: GroupTimeline) -> Iterator[ChangeWindow]:
    """Yield the stretches of a timeline, in order and without overlaps."""
    earliest = [change.earliest_us for change in timeline.changes]
    # a change may have effects before changes that are logged before it
    soonest = list(accumulate(reversed(earliest), min))[::-1]
    first = 0
    for number, change in enumerate(timeline.changes):
        if number + 1 < len(soonest) and soonest[number + 1] <= change.end_us:
            continue
        yield ChangeWindow(soonest[first], change.end_us, range(first, number + 1))
        first = number + 1

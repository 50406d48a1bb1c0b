"""Stretches cut at their changes, so that no part has more operations than it must."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rebalance_core.clockwork.options import SECOND_US
from rebalance_core.clockwork.script import Script
from rebalance_core.clockwork.stretches import stretches_of

SHORTEST_US = 5 * SECOND_US
"""Changes that lie closer together are played as one."""
LOOK_BACK_US = 5 * SECOND_US
"""Longer than a notice is under way and waits for the end of a pass and for the minimum."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A time that is simulated at once.

    Attributes:
        begin_us: passes that begin from here on.
        end_us: and before.
        changes: numbers of the changes that begin in it.
        after_gap: nothing was followed just before it.
        is_first: nothing was followed before it at all.
    """

    begin_us: int
    end_us: int
    changes: range
    after_gap: bool
    is_first: bool

    @property
    def since_us(self) -> int:
        """Operations from here on may wake somebody in it."""
        return self.begin_us - LOOK_BACK_US


def segments_of(script: Script) -> Iterator[Segment]:
    """The segments of a script, in order; those of one stretch touch."""
    for stretch in stretches_of(script):
        first, begin_us = stretch.changes.start, stretch.begin_us
        for number in stretch.changes[1:]:
            cut_us = script.changes[number].begin_us
            if cut_us - begin_us >= SHORTEST_US:
                yield _segment(begin_us, cut_us, range(first, number), stretch.begin_us)
                first, begin_us = number, cut_us
        last = range(first, stretch.changes.stop)
        yield _segment(begin_us, stretch.end_us, last, stretch.begin_us)


def _segment(begin_us: int, end_us: int, changes: range, stretch_begin_us: int) -> Segment:
    after_gap = begin_us == stretch_begin_us
    return Segment(begin_us, end_us, changes, after_gap, after_gap and changes.start == 0)

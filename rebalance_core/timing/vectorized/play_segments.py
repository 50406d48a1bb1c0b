"""Cuts a timeline into segments at its changes, so that each has few operations."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from rebalance_core.model.times import REBALANCE_MIN_INTERVAL_MS
from rebalance_core.timing.group_timeline import GroupTimeline
from rebalance_core.timing.options import MS_US, SECOND_US, ClockOptions
from rebalance_core.timing.pass_costs import longest_requests_us
from rebalance_core.timing.stretches import stretches_of
from rebalance_core.timing.timer_periods import NEVER
from rebalance_core.timing.vectorized.futures import longest_pass_us, longest_timeouts_us

SHORTEST_US = 15 * SECOND_US
"""Changes that are closer together are played as a unit."""
LOOK_BACK_US = 5 * SECOND_US
"""Longer than it takes any notice to arrive and then to wait for a pass to end and the minimum
interval to elapse, if no host is lost.
"""


@dataclass(frozen=True, slots=True)
class PlaySegment:
    """A period that is simulated at once.

    Attributes:
        begin_us: its passes begin at or after this.
        end_us: its passes begin before this.
        asks_until_us: running passes that end before this end in it; later ones end in the next
            segment.
        since_us: operations at or after this may wake a member in it.
        changes: numbers of the changes that begin in it.
        after_gap: whether the time just before it is not simulated.
        before_gap: whether the time just after it is not simulated.
        is_first: whether nothing before it is simulated.
    """

    begin_us: int
    end_us: int
    asks_until_us: int
    since_us: int
    changes: range
    after_gap: bool
    before_gap: bool
    is_first: bool


def segments_of(timeline: GroupTimeline, options: ClockOptions) -> Iterator[PlaySegment]:
    """Yield the segments of a timeline in order; within a simulated stretch there is no time
    between them.
    """
    longest_ms = max(
        (lifetime.intervals.min_interval_ms for lifetime in timeline.lifetimes), default=0
    )
    over_us = max(0, longest_ms - REBALANCE_MIN_INTERVAL_MS) * MS_US
    look_back_us = LOOK_BACK_US + over_us + longest_timeouts_us(timeline)
    look_back_us += longest_requests_us(timeline, options)
    stretches = list(stretches_of(timeline))
    following = [stretch.begin_us for stretch in stretches[1:]]
    for stretch, next_us in zip(stretches, [*following, NEVER], strict=True):
        cuts = [(stretch.begin_us, stretch.changes.start)]
        for number in stretch.changes[1:]:
            cut_us = timeline.changes[number].begin_us
            if cut_us - cuts[-1][0] >= SHORTEST_US:
                cuts.append((cut_us, number))
        cuts.append((stretch.end_us, stretch.changes.stop))
        last_us = min(next_us, stretch.end_us + longest_pass_us(timeline, options))
        for (begin_us, first), (end_us, last) in pairwise(cuts):
            yield PlaySegment(
                begin_us=begin_us,
                end_us=end_us,
                asks_until_us=last_us if end_us == stretch.end_us else end_us,
                since_us=begin_us - look_back_us,
                changes=range(first, last),
                after_gap=begin_us == stretch.begin_us,
                before_gap=end_us == stretch.end_us,
                is_first=first == 0,
            )

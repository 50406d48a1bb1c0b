"""Member lists that heartbeats fill as they arrive."""

import numpy as np
from numpy.typing import NDArray

from rebalance_core.timing.timer_periods import (
    BEFORE_ALL,
    FIRST_HEARTBEAT_US,
    NEVER,
    Times,
)
from rebalance_core.timing.vectorized.futures import Futures
from rebalance_core.timing.vectorized.known_routes import KnownRoutes
from rebalance_core.timing.vectorized.member_lists import MemberLists
from rebalance_core.timing.vectorized.mixed_state import MixedState
from rebalance_core.timing.vectorized.play_segments import PlaySegment


class OpenLists(MemberLists):
    """`MemberLists` whose lists remain fresh as long as a client may still register.

    Args:
        futures: the futures of the timeline.
        segment: the part of the timeline.
        lifetimes: numbers of the lifetimes.
        routes: the routes that the lifetimes know.
        mixed: the members' subscriptions.
    """

    def __init__(
        self,
        futures: Futures,
        segment: PlaySegment,
        lifetimes: NDArray[np.int64],
        routes: KnownRoutes,
        mixed: MixedState,
    ) -> None:
        self._mixed = mixed
        super().__init__(futures, segment, lifetimes, routes)

    def _again(
        self, broker: int, since: Times, open_us: Times, down: Times, ended: Times
    ) -> tuple[Times, Times | None]:
        """Return the registrations made in the unsimulated gap, and the clients that may still
        register.
        """
        missing = since >= NEVER
        may_read = [self._mixed.may_read(lifetime, broker) for lifetime in self._lifetimes.tolist()]
        missing &= np.array(may_read, bool)[:, None]
        if not missing.any():
            return since, None
        begin = self._segment.begin_us
        if self._segment.after_gap and not self._segment.is_first:
            beat = self._last_beat(begin)
            beats = missing & (beat > self._mixed.followed_us) & (ended > begin)
            beats &= (open_us <= begin) & (begin < down)
            everyone = np.arange(self._size)
            reads = self._routes.reads(broker, everyone, beat.ravel()).reshape(since.shape)
            since = np.where(beats & reads, np.maximum(beat, open_us), since)
            missing &= since >= NEVER
        open_ = missing & (down > begin) & (open_us < self._heard_us) & (ended > begin)
        return since, np.where(open_, BEFORE_ALL, NEVER) if open_.any() else None

    def _last_beat(self, at_us: int) -> Times:
        """Return (lifetimes, S) the last heartbeat tick at or before a time, or `BEFORE_ALL`."""
        first = self._futures.ticks.beats_start[self._lifetimes] + FIRST_HEARTBEAT_US
        period = self._futures.ticks.periods.beat[self._lifetimes]
        number = (at_us - first) // period
        return np.where(number < 0, BEFORE_ALL, first + number * period)

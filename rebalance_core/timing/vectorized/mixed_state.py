"""The state that one segment hands to the next in a group whose members' subscriptions differ."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rebalance_core.kernels.segments import Ints
from rebalance_core.timing.group_timeline import GroupTimeline
from rebalance_core.timing.ticks import Ticks
from rebalance_core.timing.timer_periods import BEFORE_ALL, NEVER, Times
from rebalance_core.timing.vectorized.futures import state_of, take_over
from rebalance_core.timing.vectorized.subscriptions import Subscriptions

NO_SUBSCRIPTION_YET = -1
"""Stands for a broker that does not know the group's subscriptions yet."""


def is_mixed(timeline: GroupTimeline) -> bool:
    """Return whether members have different subscriptions or a member changes its own."""
    sets = {
        frozenset(member.subscriptions)
        for lifetime in timeline.lifetimes
        for _, member in lifetime.states
    }
    return len(sets) > 1


_STATE = {
    "beat_us": 0,
    "beat_of": 0,
    "channel_us": 1,
    "wakes_us": 1,
    "wakes_by": 1,
    "fetched_us": 1,
}
"""The arrays of `MixedState`, each with the index of its lifetime axis."""


@dataclass(eq=False)
class MixedState:
    """What brokers and members carry over from one segment to the next.

    Attributes:
        timeline: what happens.
        ticks: the times of the timeline.
        subscriptions: the sets of each lifetime.
        heard: (broker lifetimes, S) the set in the last heartbeat, or `NO_SUBSCRIPTION_YET`.
        told_us: (brokers, S) when a broker last notified the group of a change.
        beat_us: (lifetimes, S) when the heartbeat of a pass is due, or `NEVER`.
        beat_of: (lifetimes, S) the number of that pass.
        channel_us: (broker lifetimes, lifetimes, S) when a broker that a pass queried receives the
            client's heartbeat.
        wakes_us: (K, lifetimes, S) the arrival times of pending notices, and of unused ones.
        wakes_by: (K, lifetimes, S) the number of the broker that sent each notice.
        fetched_us: (topics, lifetimes, S) when the client learns the route that a pass fetched.
        followed_us: the end of the last simulated segment.
    """

    timeline: GroupTimeline
    ticks: Ticks
    subscriptions: Subscriptions = field(init=False)
    heard: Ints = field(init=False)
    told_us: Times = field(init=False)
    beat_us: Times = field(init=False)
    beat_of: Ints = field(init=False)
    channel_us: Times = field(init=False)
    wakes_us: Times = field(init=False)
    wakes_by: NDArray[np.int16] = field(init=False)
    fetched_us: Times = field(init=False)
    followed_us: int = BEFORE_ALL

    def __post_init__(self) -> None:
        timeline, seeds = self.timeline, len(self.ticks.seeds)
        shape = len(timeline.lifetimes), seeds
        self.subscriptions = Subscriptions(timeline, self.ticks)
        self.heard = np.full((len(timeline.broker_lifetimes), seeds), NO_SUBSCRIPTION_YET, np.int64)
        self.told_us = np.full((len(timeline.brokers), seeds), BEFORE_ALL, np.int64)
        self.beat_us = np.full(shape, NEVER, np.int64)
        self.beat_of = np.zeros(shape, np.int64)
        self.channel_us = np.full((len(timeline.broker_lifetimes), *shape), NEVER, np.int64)
        self.wakes_us = np.full((2, *shape), BEFORE_ALL, np.int64)
        self.wakes_by = np.zeros((2, *shape), np.int16)
        self.fetched_us = np.full((len(timeline.topics), *shape), BEFORE_ALL, np.int64)

    @classmethod
    def initial(cls, timeline: GroupTimeline, ticks: Ticks) -> MixedState | None:
        """Return the initial state, or None if all members subscribe to the same topics."""
        return cls(timeline, ticks) if is_mixed(timeline) else None

    def state(self) -> dict[str, Any]:
        """Return a copy of the state that one segment hands to the next."""
        names = (*_STATE, "heard", "told_us")
        return state_of(self, names) | {"followed_us": self.followed_us}

    def resume(self, state: dict[str, Any], lifetimes: int) -> None:
        """Restore the brokers' views from another timeline, and the pending notices to its
        lifetimes.
        """
        take_over(self, state, _STATE, lifetimes)
        self.heard[: len(state["heard"])] = state["heard"]
        self.told_us = state["told_us"].copy()
        self.followed_us = state["followed_us"]

    def may_read(self, lifetime: int, broker: int) -> bool:
        """Return whether any topic to which the lifetime ever subscribes is ever on the broker."""
        ever = self.subscriptions.has[self.subscriptions.codes[:, lifetime]].any(axis=0)
        return any(
            broker in version.heartbeat_targets
            for topic in np.flatnonzero(ever).tolist()
            for version in self.timeline.routes[topic]
        )

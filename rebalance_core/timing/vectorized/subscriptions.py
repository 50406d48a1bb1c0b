"""The topics to which lifetimes subscribe over time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rebalance_core.kernels.segments import Ints
from rebalance_core.timing.group_timeline import GroupTimeline
from rebalance_core.timing.ticks import Ticks
from rebalance_core.timing.timer_periods import BEFORE_ALL, NEVER, Times


class Subscriptions:
    """Sets of topics by number, and each lifetime's set at any time.

    Args:
        timeline: what happens.
        ticks: the times of the timeline.

    Attributes:
        sets: the distinct sets of topics to which lifetimes subscribe.
        since: (states, lifetimes, S) when each state of a lifetime begins; `NEVER` if it does not
            exist.
        codes: (states, lifetimes) the number of the set that the lifetime then subscribes to.
        has: (sets, topics) True where the set contains a topic of the timeline.
    """

    def __init__(self, timeline: GroupTimeline, ticks: Ticks) -> None:
        numbers: dict[frozenset[str], int] = {}
        most = max((len(lifetime.states) for lifetime in timeline.lifetimes), default=1)
        self.since = np.full((most, len(timeline.lifetimes), len(ticks.seeds)), NEVER, np.int64)
        self.codes = np.zeros((most, len(timeline.lifetimes)), np.int64)
        for lifetime in timeline.lifetimes:
            self.since[: len(lifetime.states), lifetime.index] = ticks.states_us(lifetime)
            self.since[0, lifetime.index] = BEFORE_ALL
            for state, (_, member) in enumerate(lifetime.states):
                topics = frozenset(member.subscriptions)
                self.codes[state:, lifetime.index] = numbers.setdefault(topics, len(numbers))
        self.sets = tuple(numbers)
        self.has = np.array(
            [[topic in topics for topic in timeline.topics] for topics in self.sets], bool
        ).reshape(len(self.sets), len(timeline.topics))

    def grows(self, lifetime: int, state: int) -> bool:
        """Return whether a state of a lifetime adds a topic to its previous state."""
        before, now = self.codes[state - 1, lifetime], self.codes[state, lifetime]
        return not self.sets[now] <= self.sets[before]

    def select(self, lifetimes: Ints) -> SubscriptionsNow:
        """Return the subscriptions of the given lifetimes."""
        return SubscriptionsNow(self, lifetimes)


class SubscriptionsNow:
    """The subscriptions of a segment's elements, ordered by lifetime, then by future."""

    def __init__(self, subscriptions: Subscriptions, lifetimes: Ints) -> None:
        self._its = subscriptions
        self.sets = subscriptions.sets
        """The sets, by number."""
        self.since: Times = subscriptions.since[:, lifetimes]
        """(states, lifetimes, S)"""
        self.codes = subscriptions.codes[:, lifetimes]
        """(states, lifetimes)"""
        states, _, seeds = self.since.shape
        self._flat = self.since.reshape(states, -1)
        self._codes = np.repeat(self.codes, seeds, axis=1)

    def codes_at(self, elements: Ints, at_us: Times) -> Ints:
        """Return the number of the set that each element subscribes to at a time."""
        codes_now: Ints = self._codes[0][elements]
        for since, codes in zip(self._flat[1:], self._codes[1:], strict=True):
            codes_now = np.where(since[elements] <= at_us, codes[elements], codes_now)
        return codes_now

    def state_has(self, state: int, topic: int) -> NDArray[np.bool_]:
        """Return (lifetimes, 1) whether each lifetime subscribes to a topic in a state."""
        has_topic: NDArray[np.bool_] = self._its.has[self.codes[state], topic][:, None]
        return has_topic

"""The routes that members know for topics to which they subscribe or have subscribed
(rocketmq.md §6.1).

A poll asks for the topics that the client subscribes to at its tick, and heartbeats go to the
brokers in their routes. A client keeps the routes of topics that it no longer subscribes to.
"""

import numpy as np
from numpy.typing import NDArray

from rebalance_core.kernels.segments import Ints
from rebalance_core.timing.timer_periods import (
    BEFORE_ALL,
    FIRST_POLL_US,
    NEVER,
    Times,
)
from rebalance_core.timing.vectorized.futures import Futures
from rebalance_core.timing.vectorized.known_routes import UNKNOWN, UNSUBSCRIBED, KnownRoutes, Polled
from rebalance_core.timing.vectorized.mixed_state import MixedState
from rebalance_core.timing.vectorized.play_segments import PlaySegment


class SubscribedRoutes(KnownRoutes):
    """The `KnownRoutes` of members with different subscriptions.

    Args:
        futures: the futures of the timeline.
        segment: the part of the timeline.
        lifetimes: numbers of the lifetimes; elements are ordered by lifetime, then by future.
        mixed: the members' subscriptions.
    """

    def __init__(
        self, futures: Futures, segment: PlaySegment, lifetimes: Ints, mixed: MixedState
    ) -> None:
        self._mixed = mixed
        self.subscriptions = mixed.subscriptions.select(lifetimes)
        self._fetched_us = mixed.fetched_us[:, lifetimes].reshape(
            len(futures.timeline.routes), len(lifetimes) * len(futures.seeds)
        )
        super().__init__(futures, segment, lifetimes)

    def at(self, topic: int, elements: Ints, at_us: Times) -> Ints:
        """Return the version of a topic's route that each element knows, or `UNKNOWN`."""
        fetched = self.fetched[topic][elements].astype(np.int64)
        version = np.where(self._fetched_us[topic][elements] <= at_us, fetched, UNKNOWN)
        return self._with_lessons(topic, elements, at_us, version)

    def of_pass(self, elements: Ints, at_us: Times) -> Ints:
        """Return (topics, n) the route versions of a pass; `UNSUBSCRIBED` where it skips a
        topic.
        """
        subscribed = self._mixed.subscriptions.has[self.subscriptions.codes_at(elements, at_us)]
        versions = self.versions_at(elements, at_us)
        return np.where(subscribed[:, list(self._futures.topics)].T, versions, UNSUBSCRIBED)

    def fetch(self, topic: int, elements: Ints, versions: Ints, end_us: Times) -> None:
        """Record fetched versions, which clients know once the passes that fetched them end."""
        got = versions != UNKNOWN
        self.fetched[topic][elements[got]] = versions[got]
        self._fetched_us[topic][elements[got]] = end_us[got]

    def reads(self, broker: int, elements: Ints, at_us: Times) -> NDArray[np.bool_]:
        """Return True where a broker is in a known route of a topic to which the element
        subscribes.
        """
        codes = self.subscriptions.codes_at(elements, at_us)
        return np.asarray(self.read_with([broker], elements, at_us, codes)[0], bool)

    def read_with(
        self, brokers: list[int], elements: Ints, at_us: Times, codes: Ints
    ) -> NDArray[np.bool_]:
        """Return (brokers, n) `reads` for each broker; ``codes`` number the topic sets."""
        reads = np.zeros((len(brokers), len(elements)), bool)
        for topic, has_broker in enumerate(self._has_broker):
            has_topic = has_broker[brokers]
            if has_topic.any():
                subscribed = self._mixed.subscriptions.has[codes, topic]
                reads |= subscribed & has_topic[:, self.at(topic, elements, at_us)]
        return reads

    def keep(self) -> None:
        """Pass fetched versions to the next segment."""
        super().keep()
        shape = len(self._versions), len(self._lifetimes), len(self._futures.seeds)
        self._mixed.fetched_us[:, self._lifetimes] = self._fetched_us.reshape(shape)

    def _blind(self, segment: PlaySegment) -> NDArray[np.bool_]:
        return np.ones(self.fetched.shape[1], bool)

    def _learn(self, topic: int, segment: PlaySegment) -> list[Polled]:
        """Return every version of a topic's route, with the times at which polls deliver it."""
        ticks, lifetimes = self._futures.ticks, self._lifetimes
        created = ticks.created[lifetimes]
        visible = [row + ticks.route_lag[lifetimes] for row in ticks.route_visible_us[topic]]
        after = [*visible[1:], np.full(created.shape, NEVER, np.int64)]
        polled: list[Polled] = []
        for number, version in enumerate(self._versions[topic]):
            learned_us = np.full(created.shape, NEVER, np.int64)
            if not version.gone:
                current = (visible[number] <= created) & (created < after[number])
                current |= self._from_start(version)
                current &= self.subscriptions.state_has(0, topic)
                learned_us = self._polled(topic, visible[number], after[number])
                learned_us = np.where(current, BEFORE_ALL, learned_us)
            never = np.full(created.size, NEVER, np.int64)
            polled.append(Polled(number, visible[number].ravel(), learned_us.ravel(), never))
        return polled

    def _polled(self, topic: int, visible: Times, until: Times) -> Times:
        """Return (lifetimes, S) when the answer to the first poll that returns a version
        arrives.
        """
        subscriptions = self.subscriptions
        first = self._futures.ticks.timers_start[self._lifetimes] + FIRST_POLL_US
        period = self._futures.ticks.periods.poll[self._lifetimes]
        polled_us = np.full(first.shape, NEVER, np.int64)
        for state, since in enumerate(subscriptions.since):
            subscribed = subscriptions.state_has(state, topic)
            if not subscribed.any():
                continue
            ends = subscriptions.since[state + 1] if state + 1 < len(subscriptions.since) else NEVER
            number = np.maximum(-((first - np.maximum(visible, since)) // period), 0)
            tick = first + number * period
            asks = subscribed & (tick < np.minimum(until, ends)) & (since < NEVER)
            answered = self._answered(np.where(asks, number, 0))
            polled_us = np.where(asks, np.minimum(polled_us, answered), polled_us)
        return polled_us

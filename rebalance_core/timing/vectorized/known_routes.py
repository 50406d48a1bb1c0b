"""The route versions that a client knows from its polls, and when it knows them (rocketmq.md §6.1,
rocketmq.md §6.3).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rebalance_core.timing import delays, draws
from rebalance_core.timing.draws import Timer
from rebalance_core.timing.group_timeline import RouteVersion
from rebalance_core.timing.options import MS_US, SECOND_US
from rebalance_core.timing.timer_periods import BEFORE_ALL, FIRST_POLL_US, NEVER, Times
from rebalance_core.timing.vectorized.futures import Futures
from rebalance_core.timing.vectorized.play_segments import PlaySegment

LONGEST_WAY_US = max(
    each.longest - each.shortest
    for each in (
        delays.TOPIC_VISIBLE,
        delays.BROKER_GONE,
        delays.BROKER_GONE_4,
        delays.BROKER_BACK,
        delays.BROKER_BACK_4,
    )
)
UNKNOWN = -1
"""The element knows no version."""
UNSUBSCRIBED = -2
"""Replaces the version of a topic that a pass skips."""


@dataclass(frozen=True, eq=False)
class Polled:
    """A route version that polls may deliver.

    Attributes:
        version: the number of the version.
        visible: (elements,) when the element's name server first returns it.
        at_us: (elements,) when the element learns it; `NEVER` where no poll does.
        until_us: (elements,) when polls deliver the next version.
    """

    version: int
    visible: Times
    at_us: Times
    until_us: Times


class KnownRoutes:
    """The routes that the elements of a segment know.

    Args:
        futures: the futures of the timeline.
        segment: the part of the timeline.
        lifetimes: numbers of the lifetimes; elements are ordered by lifetime, then by future.
    """

    def __init__(
        self, futures: Futures, segment: PlaySegment, lifetimes: NDArray[np.int64]
    ) -> None:
        self._futures, self._lifetimes = futures, lifetimes
        self._versions = futures.timeline.routes
        self._learned = [
            self._learn(topic, segment) if topic in futures.topics else []
            for topic in range(len(self._versions))
        ]
        self.fetched = futures.fetched[:, lifetimes].reshape(
            len(self._versions), len(lifetimes) * len(futures.seeds)
        )
        """(topics, elements): the versions that passes have fetched, updated as more are
        fetched.
        """
        self._constant = [self._only_one(topic) for topic in range(len(self._versions))]
        brokers = len(futures.timeline.brokers)
        self.blind = self._blind(segment)
        """(elements,): whether a pass may still fetch a route."""
        self._has_broker = [_has_broker(versions, brokers) for versions in self._versions]
        self._lessons = [
            each.at_us
            for learned in self._learned
            for each in learned
            if ((each.at_us > BEFORE_ALL) & (each.at_us < NEVER)).any()
        ]
        """The times at which polls deliver versions to elements."""

    def _blind(self, segment: PlaySegment) -> NDArray[np.bool_]:
        blind = np.zeros(self.fetched.shape[1], bool)
        everyone = np.arange(len(blind))
        for topic in self._futures.topics:
            begin = np.full(len(blind), segment.begin_us)
            blind |= self.at(topic, everyone, begin) == UNKNOWN
        return blind

    def _only_one(self, topic: int) -> int | None:
        """Return the version that all elements know throughout the segment, or None."""
        if len(self._learned[topic]) != 1:
            return None
        only = self._learned[topic][0]
        always = (only.at_us == BEFORE_ALL).all() and (self.fetched[topic] <= only.version).all()
        return only.version if always else None

    def at(self, topic: int, elements: NDArray[np.int64], at_us: Times) -> NDArray[np.int64]:
        """Return the version of a topic's route that each element knows, or `UNKNOWN`."""
        constant = self._constant[topic]
        if constant is not None:
            return np.full(len(elements), constant)
        fetched = self.fetched[topic][elements].astype(np.int64)
        return self._with_lessons(topic, elements, at_us, fetched)

    def versions_at(self, elements: NDArray[np.int64], at_us: Times) -> NDArray[np.int64]:
        """Return the version that each element knows, (topics, n), in the order of
        `Futures.topics`.
        """
        topics = self._futures.topics
        versions = [self.at(topic, elements, at_us) for topic in topics]
        return np.array(versions, np.int64).reshape(len(topics), len(elements))

    def of_pass(self, elements: NDArray[np.int64], at_us: Times) -> NDArray[np.int64]:
        """Return (topics, n) the route versions of a pass that begins then; `UNSUBSCRIBED` where
        it skips the topic.
        """
        return self.versions_at(elements, at_us)

    def fetch(
        self, topic: int, elements: NDArray[np.int64], versions: NDArray[np.int64], end_us: Times
    ) -> None:
        """Record fetched versions, which clients know once the passes that fetched them end."""
        fetched = self.fetched[topic]
        fetched[elements] = np.maximum(fetched[elements], versions)

    def _with_lessons(
        self, topic: int, elements: NDArray[np.int64], at_us: Times, version: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return ``version``, or the newer version that polls have delivered by then."""
        for each in self._learned[topic]:
            version = np.where(
                each.at_us[elements] <= at_us, np.maximum(version, each.version), version
            )
        return version

    def visible(self, topic: int, elements: NDArray[np.int64], at_us: Times) -> NDArray[np.int64]:
        """Return the version that each element's name server has, or `UNKNOWN` if the route is
        gone.
        """
        version = np.full(len(elements), UNKNOWN, np.int64)
        for each in self._learned[topic]:
            gone = self._versions[topic][each.version].gone
            seen = each.visible[elements] <= at_us
            version = np.where(seen, UNKNOWN if gone else each.version, version)
        return version

    def reads(self, broker: int, elements: NDArray[np.int64], at_us: Times) -> NDArray[np.bool_]:
        """Return True where a broker is in a route that the element knows."""
        reads = np.zeros(len(elements), bool)
        for topic, has_broker in enumerate(self._has_broker):
            if has_broker[broker].any():
                # the last column is that of UNKNOWN
                reads |= has_broker[broker][self.at(topic, elements, at_us)]
        return reads

    def may_read(self, broker: int) -> bool:
        """Return True if any version known in the segment contains the broker."""
        return any(
            has_broker[broker, each.version]
            for learned, has_broker in zip(self._learned, self._has_broker, strict=True)
            for each in learned
        )

    def read_from(self, broker: int, since_us: Times) -> Times:
        """Return (elements,) the first time, no earlier than ``since_us``, at which each knows a
        route with the broker.
        """
        everyone = np.arange(len(since_us))
        read_us = np.where(self.reads(broker, everyone, since_us), since_us, NEVER)
        for topic, learned in enumerate(self._learned):
            for each in learned:
                if self._has_broker[topic][broker, each.version]:
                    learned_us = np.maximum(each.at_us, since_us)
                    read_us = np.where(
                        learned_us < each.until_us, np.minimum(read_us, learned_us), read_us
                    )
        return read_us

    def next_lesson(self, elements: NDArray[np.int64], at_us: Times) -> Times:
        """Return when each element next learns a route version for any topic."""
        next_us = np.full(len(elements), NEVER, np.int64)
        for lesson in self._lessons:
            lesson_us = lesson[elements]
            next_us = np.where(lesson_us > at_us, np.minimum(next_us, lesson_us), next_us)
        return next_us

    def last_lesson(self, until_us: Times) -> Times:
        """Return (elements,) when each last learned a version by a time, or `BEFORE_ALL`."""
        last_us = np.full(len(until_us), BEFORE_ALL, np.int64)
        for lesson in self._lessons:
            last_us = np.where(lesson <= until_us, np.maximum(last_us, lesson), last_us)
        return last_us

    def keep(self) -> None:
        """Pass fetched versions to the next segment."""
        shape = len(self._versions), len(self._lifetimes), len(self._futures.seeds)
        self._futures.fetched[:, self._lifetimes] = self.fetched.reshape(shape)

    def _learn(self, topic: int, segment: PlaySegment) -> list[Polled]:
        """Return the versions that any element may know in a segment, oldest first."""
        futures, lifetimes = self._futures, self._lifetimes
        created = futures.ticks.created[lifetimes]
        versions = self._versions[topic]
        at_start = [futures.timeline.lifetimes[lifetime] for lifetime in lifetimes]
        from_start_us = max((1 + e.joined.event_us for e in at_start if e.observed), default=0)
        period = futures.ticks.periods.poll[lifetimes]
        late_us = futures.options.late_ms * MS_US + int(period.max(initial=0))
        first, last = _span(versions, segment, late_us, from_start_us)
        rows = futures.ticks.route_visible_us[topic][first:last]
        visible = [row + futures.ticks.route_lag[lifetimes] for row in rows]
        # tick -1: known from the start
        first_poll = futures.ticks.timers_start[lifetimes] + FIRST_POLL_US
        from_start = [self._from_start(version) for version in versions[first:last]]
        ticks = [
            np.where(
                (visible_us <= created) | at_start,
                -1,
                np.maximum(-((first_poll - visible_us) // period), 0),
            )
            for visible_us, at_start in zip(visible, from_start, strict=True)
        ]
        answered = [self._answered(tick) for tick in ticks]
        polled: list[Polled] = []
        following = np.full(created.shape, NEVER, np.int64)
        next_tick = np.full(created.shape, NEVER, np.int64)
        for offset in range(len(rows) - 1, -1, -1):
            number = first + offset
            seen = ticks[offset] < next_tick
            if not versions[number].gone:
                learned = np.where(seen, answered[offset], NEVER)
                polled.append(
                    Polled(number, visible[offset].ravel(), learned.ravel(), following.ravel())
                )
                following = np.where(seen, learned, following)
            else:
                never = np.full(created.size, NEVER, np.int64)
                polled.append(Polled(number, visible[offset].ravel(), never, never))
            if versions[
                number
            ].gone:  # a lifetime that predates the log knows the versions that predate it
                next_tick = np.where(from_start[offset], next_tick, ticks[offset])
            else:
                next_tick = ticks[offset]
        return polled[::-1]

    def _from_start(self, version: RouteVersion) -> NDArray[np.bool_]:
        """Return (lifetimes, 1) whether both the lifetime and the version predate the log."""
        at_us = None if version.moment is None else version.moment.event_us
        lifetimes = [self._futures.timeline.lifetimes[lifetime] for lifetime in self._lifetimes]
        from_start = [
            lifetime.observed and (at_us is None or at_us <= lifetime.joined.event_us)
            for lifetime in lifetimes
        ]
        return np.array(from_start, bool)[:, None]

    def _answered(self, tick: NDArray[np.int64]) -> Times:
        if (tick < 0).all():
            return np.full(tick.shape, BEFORE_ALL, np.int64)
        started = self._futures.ticks.timers_start[self._lifetimes]
        words = self._futures.ticks.words[self._lifetimes]
        delay = delays.ROUTE_ANSWER.many(draws.draws_of(words, Timer.ROUTE_ANSWER, tick))
        polled_us = (
            started + FIRST_POLL_US + tick * self._futures.ticks.periods.poll[self._lifetimes]
        )
        return np.where(tick < 0, BEFORE_ALL, polled_us + delay)


def _span(
    versions: tuple[RouteVersion, ...], segment: PlaySegment, late_us: int, from_start_us: int
) -> tuple[int, int]:
    """Return the range (first, end) of the versions that any client may know in a segment."""
    margin = SECOND_US + LONGEST_WAY_US + late_us + delays.ROUTE_ANSWER.longest
    times = [0 if each.moment is None else each.moment.event_us for each in versions]
    first, last = 0, len(versions)
    while last > 0 and times[last - 1] >= max(segment.end_us + LONGEST_WAY_US, from_start_us):
        last -= 1
    for number in range(0 if segment.is_first else last):
        lasts = number + 1 == len(versions) or times[number + 1] - times[number] > margin
        if lasts and not versions[number].gone and times[number] + margin <= segment.begin_us:
            first = number
    return first, last


def _has_broker(versions: tuple[RouteVersion, ...], brokers: int) -> NDArray[np.bool_]:
    """Return (brokers, versions + 1) whether clients with a version send the broker heartbeats;
    the last column, for `UNKNOWN`, is False.
    """
    has_broker = np.zeros((brokers, len(versions) + 1), bool)
    for number, version in enumerate(versions):
        has_broker[list(version.heartbeat_targets), number] = True
    return has_broker

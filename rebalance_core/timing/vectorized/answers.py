"""The answers of brokers to passes, and how long passes wait for lost brokers."""

import numpy as np
from numpy.typing import NDArray

from rebalance_core.kernels.segments import Ints
from rebalance_core.timing.draws import Timer, all_below, ticked
from rebalance_core.timing.reference.heartbeats import REQUEST_TIMEOUT_US
from rebalance_core.timing.timer_periods import BEFORE_ALL, NEVER, Times
from rebalance_core.timing.vectorized.elements import Elements
from rebalance_core.timing.vectorized.known_routes import UNKNOWN, KnownRoutes
from rebalance_core.timing.vectorized.member_lists import MemberLists


class Answers:
    """The member lists that brokers return to elements' passes.

    Args:
        elements: the elements of the segment.
        routes: the routes that they know.
        lists: the lists of the brokers.
    """

    def __init__(self, elements: Elements, routes: KnownRoutes, lists: MemberLists) -> None:
        self._elements, self._routes, self._lists = elements, routes, lists
        topics = elements.futures.topics
        versions = [elements.futures.timeline.routes[topic] for topic in topics]
        brokers = [[each.brokers or (0,) for each in of_topic] for of_topic in versions]
        shape = len(topics), max(map(len, versions), default=0)
        most = max((len(each) for asked in brokers for each in asked), default=1)
        self._brokers = np.zeros((*shape, most), np.int64)
        """(topics, versions, brokers): the brokers, one of which a pass picks at random to ask for
        the members.
        """
        self._many = np.ones(shape, np.int64)
        """(topics, versions): the number of such brokers."""
        self._empty = np.zeros((shape[0], shape[1] + 2), bool)
        """(topics, versions): whether the route has no queue; the last two versions represent the
        absence of a route.
        """
        for place, (of_topic, asked) in enumerate(zip(versions, brokers, strict=True)):
            for number, (version, each) in enumerate(zip(of_topic, asked, strict=True)):
                self._brokers[place, number, : len(each)] = each
                self._many[place, number] = len(each)
                self._empty[place, number] = not version.queues
        samples = [elements.words_for(Timer.SAMPLE + topic) for topic in topics]
        self._samples = np.array(samples, np.uint64).reshape(len(topics), len(elements.ids))
        self._places = np.arange(len(topics))[:, None]
        self._list_of = self._only_lists(len(elements.futures.timeline.brokers))

    def _only_lists(self, brokers: int) -> Ints | None:
        """Return the number of each broker's only list, (brokers,), or None if a broker is ever
        down.
        """
        lists = self._lists.lists
        if any((each.up > BEFORE_ALL).any() or (each.down < NEVER).any() for each in lists):
            return None
        list_of = np.full(brokers, -1, np.int64)
        list_of[[each.broker for each in lists]] = np.arange(len(lists))
        return list_of

    def without_queues(self, who: Ints, knowns: Ints) -> NDArray[np.bool_]:
        """Return (topics, n) whether a route without readable queues counts as missing (5.5.0
        on).
        """
        return self._empty[self._places, knowns] & self._elements.empty_is_unknown[who]

    def sampled(self, topic: Ints, who: Ints, version: Ints) -> Ints:
        """Draw the broker that each pass asks for members; ``topic`` holds indices of topics."""
        draws = ticked(self._samples[topic, who], self._elements.number[who])
        sample = all_below(draws, self._many[topic, version])
        return self._brokers[topic, version, sample]

    def silent(self, broker: Ints, seed: Ints, at_us: Times) -> NDArray[np.bool_]:
        """Return True where the broker's host is lost, so that requests to it time out."""
        silent = np.zeros(len(broker), bool)
        for number, since, until in self._elements.futures.silences:
            silent |= (broker == number) & (since[seed] <= at_us) & (at_us < until[seed])
        return silent

    def blocked(self, who: Ints, at_us: Times) -> Times:
        """Return how long a heartbeat waits for lost hosts (rocketmq.md §6.1)."""
        elements = self._elements
        timeouts = np.zeros(len(who), np.int64)
        seed = elements.seed[who]
        for broker, since, until in elements.futures.silences:
            silent = (since[seed] <= at_us) & (at_us < until[seed])
            if silent.any():
                timeouts += silent & self._routes.reads(broker, who, at_us)
        timeouts = np.where(elements.beats_at_once[who], np.minimum(timeouts, 1), timeouts)
        return timeouts * REQUEST_TIMEOUT_US

    def places(self, broker: Ints, seed: Ints, at_us: Times) -> Ints:
        """Return the number of each broker's list at a time, or -1 while the broker is down."""
        if self._list_of is not None:
            return self._list_of[broker]
        places = np.full(len(broker), -1, np.int64)
        for number, place in enumerate(self._lists.lists):
            up = (broker == place.broker) & (place.up[seed] <= at_us) & (at_us < place.down[seed])
            places[up] = number
        return places

    def calm(self, who: Ints, at_us: Times) -> NDArray[np.bool_]:
        """Return True where all brokers that the element may ask give the same answer at a time."""
        elements = self._elements
        knowns = self._routes.versions_at(who, at_us)
        calm = np.asarray((knowns != UNKNOWN).all(axis=0), bool)
        asks, seed = ~elements.broadcasting[who] & ~elements.asks_nobody[who], elements.seed[who]
        asked: dict[tuple[int, ...], NDArray[np.bool_]] = {}
        for place, known_versions in enumerate(knowns):
            for version in set(known_versions.tolist()) - {UNKNOWN}:
                key = tuple(self._brokers[place, version, : self._many[place, version]].tolist())
                asked[key] = asked.get(key, False) | (known_versions == version)
        answers: dict[int, NDArray[np.uint64]] = {}
        for brokers, rows in asked.items():
            rows &= asks
            for broker in brokers:
                if elements.futures.silences:
                    calm &= ~(rows & self.silent(np.full(len(who), broker), seed, at_us))
                if broker not in answers and len(brokers) > 1:
                    places = self.places(np.full(len(who), broker), seed, at_us)
                    answers[broker] = self._lists.hashes_at(places, seed, at_us)
            for broker in brokers[1:]:
                calm &= ~rows | (answers[broker] == answers[brokers[0]])
        return calm

"""What brokers answer passes, what is held meanwhile, and what passes did."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rebalance_core.clockwork.batch.elements import Elements
from rebalance_core.clockwork.batch.known_routes import UNKNOWN, KnownRoutes
from rebalance_core.clockwork.batch.member_lists import MemberLists
from rebalance_core.clockwork.draws import DRAW_BITS, Timer, draws_of
from rebalance_core.clockwork.loop.membership import REQUEST_TIMEOUT_US
from rebalance_core.clockwork.loop.rebalancing import SAMPLE_AFTER_US
from rebalance_core.clockwork.ticks import Times

# What is held, and its changes.

Ints = NDArray[np.int64]


@dataclass(eq=False)
class Moves:
    """Changes of what is held of one topic: equally long columns, one row a pass.

    Attributes:
        topic: its number.
        elements: whose.
        before: set of queues held until then.
        after: set of queues held from then on.
        drop_us: when what is missing is given up.
        add_us: when what is new is taken.
    """

    topic: int
    elements: Ints
    before: NDArray[np.int32]
    after: NDArray[np.int32]
    drop_us: Times
    add_us: Times


class SegmentHoldings:
    """Changes what elements hold, and puts that down.

    Args:
        elements: of the stretch.
        log: of all changes.
    """

    def __init__(self, elements: Elements, log: list[Moves]) -> None:
        self._elements, self._log = elements, log

    def move(
        self, topic: int, who: Ints, share: NDArray[np.int32], drop_us: Times, add_us: Times
    ) -> None:
        """The elements hold another share of a topic from now on."""
        elements = self._elements
        held = elements.held[topic]
        self._log.append(Moves(topic, elements.ids[who], held[who], share, drop_us, add_us))
        held[who] = share


# What passes did, for those who follow the clocks and the member lists.


@dataclass(eq=False)
class PassOutcome:
    """The outcome of a round of passes.

    Attributes:
        end_us: when each ended.
        balanced: no strategy threw.
        notifies: ``messageQueueChanged`` was called, so a heartbeat follows at the end.
        sampled: by topic: the broker life that each asked, -1: none.
        fetched: some topic's route was asked for.
        timed_out_us: what it waited for lost hosts before it knew its members.
    """

    end_us: Times
    balanced: NDArray[np.bool_]
    notifies: NDArray[np.bool_]
    sampled: list[Ints]
    fetched: NDArray[np.bool_]
    timed_out_us: Times


# What brokers answer passes, and how long those that are lost keep them waiting.


class Answers:
    """The member lists that elements are given.

    Args:
        elements: of the stretch.
        routes: what they know.
        lists: of the brokers.
    """

    def __init__(self, elements: Elements, routes: KnownRoutes, lists: MemberLists) -> None:
        self._elements, self._routes, self._lists = elements, routes, lists
        self._versions = elements.futures.script.routes
        self._topics = elements.futures.topics
        self._brokers = [
            [np.array(version.brokers or (0,), np.int64) for version in versions]
            for versions in self._versions
        ]

    def has_queues(self, topic: int, who: Ints, known: Ints) -> NDArray[np.bool_]:
        """From 5.5.0 on a route without readable queues is like none."""
        empty = np.array([not version.queues for version in self._versions[topic]] + [False] * 2)
        return ~(empty[known] & self._elements.empty_is_unknown[who])

    def sampled(self, topic: int, who: Ints, known: Ints) -> Ints:
        """Draw which broker each pass asks for the members."""
        elements = self._elements
        draws = draws_of(elements.words[who], Timer.SAMPLE + topic, elements.number[who])
        broker = np.zeros(len(who), np.int64)
        for version in set(known.tolist()):
            rows = np.flatnonzero(known == version)
            brokers = self._brokers[topic][version]
            at = (draws[rows] * np.uint64(len(brokers))) >> np.uint64(DRAW_BITS)
            broker[rows] = brokers[at.astype(np.int64)]
        return broker

    def silent(self, broker: Ints, seed: Ints, at_us: Times) -> NDArray[np.bool_]:
        """True where the broker's host is lost, so that requests to it time out."""
        found = np.zeros(len(broker), bool)
        for number, since, until in self._elements.futures.silences:
            found |= (broker == number) & (since[seed] <= at_us) & (at_us < until[seed])
        return found

    def blocked(self, who: Ints, at_us: Times) -> Times:
        """How long a heartbeat waits for lost hosts (rocketmq.md §6.1)."""
        elements = self._elements
        found = np.zeros(len(who), np.int64)
        seed = elements.seed[who]
        for broker, since, until in elements.futures.silences:
            silent = (since[seed] <= at_us) & (at_us < until[seed])
            if silent.any():
                found += silent & self._routes.reads(broker, who, at_us)
        found = np.where(elements.beats_at_once[who], np.minimum(found, 1), found)
        return found * REQUEST_TIMEOUT_US

    def places(self, broker: Ints, seed: Ints, at_us: Times) -> Ints:
        """The list of a broker's life at a time; -1: it is down."""
        found = np.full(len(broker), -1, np.int64)
        for number, place in enumerate(self._lists.lists):
            up = (broker == place.broker) & (place.up[seed] <= at_us) & (at_us < place.down[seed])
            found[up] = number
        return found

    def hashes(self, who: Ints, place: Ints, at_us: Times) -> NDArray[np.uint64]:
        """Return the hashes of the member lists at those places; 0: none."""
        found = np.zeros(len(who), np.uint64)
        seed = self._elements.seed[who]
        for number, each in enumerate(self._lists.lists):
            rows = np.flatnonzero(place == number)
            if len(rows):
                found[rows] = self._lists.hash_at(each, seed[rows], at_us[rows])
        return found

    def members(self, who: int, place: int, begin: int) -> Ints:
        """The lives in the list that one pass is given."""
        if place < 0:
            return np.empty(0, np.int64)
        seed = int(self._elements.seed[who])
        return self._lists.members_at(self._lists.lists[place], seed, int(begin) + SAMPLE_AFTER_US)

    def calm(self, who: Ints, at_us: Times) -> NDArray[np.bool_]:
        """True where any broker that the element may ask would answer alike at a time."""
        elements = self._elements
        calm = np.ones(len(who), bool)
        seed = elements.seed[who]
        asks = ~elements.broadcasting[who] & ~elements.asks_nobody[who]
        answers: dict[int, NDArray[np.uint64]] = {}

        def answer_of(broker: int) -> NDArray[np.uint64]:
            if broker not in answers:
                places = self.places(np.full(len(who), broker), seed, at_us)
                answers[broker] = self.hashes(who, places, at_us)
            return answers[broker]

        for topic in self._topics:
            known = self._routes.at(topic, who, at_us)
            calm &= known != UNKNOWN
            for version in set(known[known != UNKNOWN].tolist()):
                rows = np.flatnonzero((known == version) & asks & calm)
                first, *others = self._brokers[topic][version].tolist()
                for broker in (first, *others):
                    calm[rows] &= ~self.silent(np.full(len(rows), broker), seed[rows], at_us[rows])
                for broker in others:
                    calm[rows] &= answer_of(broker)[rows] == answer_of(first)[rows]
        return calm

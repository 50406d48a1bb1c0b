"""Run a pass of many elements: from their views to their holdings and the times of changes
(rocketmq.md §3).
"""

import numpy as np
from numpy.typing import NDArray

from rebalance_core.kernels.segments import Ints
from rebalance_core.timing.delays import (
    PASS_TAIL,
)
from rebalance_core.timing.draws import Timer
from rebalance_core.timing.reference.heartbeats import REQUEST_TIMEOUT_US
from rebalance_core.timing.reference.rebalancing import SAMPLE_AFTER_US
from rebalance_core.timing.timer_periods import NEVER, Times
from rebalance_core.timing.vectorized.answers import Answers
from rebalance_core.timing.vectorized.elements import Elements
from rebalance_core.timing.vectorized.known_routes import UNKNOWN, UNSUBSCRIBED, KnownRoutes
from rebalance_core.timing.vectorized.locks import OrderLocks
from rebalance_core.timing.vectorized.member_lists import MemberLists
from rebalance_core.timing.vectorized.orderly_passes import OrderlyPasses
from rebalance_core.timing.vectorized.pass_delays import delays_of
from rebalance_core.timing.vectorized.pass_outcome import PassOutcome
from rebalance_core.timing.vectorized.segment_holdings import Moves, SegmentHoldings
from rebalance_core.timing.vectorized.shares import (
    NO_QUEUE,
    REFUSED,
    UNCHANGED,
    QueueSets,
    Shares,
    added,
)


class Runner:
    """Runs the passes of a segment.

    Args:
        elements: the elements of the segment.
        routes: the routes that they know.
        lists: the lists of the brokers.
        shares: the shares of all topics.
        sets: sets of queues.
        moves: receives changes of holdings.
        locks: the locks of the brokers, if the group is orderly.

    Attributes:
        answers: the answers of the brokers.
        orderly: the steps of passes that take order locks; None if no pass does.
    """

    def __init__(
        self,
        elements: Elements,
        routes: KnownRoutes,
        lists: MemberLists,
        shares: Shares,
        sets: QueueSets,
        moves: list[Moves],
        locks: OrderLocks | None,
    ) -> None:
        self._sets, self._elements, self._routes = sets, elements, routes
        self._lists = lists
        self._topics = np.array(elements.futures.topics, np.int64)
        self._shares, self._first_route = shares, shares.first[self._topics]
        self.answers = Answers(elements, routes, lists)
        self._holdings = SegmentHoldings(elements, moves)
        self.orderly = (
            None
            if locks is None
            else OrderlyPasses(elements, self.answers, sets, self._holdings, locks)
        )

    def run(self, who: Ints, begin: Times) -> PassOutcome:
        """Run a pass of each element in ``who``, which must not repeat an element."""
        state = self._elements
        count = len(who)
        outcome = PassOutcome(
            end_us=begin + state.length[who],
            balanced=np.ones(count, bool),
            notifies=state.always_notifies(who, begin),
            moves=np.zeros(count, bool),
            sampled=np.full((len(self._topics), count), -1, np.int64),
            fetched=np.zeros(count, bool),
            timed_out_us=np.zeros(count, np.int64),
        )
        knowns = self._routes.of_pass(who, begin)
        shares = self._share(who, begin, knowns, outcome)
        unknown = knowns == UNKNOWN
        fetches = [
            (topic, *self._fetch(topic, who, begin, lacks, outcome))
            for topic, lacks in zip(self._topics.tolist(), unknown, strict=True)
            if lacks.any()
        ]
        outcome.end_us += outcome.timed_out_us
        self._act(who, begin + outcome.timed_out_us, shares, knowns, outcome)
        outcome.notifies &= state.heartbeats[who]
        if self.orderly is not None:
            self.orderly.wait_for_locks(who, outcome)
        if state.futures.silences:
            blocked = self.answers.blocked(who, begin + SAMPLE_AFTER_US)
            outcome.end_us += np.where(outcome.notifies, blocked, 0)
        beats = outcome.notifies & outcome.moves
        outcome.end_us += np.where(beats, state.round_us[who], 0)
        for topic, rows, versions in fetches:
            self._routes.fetch(topic, who[rows], versions, outcome.end_us[rows])
        return outcome

    def _act(
        self, who: Ints, begin: Times, shares: NDArray[np.int32], knowns: Ints, outcome: PassOutcome
    ) -> None:
        """Release and take queues as each pass decided; ``shares`` and ``knowns`` are (topics,
        n).
        """
        state = self._elements
        held = state.held[self._topics[:, None], who]
        changes = (shares >= 0) & (shares != held)
        place, rows = np.nonzero(changes)
        if not len(rows):
            return
        share = shares[changes]
        outcome.moves = changes.any(axis=0)
        acts = np.flatnonzero(outcome.moves)
        notified = outcome.notifies[acts]  # always for topics without a route
        # dropping an unsubscribed topic does not call messageQueueChanged
        outcome.notifies[rows[knowns[changes] != UNSUBSCRIBED]] = True
        new = np.zeros(len(who), np.int64)
        np.add.at(new, rows, self._sets.sizes(self._sets.combined(added, held[changes], share)))
        new, mine, number = new[acts], who[acts], state.number[who[acts]]
        takes, locks = new > 0, state.takes_locks[mine]
        drop, add, whole = delays_of(state, mine, number, new, locks)
        drop_us = begin[acts] + drop
        last_us = drop_us + np.where(takes, add, 0)
        until_us = drop_us + np.where(takes, whole, 0)
        tail = PASS_TAIL.many(state.draws(Timer.PASS_TAIL, mine, number))
        outcome.end_us[acts] = np.maximum(outcome.end_us[acts], until_us + tail)
        acting = np.searchsorted(acts, rows)
        if self.orderly is not None and locks.any():
            some = acts[locks]
            dropped = self.orderly.drop(
                mine[locks], shares[:, some], changes[:, some], drop_us[locks]
            )
            self.orderly.note_masters(mine[locks], knowns[:, some])
            outcome.notifies[some] = dropped | notified[locks]
            state.asks_us[mine[locks]] = np.where(takes, last_us, NEVER)[locks]
            free = ~locks[acting]
            place, rows, share, acting = place[free], rows[free], share[free], acting[free]
        self._holdings.move(self._topics[place], who[rows], share, drop_us[acting], last_us[acting])

    def _share(
        self, who: Ints, begin: Times, knowns: Ints, outcome: PassOutcome
    ) -> NDArray[np.int32]:
        """Return the share of each pass, (topics, n), given the member lists that brokers
        return.
        """
        state, answers = self._elements, self.answers
        share = np.where(knowns == UNSUBSCRIBED, NO_QUEUE, UNCHANGED).astype(np.int32)
        asks, everything = knowns >= 0, state.broadcasting[who]
        empty = answers.without_queues(who, knowns)
        outcome.notifies |= (asks & empty & ~everything).any(axis=0)
        asks &= ~state.asks_nobody[who]
        if everything.any():
            place, rows = np.nonzero(asks & everything)
            routes = self._first_route[place] + knowns[place, rows]
            share[place, rows] = self._shares.everything(routes)
        place, rows = np.nonzero(asks & ~everything & ~empty)
        mine, seen_us, version = who[rows], begin[rows] + SAMPLE_AFTER_US, knowns[place, rows]
        broker, seed = answers.sampled(place, mine, version), state.seed[mine]
        lists = answers.places(broker, seed, seen_us)
        outcome.sampled[place, rows] = lists
        if state.futures.silences:
            lost = answers.silent(broker, seed, seen_us)
            np.add.at(outcome.timed_out_us, rows[lost], REQUEST_TIMEOUT_US)
        share[place, rows] = self._shares.shares_of(
            state.lifetimes[state.lifetime[mine]],
            self._first_route[place] + version,
            self._lists.hashes_at(lists, seed, seen_us),
            lambda position: self._lists.listed(
                int(lists[position]), int(seed[position]), int(seen_us[position])
            ),
            state.futures.timeline_of[seed],
        )
        outcome.balanced &= (share != REFUSED).all(axis=0)
        return share

    def _fetch(
        self, topic: int, who: Ints, begin: Times, unknown: NDArray[np.bool_], outcome: PassOutcome
    ) -> tuple[Ints, Ints]:
        """Fetch unknown routes before a pass asks for the member list."""
        state = self._elements
        outcome.notifies |= unknown & ~state.is_v4[who]
        asks = unknown & ~state.broadcasting[who] & ~state.empty_is_unknown[who]
        rows = np.flatnonzero(asks)
        versions = self._routes.visible(topic, who[rows], begin[rows])
        outcome.fetched[rows] |= versions != UNKNOWN
        return rows, versions

"""One pass of many elements, all at once, orderly groups' apart (rocketmq.md §3, §7)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rebalance_core.clockwork.batch.answers import Answers, Moves, PassOutcome, SegmentHoldings
from rebalance_core.clockwork.batch.elements import Elements
from rebalance_core.clockwork.batch.known_routes import UNKNOWN, UNSUBSCRIBED, KnownRoutes
from rebalance_core.clockwork.batch.locks import OrderLocks
from rebalance_core.clockwork.batch.member_lists import MemberLists
from rebalance_core.clockwork.batch.shares import NO_QUEUE, REFUSED, UNCHANGED, QueueSets, Shares
from rebalance_core.clockwork.draws import (
    ADD_AFTER,
    COLD_ADD_AFTER,
    COLD_DROP_AFTER,
    DROP_AFTER,
    PASS_TAIL,
    Timer,
    draws_of,
)
from rebalance_core.clockwork.loop.membership import REQUEST_TIMEOUT_US
from rebalance_core.clockwork.loop.rebalancing import COLD_PASSES, SAMPLE_AFTER_US, SLOW_PASSES
from rebalance_core.clockwork.options import MS_US
from rebalance_core.clockwork.script import RouteVersion
from rebalance_core.clockwork.ticks import NEVER, Times
from rebalance_core.model.times import REBALANCE_LATER_MS

# Passes of orderly groups: given up, then taken as far as locks are granted (rocketmq.md §7).

Ints = NDArray[np.int64]


class OrderlyPasses:
    """The two steps of passes that take order locks.

    Args:
        elements: of the stretch.
        answers: of the brokers.
        sets: of queues.
        holdings: what is held.
        locks: of the brokers.
    """

    def __init__(
        self,
        elements: Elements,
        answers: Answers,
        sets: QueueSets,
        holdings: SegmentHoldings,
        locks: OrderLocks,
    ) -> None:
        self._elements, self._answers = elements, answers
        self._sets, self._holdings, self._locks = sets, holdings, locks
        self._topics = elements.futures.topics
        script = elements.futures.script
        self._broker = np.array(script.broker_of_queue, np.int64)
        self._masters = list(script.masters)
        self._masterless = [_masterless(versions, self._masters) for versions in script.routes]

    def drop(
        self,
        mine: Ints,
        acts: Ints,
        shares: list[NDArray[np.int32]],
        changes: list[NDArray[np.bool_]],
        drop_us: Times,
    ) -> NDArray[np.bool_]:
        """The first step of passes that take order locks: what is not assigned is given up."""
        its = self._elements
        dropped = np.zeros(len(mine), bool)
        for topic, share, changed in zip(self._topics, shares, changes, strict=True):
            held, wanted = its.held[topic][mine], share[acts]
            wanted = np.where(changed[acts], wanted, held)
            its.asked[topic][mine] = wanted
            kept = self._sets.combined(frozenset.intersection, held, wanted)
            rows = np.flatnonzero(kept != held)
            if len(rows):
                dropped[rows] = True
                gone = self._sets.combined(frozenset.difference, held[rows], kept[rows])
                places, queues = self._sets.pairs(gone)
                whose = mine[rows][places]
                lives = its.lives[its.life[whose]]
                self._locks.give_up(lives, queues, its.seed[whose], drop_us[rows][places])
                self._holdings.move(topic, mine[rows], kept[rows], drop_us[rows], drop_us[rows])
        return dropped

    def note_masters(self, mine: Ints, acts: Ints, knowns: list[Ints]) -> None:
        """Put down which masters passes know no address of; ``knowns`` are versions by topic."""
        for number in range(len(self._masters)):
            lacks = [
                self._masterless[topic][number, known[acts]]
                for topic, known in zip(self._topics, knowns, strict=True)
            ]
            self._elements.masterless[number, mine] = np.any(lacks, axis=0)

    def wait_for_locks(self, who: Ints, outcome: PassOutcome) -> None:
        """Put down what passes that are to ask for locks have come to."""
        its = self._elements
        asks = np.flatnonzero(its.asks_us[who] < NEVER)
        mine = who[asks]
        its.ends_us[mine] = outcome.end_us[asks]
        its.balances[mine] = outcome.balanced[asks]
        its.beats[mine] = outcome.notifies[asks]
        outcome.notifies[asks] = False

    def ask_for_locks(self, who: Ints) -> PassOutcome:
        """The second step: what is assigned is taken, as far as its locks are granted."""
        its = self._elements
        at = its.asks_us[who]
        refused, added = np.zeros(len(who), bool), np.zeros(len(who), bool)
        for topic in self._topics:
            held = its.held[topic][who]
            wanted = self._sets.combined(_added, held, its.asked[topic][who])
            places, queues = self._sets.pairs(wanted)
            if not len(places):
                continue
            lives = its.lives[its.life[who]][places]
            asked = np.ones(len(queues), bool)
            for number, broker in enumerate(self._masters):
                asked &= ~its.masterless[number, who][places] | (self._broker[queues] != broker)
            granted = self._locks.ask(lives, queues, its.seed[who][places], at[places], asked)
            got = self._sets.granted(wanted, places, queues, granted)
            refused |= got != wanted
            rows = np.flatnonzero(got != 0)
            added[rows] = True
            now = self._sets.combined(frozenset.union, held[rows], got[rows])
            if len(rows):
                self._holdings.move(topic, who[rows], now, at[rows], at[rows])
        its.asks_us[who] = NEVER
        notifies = (added & its.heartbeats[who]) | its.beats[who]
        in_vain_us = np.maximum(its.used[who] + its.length[who], at)
        end = np.where(added, its.ends_us[who], in_vain_us)
        end += np.where(notifies, self._answers.blocked(who, at), 0)
        later = refused & ~its.is_v4[who]
        its.wake_later(who[later], end[later] + REBALANCE_LATER_MS * MS_US)
        return PassOutcome(
            end_us=end,
            balanced=its.balances[who] & ~refused,
            notifies=notifies,
            sampled=[],
            fetched=np.zeros(len(who), bool),
            timed_out_us=np.zeros(len(who), np.int64),
        )


def _added(before: frozenset[int], after: frozenset[int]) -> frozenset[int]:
    return after - before


def _masterless(versions: tuple[RouteVersion, ...], brokers: list[int]) -> NDArray[np.bool_]:
    """(brokers, versions + 2); the last two columns, UNSUBSCRIBED and UNKNOWN, are empty."""
    found = np.zeros((len(brokers), len(versions) + 2), bool)
    for number, version in enumerate(versions):
        found[:, number] = [broker in version.masterless for broker in brokers]
    return found


# One pass of many elements: views in; what is held and when what changes, out.


class Passes:
    """Runs passes in a stretch.

    Args:
        elements: of the stretch.
        routes: what they know.
        lists: of the brokers.
        shares: by topic.
        sets: of queues.
        moves: changes of what is held are put down here.
        locks: of the brokers, if the group is orderly.
    """

    def __init__(
        self,
        elements: Elements,
        routes: KnownRoutes,
        lists: MemberLists,
        shares: list[Shares],
        sets: QueueSets,
        moves: list[Moves],
        locks: OrderLocks | None,
    ) -> None:
        self._sets, self._elements, self._routes = sets, elements, routes
        self._shares, self._topics = shares, elements.futures.topics
        self._answers = Answers(elements, routes, lists)
        self._holdings = SegmentHoldings(elements, moves)
        self._orderly = None
        if locks is not None:
            self._orderly = OrderlyPasses(elements, self._answers, sets, self._holdings, locks)

    def run(self, who: Ints, begin: Times) -> PassOutcome:
        """One pass each of the elements ``who``, no element twice."""
        its = self._elements
        count = len(who)
        outcome = PassOutcome(
            end_us=begin + its.length[who],
            balanced=np.ones(count, bool),
            notifies=its.always_notifies(who, begin),
            sampled=[],
            fetched=np.zeros(count, bool),
            timed_out_us=np.zeros(count, np.int64),
        )
        shares, knowns = [], []
        fetches: list[tuple[int, Ints, Ints]] = []
        for topic in self._topics:
            known = self._routes.of_pass(topic, who, begin)
            knowns.append(known)
            shares.append(self._share(topic, who, begin, known, outcome))
            if (known == UNKNOWN).any():
                fetches.append((topic, *self._fetch(topic, who, begin, known, outcome)))
        outcome.end_us += outcome.timed_out_us
        self._act(who, begin + outcome.timed_out_us, shares, knowns, outcome)
        outcome.notifies &= its.heartbeats[who]
        if self._orderly is not None:
            self._orderly.wait_for_locks(who, outcome)
        blocked = self._answers.blocked(who, begin + SAMPLE_AFTER_US)
        outcome.end_us += np.where(outcome.notifies, blocked, 0)
        for topic, rows, versions in fetches:
            self._routes.fetch(topic, who[rows], versions, outcome.end_us[rows])
        return outcome

    def _act(
        self, who: Ints, begin: Times, shares: list[NDArray[np.int32]], knowns: list[Ints],
        outcome: PassOutcome,
    ) -> None:  # fmt: skip
        """Give up and take what was decided."""
        its = self._elements
        changes = [
            (share >= 0) & (share != its.held[topic][who])
            for topic, share in zip(self._topics, shares, strict=True)
        ]
        acts = np.flatnonzero(np.any(changes, axis=0)) if changes else np.empty(0, np.int64)
        if not len(acts):
            return
        told = outcome.notifies[acts]  # of topics without a route, whatever else is done
        for changed, known in zip(changes, knowns, strict=True):
            # what is subscribed no more goes without messageQueueChanged
            outcome.notifies |= changed & (known != UNSUBSCRIBED)
        mine, number = who[acts], its.number[who[acts]]
        takes = np.zeros(len(acts), bool)
        for topic, share, changed in zip(self._topics, shares, changes, strict=True):
            rows = changed[acts]
            takes[rows] |= self._sets.adds(its.held[topic][mine[rows]], share[acts[rows]])
        words = its.words[mine]
        new = ~its.observed[mine]
        draws, slow = draws_of(words, Timer.DROP_AFTER, number), new & (number < SLOW_PASSES)
        drop = np.where(slow, COLD_DROP_AFTER.many(draws), DROP_AFTER.many(draws))
        drop_us = begin[acts] + drop
        draws, cold = draws_of(words, Timer.ADD_AFTER, number), new & (number < COLD_PASSES)
        add = np.where(cold, COLD_ADD_AFTER.many(draws), ADD_AFTER.many(draws))
        last_us = drop_us + np.where(takes, add, 0)
        tail = PASS_TAIL.many(draws_of(words, Timer.PASS_TAIL, number))
        outcome.end_us[acts] = np.maximum(outcome.end_us[acts], last_us + tail)
        locks = its.takes_locks[mine]
        if self._orderly is not None and locks.any():
            dropped = self._orderly.drop(mine[locks], acts[locks], shares, changes, drop_us[locks])
            self._orderly.note_masters(mine[locks], acts[locks], knowns)
            outcome.notifies[acts[locks]] = dropped | told[locks]
            its.asks_us[mine[locks]] = np.where(takes, last_us, NEVER)[locks]
        for topic, share, changed in zip(self._topics, shares, changes, strict=True):
            rows = changed[acts] & ~locks
            if rows.any():
                self._holdings.move(
                    topic, mine[rows], share[acts[rows]], drop_us[rows], last_us[rows]
                )

    def _share(
        self, topic: int, who: Ints, begin: Times, known: Ints, outcome: PassOutcome
    ) -> NDArray[np.int32]:
        its = self._elements
        share = np.where(known == UNSUBSCRIBED, NO_QUEUE, UNCHANGED).astype(np.int32)
        place = np.full(len(who), -1, np.int64)
        aware = (known >= 0) & ~its.asks_nobody[who]
        everything = its.broadcasting[who]
        if everything.any():
            rows = np.flatnonzero(everything & aware)
            share[rows] = self._shares[topic].everything(known[rows])
        rows = np.flatnonzero(aware & ~everything & self._answers.has_queues(topic, who, known))
        if len(rows):
            mine = who[rows]
            broker = self._answers.sampled(topic, mine, known[rows])
            seen_us = begin[rows] + SAMPLE_AFTER_US
            place[rows] = self._answers.places(broker, its.seed[mine], seen_us)
            lost = self._answers.silent(broker, its.seed[mine], seen_us)
            outcome.timed_out_us[rows] += np.where(lost, REQUEST_TIMEOUT_US, 0)
            hashes = self._answers.hashes(mine, place[rows], begin[rows] + SAMPLE_AFTER_US)
            share[rows] = self._shares[topic].of(
                its.lives[its.life[mine]],
                known[rows],
                hashes,
                lambda at: self._answers.members(mine[at], place[rows[at]], begin[rows[at]]),
            )
        outcome.notifies |= (
            ~everything & (known >= 0) & ~self._answers.has_queues(topic, who, known)
        )
        outcome.sampled.append(place)
        outcome.balanced &= share != REFUSED
        return share

    def _fetch(
        self, topic: int, who: Ints, begin: Times, known: Ints, outcome: PassOutcome
    ) -> tuple[Ints, Ints]:
        """A pass that knows no route asks for it on its way to the member list."""
        its = self._elements
        unknown = known == UNKNOWN
        outcome.notifies |= unknown & ~its.is_v4[who]
        asks = unknown & ~its.broadcasting[who] & ~its.empty_is_unknown[who]
        rows = np.flatnonzero(asks)
        versions = self._routes.visible(topic, who[rows], begin[rows])
        outcome.fetched[rows] |= versions != UNKNOWN
        return rows, versions

    def ask_for_locks(self, who: Ints) -> PassOutcome:
        """The second step of passes of orderly groups."""
        assert self._orderly is not None
        return self._orderly.ask_for_locks(who)

    def calm(self, who: Ints, at_us: Times) -> NDArray[np.bool_]:
        """`Answers.calm`."""
        return self._answers.calm(who, at_us)

"""One pass of many elements: views in, what is held, and when what changes, out (rocketmq.md §3).

Upstream: ``RebalanceImpl.doRebalance``, as `client.rebalance_pass` has it for groups without order
locks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rebalance_core.clockwork.batch.elements import Elements
from rebalance_core.clockwork.batch.known_routes import UNKNOWN, KnownRoutes
from rebalance_core.clockwork.batch.member_lists import MemberLists
from rebalance_core.clockwork.batch.order_locks import OrderLocks
from rebalance_core.clockwork.batch.shares import REFUSED, UNCHANGED, QueueSets, Shares
from rebalance_core.clockwork.delays import ADD_AFTER, COLD_ADD_AFTER, DROP_AFTER, PASS_TAIL
from rebalance_core.clockwork.draws import DRAW_BITS, Timer, draws_of
from rebalance_core.clockwork.loop.heartbeats import REQUEST_TIMEOUT_US
from rebalance_core.clockwork.loop.pass_effects import COLD_PASSES
from rebalance_core.clockwork.loop.rebalancing import SAMPLE_AFTER_US
from rebalance_core.clockwork.options import MS_US
from rebalance_core.clockwork.ticks import NEVER, Times
from rebalance_core.model.timers import REBALANCE_LATER_MS

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


@dataclass(eq=False)
class Outcome:
    """What a round of passes did.

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
        self._sets, self._locks = sets, locks
        self._elements, self._routes, self._lists = elements, routes, lists
        self._shares, self._moves = shares, moves
        self._versions = elements.futures.script.routes
        self._topics = elements.futures.topics
        self._brokers = [
            [np.array(version.brokers or (0,), np.int64) for version in versions]
            for versions in self._versions
        ]

    def run(self, who: Ints, begin: Times) -> Outcome:
        """One pass each of the elements ``who``, no element twice."""
        its = self._elements
        count = len(who)
        outcome = Outcome(
            end_us=begin + its.length[who],
            balanced=np.ones(count, bool),
            notifies=its.notifies_always[who].copy(),
            sampled=[],
            fetched=np.zeros(count, bool),
            timed_out_us=np.zeros(count, np.int64),
        )
        shares = []
        fetches: list[tuple[int, Ints, Ints]] = []
        for topic in self._topics:
            known = self._routes.at(topic, who, begin)
            shares.append(self._share(topic, who, begin, known, outcome))
            if (known == UNKNOWN).any():
                fetches.append((topic, *self._fetch(topic, who, begin, known, outcome)))
        outcome.end_us += outcome.timed_out_us
        self._act(who, begin + outcome.timed_out_us, shares, outcome)
        outcome.notifies &= its.heartbeats[who]
        if self._locks is not None:
            self._wait_for_locks(who, outcome)
        blocked = self._blocked(who, begin + SAMPLE_AFTER_US)
        outcome.end_us += np.where(outcome.notifies, blocked, 0)
        for topic, whose, versions in fetches:
            known = self._routes.fetched[topic]
            known[whose] = np.maximum(known[whose], versions)
        return outcome

    def _act(
        self, who: Ints, begin: Times, shares: list[NDArray[np.int32]], outcome: Outcome
    ) -> None:
        """Give up and take what was decided."""
        its = self._elements
        changes = [
            (share >= 0) & (share != its.held[topic][who])
            for topic, share in zip(self._topics, shares, strict=True)
        ]
        acts = np.flatnonzero(np.any(changes, axis=0)) if changes else np.empty(0, np.int64)
        if not len(acts):
            return
        outcome.notifies[acts] = True
        mine, number = who[acts], its.number[who[acts]]
        takes = np.zeros(len(acts), bool)
        for topic, share, changed in zip(self._topics, shares, changes, strict=True):
            rows = changed[acts]
            takes[rows] |= self._sets.adds(its.held[topic][mine[rows]], share[acts[rows]])
        words = its.words[mine]
        drop_us = begin[acts] + DROP_AFTER.many(draws_of(words, Timer.DROP_AFTER, number))
        draws = draws_of(words, Timer.ADD_AFTER, number)
        cold = (number < COLD_PASSES) & ~its.observed[mine]
        add = np.where(cold, COLD_ADD_AFTER.many(draws), ADD_AFTER.many(draws))
        last_us = drop_us + np.where(takes, add, 0)
        tail = PASS_TAIL.many(draws_of(words, Timer.PASS_TAIL, number))
        outcome.end_us[acts] = np.maximum(outcome.end_us[acts], last_us + tail)
        if self._locks is not None:
            dropped = self._drop(mine, acts, shares, changes, drop_us)
            outcome.notifies[acts] = dropped | its.notifies_always[mine]
            its.asks_us[mine] = np.where(takes, last_us, NEVER)
            return
        for topic, share, changed in zip(self._topics, shares, changes, strict=True):
            rows = changed[acts]
            if rows.any():
                self._move(topic, mine[rows], share[acts[rows]], drop_us[rows], last_us[rows])

    def _drop(
        self,
        mine: Ints,
        acts: Ints,
        shares: list[NDArray[np.int32]],
        changes: list[NDArray[np.bool_]],
        drop_us: Times,
    ) -> NDArray[np.bool_]:
        """The first step of passes that take order locks: what is not assigned is given up."""
        assert self._locks is not None
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
                self._move(topic, mine[rows], kept[rows], drop_us[rows], drop_us[rows])
        return dropped

    def _wait_for_locks(self, who: Ints, outcome: Outcome) -> None:
        """Put down what passes that are to ask for locks have come to."""
        its = self._elements
        asks = np.flatnonzero(its.asks_us[who] < NEVER)
        mine = who[asks]
        its.ends_us[mine] = outcome.end_us[asks]
        its.balances[mine] = outcome.balanced[asks]
        its.beats[mine] = outcome.notifies[asks]
        outcome.notifies[asks] = False

    def ask_for_locks(self, who: Ints) -> Outcome:
        """The second step: what is assigned is taken, as far as its locks are granted."""
        assert self._locks is not None
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
            granted = self._locks.ask(lives, queues, its.seed[who][places], at[places])
            got = self._sets.granted(wanted, places, queues, granted)
            refused |= got != wanted
            rows = np.flatnonzero(got != 0)
            added[rows] = True
            now = self._sets.combined(frozenset.union, held[rows], got[rows])
            if len(rows):
                self._move(topic, who[rows], now, at[rows], at[rows])
        its.asks_us[who] = NEVER
        notifies = (added & its.heartbeats[who]) | its.beats[who]
        end = its.ends_us[who] + np.where(notifies, self._blocked(who, at), 0)
        later = refused & ~its.is_v4[who]
        crowded = its.wake_later(who[later], end[later] + REBALANCE_LATER_MS * MS_US)
        self._locks.odd[its.seed[crowded]] = True
        return Outcome(
            end_us=end,
            balanced=its.balances[who] & ~refused,
            notifies=notifies,
            sampled=[],
            fetched=np.zeros(len(who), bool),
            timed_out_us=np.zeros(len(who), np.int64),
        )

    def _share(
        self, topic: int, who: Ints, begin: Times, known: Ints, outcome: Outcome
    ) -> NDArray[np.int32]:
        its = self._elements
        share = np.full(len(who), UNCHANGED, np.int32)
        place = np.full(len(who), -1, np.int64)
        aware = known != UNKNOWN
        aware &= ~its.asks_nobody[who]
        everything = its.broadcasting[who]
        if everything.any():
            rows = np.flatnonzero(everything & aware)
            share[rows] = self._shares[topic].everything(known[rows])
        rows = np.flatnonzero(aware & ~everything & self._has_queues(topic, who, known))
        if len(rows):
            mine = who[rows]
            broker = self._sampled(topic, mine, known[rows])
            seen_us = begin[rows] + SAMPLE_AFTER_US
            place[rows] = self.places(broker, its.seed[mine], seen_us)
            lost = self._silent(broker, its.seed[mine], seen_us)
            outcome.timed_out_us[rows] += np.where(lost, REQUEST_TIMEOUT_US, 0)
            hashes = self._hashes(mine, place[rows], begin[rows] + SAMPLE_AFTER_US)
            share[rows] = self._shares[topic].of(
                its.lives[its.life[mine]],
                known[rows],
                hashes,
                lambda at: self._members(mine[at], place[rows[at]], begin[rows[at]]),
            )
        outcome.notifies |= ~everything & (known != UNKNOWN) & ~self._has_queues(topic, who, known)
        outcome.sampled.append(place)
        outcome.balanced &= share != REFUSED
        return share

    def _has_queues(self, topic: int, who: Ints, known: Ints) -> NDArray[np.bool_]:
        """From 5.5.0 on a route without readable queues is like none."""
        empty = np.array([not version.queues for version in self._versions[topic]] + [False])
        return ~(empty[known] & self._elements.empty_is_unknown[who])

    def _sampled(self, topic: int, who: Ints, known: Ints) -> Ints:
        """Which broker each pass asks for the members."""
        its = self._elements
        draws = draws_of(its.words[who], Timer.SAMPLE + topic, its.number[who])
        broker = np.zeros(len(who), np.int64)
        for version in np.unique(known).tolist():
            rows = np.flatnonzero(known == version)
            brokers = self._brokers[topic][version]
            at = (draws[rows] * np.uint64(len(brokers))) >> np.uint64(DRAW_BITS)
            broker[rows] = brokers[at.astype(np.int64)]
        return broker

    def _silent(self, broker: Ints, seed: Ints, at_us: Times) -> NDArray[np.bool_]:
        """True where the broker's host is lost, so that requests to it time out."""
        found = np.zeros(len(broker), bool)
        for number, since, until in self._elements.futures.silences:
            found |= (broker == number) & (since[seed] <= at_us) & (at_us < until[seed])
        return found

    def _blocked(self, who: Ints, at_us: Times) -> Times:
        """How long a heartbeat waits for lost hosts (rocketmq.md §6.1)."""
        its = self._elements
        found = np.zeros(len(who), np.int64)
        seed = its.seed[who]
        for broker, since, until in its.futures.silences:
            silent = (since[seed] <= at_us) & (at_us < until[seed])
            if silent.any():
                found += silent & self._routes.reads(broker, who, at_us)
        found = np.where(its.beats_at_once[who], np.minimum(found, 1), found)
        return found * REQUEST_TIMEOUT_US

    def places(self, broker: Ints, seed: Ints, at_us: Times) -> Ints:
        """The list of a broker's life at a time; -1: it is down."""
        found = np.full(len(broker), -1, np.int64)
        for number, place in enumerate(self._lists.lists):
            up = (broker == place.broker) & (place.up[seed] <= at_us) & (at_us < place.down[seed])
            found[up] = number
        return found

    def _hashes(self, who: Ints, place: Ints, at_us: Times) -> NDArray[np.uint64]:
        found = np.zeros(len(who), np.uint64)
        seed = self._elements.seed[who]
        for number, each in enumerate(self._lists.lists):
            rows = np.flatnonzero(place == number)
            if len(rows):
                found[rows] = self._lists.hash_at(each, seed[rows], at_us[rows])
        return found

    def _members(self, who: int, place: int, begin: int) -> tuple[str, ...]:
        if place < 0:
            return ()
        seed = int(self._elements.seed[who])
        return self._lists.members_at(self._lists.lists[place], seed, int(begin) + SAMPLE_AFTER_US)

    def _move(
        self, topic: int, who: Ints, share: NDArray[np.int32], drop_us: Times, add_us: Times
    ) -> None:
        held = self._elements.held[topic]
        self._moves.append(Moves(topic, self._elements.ids[who], held[who], share, drop_us, add_us))
        held[who] = share

    def _fetch(
        self, topic: int, who: Ints, begin: Times, known: Ints, outcome: Outcome
    ) -> tuple[Ints, Ints]:
        """A pass that knows no route asks for it on its way to the member list."""
        its = self._elements
        unknown = known == UNKNOWN
        outcome.notifies |= unknown & ~its.is_v4[who]
        asks = unknown & ~its.broadcasting[who] & ~its.empty_is_unknown[who]
        rows = np.flatnonzero(asks)
        versions = self._routes.visible(topic, who[rows], begin[rows])
        outcome.fetched[rows] |= versions != UNKNOWN
        return who[rows], versions

    def calm(self, who: Ints, at_us: Times) -> NDArray[np.bool_]:
        """True where any broker that the element may ask would answer alike at a time."""
        its = self._elements
        calm = np.ones(len(who), bool)
        seed = its.seed[who]
        asks = ~its.broadcasting[who] & ~its.asks_nobody[who]
        for topic in self._topics:
            known = self._routes.at(topic, who, at_us)
            calm &= known != UNKNOWN
            for version in np.unique(known[known != UNKNOWN]).tolist():
                rows = np.flatnonzero((known == version) & asks & calm)
                first: NDArray[np.uint64] | None = None
                for broker in self._brokers[topic][version].tolist():
                    places = self.places(np.full(len(rows), broker), seed[rows], at_us[rows])
                    hashes = self._hashes(who[rows], places, at_us[rows])
                    calm[rows] &= ~self._silent(np.full(len(rows), broker), seed[rows], at_us[rows])
                    first = hashes if first is None else first
                    calm[rows] &= hashes == first
        return calm


def _added(before: frozenset[int], after: frozenset[int]) -> frozenset[int]:
    return after - before

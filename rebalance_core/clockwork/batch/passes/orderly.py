"""Passes of orderly groups: given up, then taken as far as locks are granted (rocketmq.md §7)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rebalance_core.clockwork.batch.elements import Elements
from rebalance_core.clockwork.batch.locks import OrderLocks
from rebalance_core.clockwork.batch.passes.answers import Answers
from rebalance_core.clockwork.batch.passes.moves import Holdings
from rebalance_core.clockwork.batch.passes.outcome import Outcome
from rebalance_core.clockwork.batch.shares import QueueSets
from rebalance_core.clockwork.options import MS_US
from rebalance_core.clockwork.script import RouteVersion
from rebalance_core.clockwork.ticks import NEVER, Times
from rebalance_core.model.times import REBALANCE_LATER_MS

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
        holdings: Holdings,
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

    def wait_for_locks(self, who: Ints, outcome: Outcome) -> None:
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
        return Outcome(
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

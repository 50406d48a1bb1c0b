"""Passes of orderly groups: they release queues, then take those whose locks are granted
(rocketmq.md §7).
"""

import numpy as np
from numpy.typing import NDArray

from rebalance_core.kernels.segments import Ints
from rebalance_core.model.times import REBALANCE_LATER_MS
from rebalance_core.timing.group_timeline import RouteVersion
from rebalance_core.timing.options import MS_US
from rebalance_core.timing.timer_periods import BEFORE_ALL, NEVER, Times
from rebalance_core.timing.vectorized.answers import Answers
from rebalance_core.timing.vectorized.elements import Elements
from rebalance_core.timing.vectorized.locks import OrderLocks
from rebalance_core.timing.vectorized.pass_delays import delays_of
from rebalance_core.timing.vectorized.pass_outcome import PassOutcome
from rebalance_core.timing.vectorized.segment_holdings import SegmentHoldings
from rebalance_core.timing.vectorized.shares import (
    NO_QUEUE,
    QueueSets,
    added,
)

LATER_US = REBALANCE_LATER_MS * MS_US
"""The time from the end of a pass that was refused a lock to the next pass (5.0 and later)."""

_AT_ONCE, _DRAWS = 32, 1 << 20
"""The number of ineffective passes that are processed together, per element and in total; limits
memory.
"""


class OrderlyPasses:
    """The two steps of passes that take order locks.

    Args:
        elements: the elements of the segment.
        answers: the answers of the brokers.
        sets: sets of queues.
        holdings: the queues that are held.
        locks: the locks of the brokers.
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
        self._topics = np.array(elements.futures.topics, np.int64)
        timeline = elements.futures.timeline
        self._broker = np.array(timeline.broker_of_queue, np.int64)
        self._masters = list(timeline.masters)
        self._masterless = [_masterless(versions, self._masters) for versions in timeline.routes]
        self._first = np.zeros(len(timeline.queues) * len(elements.futures.seeds), np.int64)

    def drop(
        self, mine: Ints, shares: NDArray[np.int32], changes: NDArray[np.bool_], drop_us: Times
    ) -> NDArray[np.bool_]:
        """Run the first step of passes that take order locks: release queues that are no longer
        assigned.
        """
        state = self._elements
        cells = np.ix_(self._topics, mine)
        held = state.held[cells]
        wanted = np.where(changes, shares, held)
        state.asked[cells] = wanted
        kept = self._sets.combined(frozenset.intersection, held, wanted)
        drops = kept != held
        place, rows = np.nonzero(drops)
        at_us = drop_us[rows]
        self._holdings.move(self._topics[place], mine[rows], kept[drops], at_us, at_us)
        gone = self._sets.combined(frozenset.difference, held[drops], kept[drops])
        places, queues = self._sets.pairs(gone)
        rows = rows[places]
        lifetimes = state.lifetimes[state.lifetime[mine[rows]]]
        self._locks.give_up(lifetimes, queues, state.seed[mine[rows]], drop_us[rows])
        return np.asarray(drops.any(axis=0), bool)

    def note_masters(self, mine: Ints, knowns: Ints) -> None:
        """Record the masters whose addresses passes do not know; ``knowns`` has route versions by
        topic.
        """
        for number in range(len(self._masters)):
            lacks = [
                self._masterless[topic][number, version]
                for topic, version in zip(self._topics, knowns, strict=True)
            ]
            self._elements.masterless[number, mine] = np.any(lacks, axis=0)

    def wait_for_locks(self, who: Ints, outcome: PassOutcome) -> None:
        """Save the outcome of passes that have yet to request their locks."""
        state = self._elements
        asks = np.flatnonzero(state.asks_us[who] < NEVER)
        mine = who[asks]
        state.ends_us[mine] = outcome.end_us[asks]
        state.balances[mine] = outcome.balanced[asks]
        state.beats[mine] = outcome.notifies[asks]
        outcome.notifies[asks] = False

    def first_to_ask(self, who: Ints) -> Ints:
        """Return the members in ``who`` that no other member precedes at any queue's lock."""
        state = self._elements
        who = who[np.argsort(state.asks_us[who], kind="stable")]
        places, queues = self._sets.pairs(self._wanted(who).reshape(-1))
        rank = places % len(who)
        columns = queues * len(state.futures.seeds) + state.seed[who[rank]]
        self._first[columns] = len(who)
        np.minimum.at(self._first, columns, rank)
        precedes = np.ones(len(who), bool)
        precedes[rank[self._first[columns] < rank]] = False
        return np.asarray(who[precedes], np.int64)

    def ask_for_locks(self, who: Ints) -> tuple[PassOutcome, Times]:
        """Run the second step: take the assigned queues whose locks are granted.

        Also return how long each refused member will be refused all of its locks, unless members
        release or get more than is recorded; `BEFORE_ALL` for a member that got all of its locks.
        """
        state = self._elements
        asks_us, wanted = state.asks_us[who], self._wanted(who)
        places, queues = self._sets.pairs(wanted.reshape(-1))
        rows = places % len(who)
        lifetimes, seeds = state.lifetimes[state.lifetime[who]][rows], state.seed[who][rows]
        asked = np.ones(len(queues), bool)
        for number, broker in enumerate(self._masters):
            asked &= ~state.masterless[number, who][rows] | (self._broker[queues] != broker)
        granted = self._locks.ask(lifetimes, queues, seeds, asks_us[rows], asked)
        got = self._sets.granted(wanted.reshape(-1), places, queues, granted).reshape(wanted.shape)
        refused, added = (got != wanted).any(axis=0), (got != NO_QUEUE).any(axis=0)
        refused_until = np.where(refused, NEVER, BEFORE_ALL)
        lost = rows[~granted]
        until = self._locks.refused_until(queues[~granted], seeds[~granted], asks_us[lost])
        np.minimum.at(refused_until, lost, np.where(asked[~granted], until, NEVER))
        now = self._sets.combined(frozenset.union, state.held[np.ix_(self._topics, who)], got)
        place, rows = np.nonzero(got != NO_QUEUE)
        self._holdings.move(
            self._topics[place], who[rows], now[place, rows], asks_us[rows], asks_us[rows]
        )
        state.asks_us[who] = NEVER
        notifies = (added & state.heartbeats[who]) | state.beats[who]
        end = np.where(
            added, state.ends_us[who], np.maximum(state.used[who] + state.length[who], asks_us)
        )
        end += np.where(notifies, self._answers.blocked(who, asks_us), 0)
        end += np.where(notifies & added, state.round_us[who], 0)
        later = refused & ~state.is_v4[who]
        state.wake_later(who[later], end[later] + LATER_US)
        outcome = PassOutcome(
            end_us=end,
            balanced=state.balances[who] & ~refused,
            notifies=notifies,
            moves=added,
            sampled=np.empty((0, len(who)), np.int64),
            fetched=np.zeros(len(who), bool),
            timed_out_us=np.zeros(len(who), np.int64),
        )
        return outcome, refused_until

    def retry_in_vain(self, who: Ints, until_us: Times) -> None:
        """Skip the ineffective passes that follow a refused pass and end before a time.

        They may be started only by the wake-ups that such passes schedule for themselves.
        """
        state = self._elements
        used, last_end, later = state.used[who], state.last_end[who], state.later_us[:, who]
        begun, columns = np.zeros(len(who), np.int64), np.arange(len(who))
        wait, least = state.wait[who], state.min_interval[who]
        ahead = np.arange(min(_AT_ONCE, 1 + _DRAWS // len(who)))[:, None]
        retries, wakes_later = np.ones(len(who), bool), ~state.is_v4[who]
        new = self._sets.sizes(self._wanted(who)).sum(axis=0)
        while retries.any():
            number = state.number[who] + int(begun.max()) + ahead
            drop, add, _ = delays_of(state, who, number, new, state.takes_locks[who])
            for length in np.maximum(drop + add, state.length[who]):
                soonest = np.where(later > used, later, NEVER).min(axis=0, initial=NEVER)
                begin = np.minimum(last_end + wait, np.maximum(soonest, last_end + least))
                end = begin + length
                retries &= end < until_us
                if not retries.any():
                    break
                used = np.where(retries, begin, used)
                last_end = np.where(retries, end, last_end)
                begun += retries
                if len(later):  # the pass has used up the earliest wake-up
                    slot = later.argmin(axis=0), columns
                    later[slot] = np.where(retries & wakes_later, end + LATER_US, later[slot])
        state.used[who], state.last_end[who], state.later_us[:, who] = used, last_end, later
        state.number[who] += begun

    def _wanted(self, who: Ints) -> NDArray[np.int32]:
        """Return (topics, who) the numbers of the queue sets whose locks each element requests."""
        cells = np.ix_(self._topics, who)
        return self._sets.combined(added, self._elements.held[cells], self._elements.asked[cells])


def _masterless(versions: tuple[RouteVersion, ...], brokers: list[int]) -> NDArray[np.bool_]:
    """Return (brokers, versions + 2) whether a version lacks the broker's master; the last two
    columns, for UNSUBSCRIBED and UNKNOWN, are False.
    """
    masterless = np.zeros((len(brokers), len(versions) + 2), bool)
    for number, version in enumerate(versions):
        masterless[:, number] = [broker in version.masterless for broker in brokers]
    return masterless

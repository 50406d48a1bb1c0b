"""Estimates how many messages the new owner of a queue reads again, and how long messages wait.

Each pull request carries the client's consumed offset (``commitOffset``), so the broker's offset is
about one message old while messages arrive, and up to 5 s old otherwise. The shares come from
recorded rolling restarts (``python -m tests.recordings.rollouts.copies``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rebalance_core.kernels.segments import Bools, Ints
from rebalance_core.model.group_settings import PUSH
from rebalance_core.model.times import FIRST_PULL_DELAY_MS
from rebalance_core.model.versions import parse_version
from rebalance_core.timing.draws import DRAW_BITS, Timer, all_below, uniforms
from rebalance_core.timing.group_timeline import GroupTimeline
from rebalance_core.timing.handovers import FIRST_PULL_WAITS, Handovers
from rebalance_core.timing.holdings import MeasuredHoldings
from rebalance_core.timing.message_facts import MILLI, UNKNOWN, Floats, MessageFacts
from rebalance_core.timing.options import MS_US, ClockOptions
from rebalance_core.timing.ticks import Ticks
from rebalance_core.timing.timer_periods import BEFORE_ALL, NEVER

CONSUME_THREADS = 20
"""DefaultMQPushConsumer.consumeThreadMin: the number of handlers that a concurrent client runs at
once.
"""
ONE_MORE = ((1, 1.0), (50, 0.55), (300, 0.4), (1_000, 0.1))
"""(gap ms, share): the share of hand-overs in which the giver's last message is not yet committed,
if the taker asks at most this long after the drop (or before it), and both remain members of a
concurrent group.

It adds to the messages in handlers. A member that leaves gracefully commits everything else.
"""
ONE_MORE_ORDERLY = 0.06
"""The same for an orderly group, after any gap."""
_LATE_AFTER_MS = 1_000
"""A message that waits longer is late."""


@dataclass(frozen=True, eq=False)
class Consumption:
    """How messages arrive in a group's queues and are consumed, with one value per hand-over.

    Attributes:
        rate: arriving messages per ms; NaN if unknown.
        speed: messages per ms that an owner can read from a queue; inf if it reads them at once.
        handler_ms: the handler's time per message.
        first_pull_ms: the time from taking a queue to the first pull.
    """

    rate: Floats
    speed: float
    handler_ms: int
    first_pull_ms: int

    @classmethod
    def from_observations(
        cls,
        moved: Handovers,
        facts: MessageFacts,
        timeline: GroupTimeline,
        options: ClockOptions,
        change_ms: Ints,
    ) -> Consumption:
        """Derive the consumption from the observations around each change and from the options."""
        at_once = 1 if timeline.settings.ordered else CONSUME_THREADS
        handler_ms = options.handler_ms
        settings = timeline.settings
        waits = (
            settings.consumer_type == PUSH
            and parse_version(settings.client_version) >= FIRST_PULL_WAITS
        )
        return cls(
            rate=facts.rate(moved.queue, change_ms[moved.change]),
            speed=at_once / handler_ms if handler_ms else np.inf,
            handler_ms=handler_ms,
            first_pull_ms=FIRST_PULL_DELAY_MS if waits else 0,
        )

    def at(self, rows: Ints) -> Consumption:
        """Return the consumption of the given hand-overs."""
        return replace(self, rate=self.rate[rows])

    def read(self, since_ms: Ints, gap_ms: Floats) -> Floats:
        """Return how many messages an owner has read ``since_ms`` after taking a queue whose oldest
        message had waited for ``gap_ms``.
        """
        reads_ms = np.maximum(since_ms - self.first_pull_ms, 0)
        waits = self.rate * (since_ms + gap_ms)
        if self.speed == np.inf:
            return np.where(reads_ms > 0, waits, 0.0)
        return np.minimum(reads_ms * self.speed, waits)


def read_again_milli(
    moved: Handovers, held: MeasuredHoldings, reading: Consumption, ticks: Ticks
) -> Ints:
    """Return how many messages the new owner reads again, in thousandths; `UNKNOWN` where unknown.

    They consist of the messages that the old owner read while both held the queue, those in its
    handlers (on average, handler time x rate), and those it had not committed when it was lost or
    when the new owner asked.

    Args:
        moved: hand-overs.
        held: the holdings that they name.
        reading: how owners read in these hand-overs.
        ticks: the ticks of the timeline, for the seeds of the holdings.
    """
    replayed = np.full(len(moved.seed), UNKNOWN, np.int64)
    has_rate = moved.between_two & ~np.isnan(reading.rate)
    rows = np.flatnonzero(has_rate)
    giver, rate = moved.giver[rows], reading.rate[rows]
    queue = moved.queue[rows]
    draws = _draws(held, moved.giver, ticks, Timer.NEXT_MESSAGE, moved.queue)
    state = _Reading.of(moved, held, reading, draws / (1 << DRAW_BITS))
    again = _read_by_both(moved, reading, state)[rows]
    lifetime, seed, drop = held.lifetime[giver], held.seed[giver], held.drop_us[giver]
    asked_us = np.minimum(moved.start_ms[rows] * MS_US, drop)
    read_us = held.read_until_us[giver]
    rested_ms = np.maximum(asked_us - read_us, 0) // MS_US
    in_work_ms = np.maximum(reading.handler_ms - rested_ms, 0)
    again += _whole(rate * in_work_ms, _draws(held, giver, ticks, Timer.IN_WORK, queue))
    lifetimes = ticks.timeline.lifetimes
    endings = [lifetime.ending for lifetime in lifetimes]
    killed = np.array([each is not None and not each.graceful for each in endings], np.bool_)
    gone = drop == ticks.ended[lifetime, seed]
    lost = killed[lifetime] & gone
    since_ms = (drop - held.start_us[giver]) // MS_US
    draws = _draws(held, giver, ticks, Timer.COMMIT_AGE, queue)
    persists = np.array(
        [e.intervals.persist_consumer_offset_interval_ms for e in lifetimes], np.int64
    )
    persist_ms = persists[lifetime]
    age_ms = all_below(draws, persist_ms)
    if ticks.shared.any():  # one tick commits for all groups of an instance
        one_tick_ms = ticks.commit_age_us(lifetime, seed, drop) // MS_US
        age_ms = np.where(ticks.shared[lifetime], one_tick_ms, age_ms)
    age_ms = np.minimum(age_ms, since_ms)
    # a suspended member has read nothing new, and its timer commits what it had read
    read_ms = np.maximum(age_ms - (drop - read_us) // MS_US, 0)
    come = rate * read_ms
    uncommitted = np.where(rate < reading.speed, np.minimum(come, 1.0), come)
    until_end = reading.at(rows).read(since_ms, state.behind_ms[rows])
    first = (since_ms < state.committed_after_ms[rows]) & ((read_ms > 0) | (age_ms == 0))
    uncommitted = np.where(first, np.maximum(until_end, uncommitted), uncommitted)
    share = _share_of_one_more(moved.idle_ms[rows], ticks.timeline.settings.ordered)
    # if no message arrives for this long, the timer has committed the last one
    arrives = np.minimum(rate * persist_ms, 1)
    share = np.where(gone, 0.0, share * arrives)
    # without a next pull only the timer commits the last message of a suspended member
    suspended = (read_us < drop) & (asked_us < drop) & (read_us <= asked_us)
    share = np.where(suspended, np.maximum(1 - rested_ms / persist_ms, 0) * arrives, share)
    draws = _draws(held, giver, ticks, Timer.ONE_MORE, queue)
    again += _whole(np.where(lost & ~suspended, uncommitted, share), draws)
    replayed[rows] = np.rint(MILLI * again).astype(np.int64)
    return replayed


@dataclass(frozen=True, eq=False)
class _Reading:
    """How far each hand-over's giver has read when the taker asks for the offset.

    A client commits what it has read with its next pull, which waits for the next message. Until
    then a taker begins where the giver began, and reads the giver's backlog again.

    Attributes:
        since_ms: how long ago it took the queue; `_LONG_MS` if so long ago that it does not lag.
        behind_ms: the age of the oldest unread message when it took the queue.
        committed_after_ms: the time from taking the queue until it commits its first messages.
    """

    since_ms: Ints
    behind_ms: Floats
    committed_after_ms: Floats

    @property
    def committed(self) -> Bools:
        """Whether it has committed everything that it has read except the last message."""
        return self.since_ms >= self.committed_after_ms

    @classmethod
    def of(
        cls, moved: Handovers, held: MeasuredHoldings, reading: Consumption, waits: Floats
    ) -> _Reading:
        """Return the state of the givers.

        Args:
            moved: hand-overs.
            held: the holdings that they name.
            reading: how owners read in these hand-overs.
            waits: for each hand-over, a number from 0 to 1: the time until the giver's next
                message, as a share of the time between two messages.
        """
        begun = np.where(moved.giver >= 0, held.start_us[moved.giver], BEFORE_ALL)
        since_ms = np.where(begun > BEFORE_ALL, moved.start_ms - begun // MS_US, _LONG_MS)
        since_ms = np.where(since_ms >= 0, since_ms, _LONG_MS)
        with np.errstate(divide="ignore", invalid="ignore"):
            next_ms = np.where(reading.rate > 0, waits / reading.rate, np.inf)
        after_ms = np.minimum(reading.first_pull_ms + reading.handler_ms + next_ms, _LONG_MS)
        committed = since_ms >= after_ms
        behind = np.zeros(len(held.seed))
        rows = np.flatnonzero(moved.taker >= 0)
        taker, giver = moved.taker[rows], moved.giver[rows]
        behind[taker] = moved.idle_ms[rows]
        # both hold the queue and the giver has committed nothing, so the taker is as far behind
        follows = np.flatnonzero((moved.overlap_ms[rows] > 0) & ~committed[rows])
        for _ in range(_LONGEST_CHAIN):
            further = since_ms[rows[follows]] + behind[giver[follows]]
            if np.array_equal(behind[taker[follows]], further):
                break
            behind[taker[follows]] = further
        behind_ms = np.where(begun > BEFORE_ALL, behind[moved.giver], 0.0)
        return cls(since_ms, behind_ms, after_ms)


_LONGEST_CHAIN = 8
"""The largest number of consecutive owners that have not committed when the next owner asks."""


def _read_by_both(moved: Handovers, reading: Consumption, state: _Reading) -> Floats:
    """Return the messages that the old owner, which may lag, read and had not committed when the
    new one asked, while both had the queue.
    """
    overlap, since_ms = moved.overlap_ms, state.since_ms
    both = reading.read(since_ms + overlap, state.behind_ms)
    before = reading.read(since_ms, state.behind_ms)
    again = np.where(state.committed, both - before, both)
    settled = (since_ms == _LONG_MS) | (overlap == 0)
    return np.where(settled, reading.rate * overlap, again)


_LONG_MS = NEVER // MS_US
"""A client that has held a queue for this long does not lag."""


def _share_of_one_more(idle_ms: Ints, ordered: bool) -> Floats:
    """Return the share of hand-overs whose staying giver has not committed its last message."""
    if ordered:
        return np.full(len(idle_ms), ONE_MORE_ORDERLY)
    share = np.zeros(len(idle_ms))
    for longest_ms, of_handovers in reversed(ONE_MORE):
        share[idle_ms < longest_ms] = of_handovers
    return share


def _whole(messages: Floats, draws: NDArray[np.uint64]) -> Floats:
    """Round message counts to whole numbers at random, preserving their averages."""
    least = np.floor(messages)
    share = np.rint((messages - least) * (1 << DRAW_BITS)).astype(np.uint64)
    return np.asarray(least + (draws < share), np.float64)


def _draws(
    held: MeasuredHoldings, giver: Ints, ticks: Ticks, timer: Timer, queue: Ints
) -> NDArray[np.uint64]:
    """Return a draw for each queue that a holder released."""
    entities = np.array([lifetime.entity for lifetime in ticks.timeline.lifetimes], np.uint64)
    entity = entities[held.lifetime[giver]] if len(giver) else np.empty(0, np.uint64)
    return uniforms(ticks.seeds[held.seed[giver]], entity, timer, queue)


def late_ms(moved: Handovers, reading: Consumption) -> Floats:
    """Return the time in ms for which each queue's oldest unread message is more than a second old;
    NaN if unknown.

    On average, that message arrives half a message interval after the old owner departs. The new
    owner reads it with its first pull and then has to catch up with the later messages.
    """
    taken = moved.taker >= 0
    pulled_ms = np.where(taken, reading.first_pull_ms, 0)
    over_ms = np.maximum(moved.idle_ms + pulled_ms - _LATE_AFTER_MS, 0.0)
    over_ms[moved.idle_ms == 0] = 0.0
    rate = reading.rate
    with np.errstate(divide="ignore", invalid="ignore"):
        come = np.where(rate * over_ms < 1, rate * over_ms**2 / 2, over_ms - 0.5 / rate)
        keeps_up = np.where(rate < reading.speed, 1.0 / (1.0 - rate / reading.speed), np.nan)
    late = np.where(taken, come * keeps_up, come)
    return np.where(over_ms > 0, late, 0.0)

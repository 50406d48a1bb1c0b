"""How many messages a hand-over has read twice, and whether it may have passed over any."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rebalance_core.clockwork.draws import Timer, all_below, uniforms
from rebalance_core.clockwork.measure.handovers import Handovers
from rebalance_core.clockwork.measure.holdings import Holdings
from rebalance_core.clockwork.options import MS_US
from rebalance_core.clockwork.script import Script
from rebalance_core.clockwork.ticks import Ticks
from rebalance_core.kernels.segments import Bools, Ints, pointers
from rebalance_core.model.times import OFFSET_PERSIST_MS
from rebalance_core.replay.history import GroupHistory

MILLI = 1_000
"""Messages are counted in thousandths until they are summed."""
UNKNOWN: Final = -1


@dataclass(frozen=True, eq=False)
class Observations:
    """What was observed of the queues of a script, by queue, then time.

    Attributes:
        first: (queues + 1,) where the rows of each queue begin.
        observed_ms: when.
        offset: what.
    """

    first: Ints
    observed_ms: Ints
    offset: Ints

    @classmethod
    def of(cls, queues: int, rows: list[tuple[int, int, int]]) -> Observations:
        """Rows (queue, observed_ms, offset)."""
        table = np.array(sorted(rows), np.int64).reshape(-1, 3)
        counts = np.bincount(table[:, 0], minlength=queues)
        return cls(pointers(counts), table[:, 1], table[:, 2])

    def last_before(self, queue: Ints, at_ms: Ints) -> Ints:
        """The last row of each queue at or before a time; one before its first: none."""
        if not len(self.observed_ms):
            return self.first[queue] - 1
        low = int(self.observed_ms.min())
        height = int(self.observed_ms.max()) - low + 3
        owner = np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))
        keys = owner * height + self.observed_ms - low + 1
        wanted = queue * height + np.clip(at_ms - low + 1, 0, height - 1)
        return np.searchsorted(keys, wanted, side="right") - 1


@dataclass(frozen=True, eq=False)
class MessageFacts:
    """What is known of the messages in the queues of a group."""

    written: Observations
    stored: Observations

    @classmethod
    def of(cls, script: Script, history: GroupHistory) -> MessageFacts:
        """Out of the observations in a history."""
        number = {queue: place for place, queue in enumerate(script.queues)}
        written = [
            (number[each.queue], each.observed_ms, each.max_offset)
            for each in history.queue_offsets or ()
            if each.queue in number
        ]
        stored = [
            (number[each.queue], each.observed_ms, each.committed_offset)
            for each in history.committed_offsets or ()
            if each.queue in number and each.committed_offset >= 0
        ]
        count = len(number)
        return cls(Observations.of(count, written), Observations.of(count, stored))

    def rate(self, queue: Ints, at_ms: Ints) -> NDArray[np.float64]:
        """Messages per ms between the observations around a time; NaN: not known."""
        its = self.written
        found = np.full(len(queue), np.nan)
        if not len(its.observed_ms):
            return found
        before = its.last_before(queue, at_ms)
        both = np.flatnonzero((before >= its.first[queue]) & (before + 1 < its.first[queue + 1]))
        older = before[both]
        came = (its.offset[older + 1] - its.offset[older]).astype(np.float64)
        found[both] = came / (its.observed_ms[older + 1] - its.observed_ms[older])
        found[found < 0] = np.nan
        return found

    def has_stored(self, queue: Ints, at_ms: Ints) -> Bools:
        """An offset of the group was seen at the broker before."""
        found: Bools = self.stored.last_before(queue, at_ms) >= self.stored.first[queue]
        return found


def replayed_milli(
    moved: Handovers, held: Holdings, facts: MessageFacts, ticks: Ticks, change_ms: Ints
) -> Ints:
    """Thousandths of messages that the new owner reads again; `UNKNOWN` where that is not known.

    The rate of the queue times the overlap and, if the old owner was lost, the age of its last
    commit: it comes every 5 s. Messages in flight besides count as none.

    Args:
        moved: hand-overs.
        held: the holdings that they name.
        facts: of the group.
        ticks: of the script, for the seeds of the holdings.
        change_ms: by change.
    """
    found = np.full(len(moved.seed), UNKNOWN, np.int64)
    rows = np.flatnonzero(moved.between_two)
    rate = facts.rate(moved.queue[rows], change_ms[moved.change[rows]])
    known = ~np.isnan(rate)
    rows, rate = rows[known], rate[known]
    again_ms = moved.overlap_ms[rows] + _commit_age_ms(held, moved.giver[rows], ticks)
    found[rows] = np.rint(rate * MILLI * again_ms).astype(np.int64)
    return found


def _commit_age_ms(held: Holdings, giver: Ints, ticks: Ticks) -> Ints:
    """How old the last commit of a holder was when it was lost; 0 if it gave the queue up."""
    lives = ticks.script.lives
    killed = np.array([x.ending is not None and not x.ending.graceful for x in lives], np.bool_)
    age = np.zeros(len(giver), np.int64)
    life, seed, drop = held.life[giver], held.seed[giver], held.drop_us[giver]
    lost = np.flatnonzero(killed[life] & (drop == ticks.ended[life, seed]))
    if len(lost):
        entity = np.array([each.entity for each in lives], np.uint64)[life[lost]]
        draws = uniforms(ticks.seeds[seed[lost]], entity, Timer.COMMIT_AGE)
        since = (drop[lost] - held.start_us[giver[lost]]) // MS_US
        age[lost] = np.minimum(all_below(draws, OFFSET_PERSIST_MS), since)
    return age

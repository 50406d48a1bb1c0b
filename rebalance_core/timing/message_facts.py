"""Observed queue offsets, and the rates at which messages arrive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rebalance_core.kernels.segments import Bools, Ints, pointers
from rebalance_core.replay.history import GroupHistory
from rebalance_core.timing.group_timeline import GroupTimeline

Floats = NDArray[np.float64]

MILLI = 1_000
"""Messages are counted in thousandths until they are summed."""
UNKNOWN: Final = -1


@dataclass(frozen=True, eq=False)
class OffsetsByQueue:
    """The observed offsets of a timeline's queues, by queue, then time.

    Attributes:
        first: (queues + 1,) where the rows of each queue begin.
        observed_ms: the time of each observation.
        offset: the observed offset.
    """

    first: Ints
    observed_ms: Ints
    offset: Ints

    @classmethod
    def from_rows(cls, queues: int, rows: list[tuple[int, int, int]]) -> OffsetsByQueue:
        """Return the observations of (queue, observed_ms, offset) rows, by queue and time."""
        table = np.array(sorted(rows), np.int64).reshape(-1, 3)
        counts = np.bincount(table[:, 0], minlength=queues)
        return cls(pointers(counts), table[:, 1], table[:, 2])

    def last_before(self, queue: Ints, at_ms: Ints) -> Ints:
        """Return each queue's last row up to a time, or the position before its first row."""
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
    """The known facts about the messages in a group's queues."""

    written: OffsetsByQueue
    stored: OffsetsByQueue

    @classmethod
    def from_history(cls, timeline: GroupTimeline, history: GroupHistory) -> MessageFacts:
        """Return the facts that a history's observations contain."""
        number = {queue: place for place, queue in enumerate(timeline.queues)}
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
        return cls(
            OffsetsByQueue.from_rows(count, written), OffsetsByQueue.from_rows(count, stored)
        )

    def rate(self, queue: Ints, at_ms: Ints) -> Floats:
        """Return the messages per ms between the observations around a time, NaN if unknown."""
        log = self.written
        rate = np.full(len(queue), np.nan)
        if not len(log.observed_ms):
            return rate
        before = log.last_before(queue, at_ms)
        both = np.flatnonzero((before >= log.first[queue]) & (before + 1 < log.first[queue + 1]))
        older = before[both]
        came = (log.offset[older + 1] - log.offset[older]).astype(np.float64)
        rate[both] = came / (log.observed_ms[older + 1] - log.observed_ms[older])
        rate[rate < 0] = np.nan
        return rate

    def has_stored(self, queue: Ints, at_ms: Ints) -> Bools:
        """Return whether the broker is known to have stored an offset of the group for each queue
        by a time.
        """
        stored: Bools = self.stored.last_before(queue, at_ms) >= self.stored.first[queue]
        return stored

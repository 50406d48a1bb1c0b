"""Where the broker sends the first pull of a start that lies outside of the queue."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rebalance_core.kernels.ownership.changes import Changes
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups
from rebalance_core.kernels.segments import NONE, Bools, Ints
from rebalance_core.kernels.tables.starts.lookups import SeenCommits, SeenOffsets, pick
from rebalance_core.kernels.tables.starts.starts import LOCAL_STORE, Starts
from rebalance_core.kernels.tables.starts.stored_starts import BIGGEST


class FirstPulls(NamedTuple):
    """What is known of the queues when their new owners pull for the first time."""

    prepared: PreparedGroups
    commits: SeenCommits | None
    offsets: SeenOffsets

    def corrected(self, mine: Changes, starts: Starts, seen: Ints) -> Ints:
        """Where the first pull of each start is sent; `NONE`: pulled as it is, or not known.

        Args:
            mine: ADDs.
            starts: of these.
            seen: the row of `offsets` that holds for each.
        """
        rows = self.offsets.rows
        least, most, seen_ms = (
            pick(values, seen) for values in (rows.min_offset, rows.max_offset, rows.at_ms)
        )
        group = self.prepared.epochs.group[mine.epoch]
        overflow = self.prepared.coded.groups.overflow_to_max[group]
        known = (starts.offset >= 0) & (seen >= 0)
        beyond = np.flatnonzero(known & (starts.offset > most))
        if len(beyond):
            furthest = self._furthest(mine.where(beyond), starts.rule[beyond], seen_ms[beyond])
            known[beyond] = furthest >= starts.offset[beyond]
        return np.where(known, _corrected(starts.offset, least, most, overflow), NONE)

    def sent_back(self, mine: Changes, starts: Starts, stored: Ints) -> Ints:
        """Where the first pull is sent, if what was seen of the queue is as new as its commit."""
        assert self.commits is not None
        seen = self.offsets.newest(mine.queue, self.prepared.epochs.from_ms[mine.epoch])
        corrected = self.corrected(mine, starts, seen)
        newer = pick(self.offsets.rows.at_ms, seen) >= pick(self.commits.at_ms, stored)
        return np.where((corrected >= 0) & (stored >= 0) & newer, corrected, BIGGEST)

    def _furthest(self, mine: Changes, rule: Ints, seen_ms: Ints) -> Ints:
        """The highest offset committed by a moment: the client's own where it keeps it itself."""
        commits, earliest_ms = self.commits, self.prepared.epochs.from_ms[mine.epoch]
        assert commits is not None
        forgotten_ms = self.offsets.forgotten_ms(mine.queue, earliest_ms)
        furthest = commits.highest(mine.queue, forgotten_ms, seen_ms)
        local = np.flatnonzero(rule == LOCAL_STORE)
        furthest[local] = commits.highest_of(mine.queue[local], mine.client[local], seen_ms[local])
        return furthest


def _corrected(offset: Ints, least: Ints, most: Ints, overflow_to_max: Bools) -> Ints:
    """`rules.first_pull.first_pull_correction` of many; `NONE`: pulled as it is."""
    to_start = (least == 0) & ~overflow_to_max
    return np.select(
        [
            (most == 0) & (offset != 0),
            most == 0,
            offset < least,
            offset <= most,
            to_start,
        ],
        [0, NONE, least, NONE, 0],
        most,
    )

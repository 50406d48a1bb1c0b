"""The broker's corrections when a start offset is outside the queue."""

from typing import NamedTuple

import numpy as np

from rebalance_core.kernels import segments
from rebalance_core.kernels.ownership.changes import OwnerChanges
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups
from rebalance_core.kernels.segments import Bools, Ints
from rebalance_core.kernels.starts.lookups import SeenCommits, SeenOffsets, pick
from rebalance_core.kernels.starts.starts import LOCAL_STORE, Starts
from rebalance_core.kernels.starts.stored_starts import BIGGEST


class FirstPulls(NamedTuple):
    """The state of the queues when their new owners pull for the first time."""

    prepared: PreparedGroups
    commits: SeenCommits | None
    offsets: SeenOffsets

    def corrected(self, mine: OwnerChanges, starts: Starts, seen: Ints) -> Ints:
        """Return the offset to which each start's first pull is redirected; `NONE` if pulled as is
        or unknown.

        Args:
            mine: the ADDs.
            starts: the starts of these rows.
            seen: the row of `offsets` that applies to each.
        """
        rows = self.offsets.rows
        least, most, seen_ms = (
            pick(values, seen) for values in (rows.min_offset, rows.max_offset, rows.at_ms)
        )
        group = self.prepared.epochs.group[mine.epoch]
        overflow = self.prepared.encoded.groups.overflow_to_max[group]
        comparable = (starts.offset >= 0) & (seen >= 0)
        above = np.flatnonzero(comparable & (starts.offset > most))
        if len(above):
            furthest = self._furthest(mine.where(above), starts.rule[above], seen_ms[above])
            comparable[above] = furthest >= starts.offset[above]
        return np.where(comparable, _corrected(starts.offset, least, most, overflow), segments.NONE)

    def sent_back(self, mine: OwnerChanges, starts: Starts, stored: Ints) -> Ints:
        """Return the offset to which the first pull is redirected, if the queue's observation is as
        new as its commit.
        """
        assert self.commits is not None
        seen = self.offsets.newest(mine.queue, self.prepared.epochs.from_ms[mine.epoch])
        corrected = self.corrected(mine, starts, seen)
        newer = pick(self.offsets.rows.at_ms, seen) >= pick(self.commits.at_ms, stored)
        return np.where((corrected >= 0) & (stored >= 0) & newer, corrected, BIGGEST)

    def _furthest(self, mine: OwnerChanges, rule: Ints, seen_ms: Ints) -> Ints:
        """Return the highest offset committed by a given moment; the client's own if it keeps
        offsets itself.
        """
        commits, earliest_ms = self.commits, self.prepared.epochs.from_ms[mine.epoch]
        assert commits is not None
        forgotten_ms = self.offsets.forgotten_ms(mine.queue, earliest_ms)
        furthest = commits.highest(mine.queue, forgotten_ms, seen_ms)
        local = np.flatnonzero(rule == LOCAL_STORE)
        furthest[local] = commits.highest_of(mine.queue[local], mine.client[local], seen_ms[local])
        return furthest


def _corrected(offset: Ints, least: Ints, most: Ints, overflow_to_max: Bools) -> Ints:
    """Return `protocol.first_pull.first_pull_correction` for many starts; `NONE` if pulled as
    is.
    """
    to_start = (least == 0) & ~overflow_to_max
    return np.select(
        [(most == 0) & (offset != 0), most == 0, offset < least, offset <= most, to_start],
        [0, segments.NONE, least, segments.NONE, 0],
        most,
    )

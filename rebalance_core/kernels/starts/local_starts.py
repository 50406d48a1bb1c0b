"""Start offsets of BROADCASTING members in queues that they held before, from their own offset
files.
"""

import numpy as np

from rebalance_core.kernels import segments
from rebalance_core.kernels.ownership.changes import OwnerChanges
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups
from rebalance_core.kernels.segments import Bools
from rebalance_core.kernels.starts.lookups import SeenCommits, SeenOffsets, pick
from rebalance_core.kernels.starts.starts import LOCAL_STORE, OK, UNKNOWN, Starts


def local_starts(
    prepared: PreparedGroups,
    commits: SeenCommits,
    offsets: SeenOffsets,
    adds: OwnerChanges,
    held_before: Bools,
) -> tuple[Starts, Bools]:
    """Return `replay.pull_starts.PullStarts._local_start` for many rows.

    Args:
        prepared: the groups.
        commits: all commits.
        offsets: observations of the queues.
        adds: the rows.
        held_before: for each row, whether the client held the queue before.

    Returns:
        The starts, and True for rows without a local store.
    """
    count, earliest_ms = len(adds.queue), prepared.epochs.from_ms[adds.epoch]
    row = commits.newest_of(adds.queue, adds.client, earliest_ms)
    offset = pick(commits.offset, row)
    asker, later = commits.within_of(adds.queue, adds.client, earliest_ms, adds.latest_ms)
    bounds = segments.pointers(np.bincount(asker, minlength=count))
    seen = commits.offset[later]
    newest = offset.copy()
    newest[asker] = seen
    low = np.where(bounds[1:] > bounds[:-1], segments.extreme(np.minimum, seen, bounds, 0), offset)
    starts = Starts.unknown(count)
    starts.put(
        row >= 0,
        LOCAL_STORE,
        newest,
        np.minimum(low, offset),
        np.maximum(segments.extreme(np.maximum, seen, bounds, segments.NONE), offset),
        OK,
    )
    top = offsets.max_by(adds.queue, adds.latest_ms, earliest_ms)
    starts.put((row < 0) & held_before, LOCAL_STORE, segments.NONE, 0, top, UNKNOWN)
    return starts, (row < 0) & ~held_before

"""Start offsets of owners of formerly popped queues: see `replay.popped_queues`."""

import numpy as np

from rebalance_core.kernels.ownership.changes import OwnerChanges
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups
from rebalance_core.kernels.queues import Queues
from rebalance_core.kernels.segments import NONE, Ints, first_of_run, last_true
from rebalance_core.kernels.starts.lookups import SeenCommits, SeenOffsets, pick
from rebalance_core.kernels.starts.starts import (
    OK,
    STORED,
    UNKNOWN,
    Starts,
)


def popped_since(prepared: PreparedGroups, queues: Queues, adds: OwnerChanges) -> Ints:
    """Return when each add's topic was first shared; `NONE` if not since the queue's last owner.

    Args:
        prepared: the groups.
        queues: the queues of the adds.
        adds: the adds of all new owners, by queue and epoch.
    """
    shared, epochs, grid = prepared.popped, prepared.epochs, prepared.grid
    if shared is None or not len(adds.queue):
        return np.full(len(adds.queue), NONE)
    topic = queues.group_topic[adds.queue]
    offset = grid.topic_first[topic] - epochs.of_group[grid.topics.group[topic]]
    of = np.repeat(np.arange(len(grid.topics.group)), np.diff(grid.topic_first))
    begins = first_of_run(of)
    last = last_true(shared.cells, begins)[offset + adds.epoch]
    first_cell = np.full(len(grid.topics.group), NONE)
    cells = np.flatnonzero(shared.cells)[::-1]
    first_cell[of[cells]] = cells  # assigning in reverse order leaves the first value
    steps = np.flatnonzero(first_of_run(adds.queue, adds.epoch))
    step = np.searchsorted(steps, np.arange(len(adds.queue)), side="right") - 1
    before = steps[np.maximum(step - 1, 0)]
    owned = (step > 0) & (adds.queue[before] == adds.queue) & (adds.epoch[before] + offset > last)
    since = epochs.from_ms[np.where(last >= 0, first_cell[topic] - offset, 0)]
    return np.where((last >= 0) & ~owned, since, NONE)


def put_popped(
    starts: Starts,
    since_ms: Ints,
    mine: OwnerChanges,
    stored: Ints,
    forgotten_ms: Ints,
    commits: SeenCommits,
    offsets: SeenOffsets,
    earliest_ms: Ints,
) -> None:
    """Set the rows of queues that were popped until now.

    Args:
        starts: changed in place.
        since_ms: `popped_since` for each row; `NONE`: not popped.
        mine: the rows.
        stored: the newest commit that the broker still knows, or `NONE`.
        forgotten_ms: when the broker last forgot its commits.
        commits: all commits.
        offsets: observations of the queues.
        earliest_ms: `earliest_ms` for each row.
    """
    rows = np.flatnonzero(since_ms >= 0)
    queue, stored = mine.queue[rows], stored[rows]
    before = commits.newest(queue, since_ms[rows])
    committed = (before >= 0) & (pick(commits.at_ms, before) > forgotten_ms[rows])
    low = np.where(committed, pick(commits.offset, before), 0)
    top = offsets.max_by(queue, mine.latest_ms[rows], earliest_ms[rows])
    estimate = pick(commits.offset, stored)
    high = np.where((top >= 0) & (stored >= 0), np.maximum(top, estimate), top)
    low = np.where(stored >= 0, np.minimum(low, estimate), low)
    offset = np.where(stored >= 0, estimate, NONE)
    status = np.where(stored >= 0, OK, UNKNOWN)
    starts.update(rows, Starts(np.full(len(rows), STORED), offset, low, high, status))

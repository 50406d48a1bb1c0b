"""The holders of a queue before its new owner, and other clients that may write its commit in the
meantime.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rebalance_core.kernels import segments
from rebalance_core.kernels.epochs import lost_clients
from rebalance_core.kernels.ownership.changes import INITIAL, OwnerChanges
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups
from rebalance_core.kernels.segments import Bools, Ints
from rebalance_core.kernels.starts.lookups import SeenCommits, SeenOffsets


@dataclass(frozen=True, slots=True)
class Holders:
    """Previous holders, with one value per row of new owners, sorted by queue and moment.

    A queue can have several last holders only in shared groups.
    """

    queue: Ints
    client: Ints
    earliest_ms: Ints
    latest_ms: Ints
    last_client: Ints
    """The last holder, or the first of several; -1: no client ever held it."""
    holder_row: Ints
    holder: Ints
    """The rows and their last holders, with one value per holder, sorted by row."""
    held_until_now: Bools
    stays: Bools
    """Whether another client keeps the queue."""
    since_ms: Ints
    """When the queue was assigned to the last holder."""
    taken_ms: Ints
    """The latest moment by which the last holder had taken the queue; -1: before the log began."""
    alone: Bools
    """Whether the last holder was the only process that held the queue."""
    alone_ms: Ints
    """The moment by which all earlier holders had released the queue; -1: there were none."""
    dropped_ms: Ints
    """When the last holder was notified to release it; -1: never."""
    gone_ms: Ints
    """The moment by which all releasing clients had released it; -1: no client released it."""
    others_start: Bools
    """Whether another client may be assigned the queue, and commit, before the new owner reads."""
    emptied_ms: Ints
    """When the topic was last deleted; -1: never."""
    forgotten_ms: Ints
    """When the broker last forgot its commits; -1: never."""

    @property
    def first(self) -> Bools:
        """A mask of the rows whose queue was never held by any client."""
        return self.last_client < 0

    @property
    def outlived(self) -> Bools:
        """Return True if the queue was deleted while or after the last holder had it."""
        return ~self.first & (self.since_ms < self.emptied_ms)

    @property
    def forgotten(self) -> Bools:
        """Return True if a deletion removed all of the last holder's commits except those made on
        its way out.
        """
        return ~self.first & ~self.held_until_now & (self.dropped_ms <= self.forgotten_ms)


@dataclass(frozen=True, slots=True)
class Inside:
    """Commits in each row's window by earlier holders of the queue; sorted by row, oldest first."""

    row: Ints
    at_ms: Ints
    offset: Ints
    client: Ints
    handing: Bools
    """Whether the client persists the queue when it hands it to the new owner."""

    @classmethod
    def none(cls) -> Inside:
        """Return no commits."""
        numbers = np.zeros(0, np.int64)
        return cls(numbers, numbers, numbers, numbers, numbers > 0)


def lost_holders(prepared: PreparedGroups) -> Ints:
    """Return (epoch, client) of all lost holders, as sorted pairs."""
    epoch, client = lost_clients(prepared.encoded.events, prepared.membership, prepared.epochs)
    return segments.distinct(segments.pair(epoch, client))


def handovers(
    prepared: PreparedGroups, adds: OwnerChanges, drops: OwnerChanges, offsets: SeenOffsets
) -> Holders:
    """Return the hand-over for each add that is not INITIAL.

    Args:
        prepared: the groups.
        adds: by queue and cell, like the drops.
        drops: the drops of the same queues.
        offsets: observations of the queues.
    """
    wanted, from_ms = adds.kind != INITIAL, prepared.epochs.from_ms[adds.epoch]
    first = segments.first_of_run(adds.queue)
    before = np.roll(np.arange(len(first)), 1)
    last = np.where(first, segments.NONE, adds.client[before])[wanted]
    taken_ms = np.where(adds.kind == INITIAL, segments.NONE, adds.latest_ms)
    gone_ms, dropped_ms = release_times(prepared, adds.cell, adds.queue, drops)
    queue, earliest_ms = adds.queue[wanted], from_ms[wanted]
    held = np.flatnonzero(last >= 0)
    return Holders(
        queue=queue,
        client=adds.client[wanted],
        earliest_ms=earliest_ms,
        latest_ms=adds.latest_ms[wanted],
        last_client=last,
        holder_row=held,
        holder=last[held],
        held_until_now=(dropped_ms == from_ms)[wanted],
        stays=np.zeros(len(queue), np.bool_),
        since_ms=from_ms[before][wanted],
        taken_ms=taken_ms[before][wanted],
        alone=np.ones(len(queue), np.bool_),
        alone_ms=gone_ms[before][wanted],
        dropped_ms=dropped_ms[wanted],
        gone_ms=gone_ms[wanted],
        others_start=others_start(prepared, adds)[wanted],
        emptied_ms=offsets.emptied_ms(queue, earliest_ms),
        forgotten_ms=offsets.forgotten_ms(queue, earliest_ms),
    )


def commits_inside(
    prepared: PreparedGroups, adds: OwnerChanges, rows: Holders, commits: SeenCommits, lost: Ints
) -> Inside:
    """Return commits in (earliest_ms, latest_ms] by clients that held the queue before.

    Args:
        prepared: the groups.
        adds: the adds of all new owners, including INITIAL adds.
        rows: the adds that are not INITIAL.
        commits: all commits.
        lost: `lost_holders` of `prepared`.
    """
    first = commits.after(rows.queue, rows.earliest_ms)
    count = commits.after(rows.queue, rows.latest_ms) - first
    row = np.repeat(np.arange(len(count)), count)
    commit = segments.ranges(first, count)
    client = commits.client[commit]
    # adds are by queue and epoch, so the first of a pair is the first holding
    some = adds.where(np.isin(adds.queue, rows.queue[row]))
    pairs, held = np.unique(segments.pair(some.queue, some.client), return_index=True)
    add = segments.find(pairs, segments.pair(rows.queue[row], np.maximum(client, 0)))
    since = prepared.epochs.from_ms[np.append(some.epoch[held], 0)[add]]
    before = (client >= 0) & (add >= 0) & (since < rows.earliest_ms[row])
    row, commit, client = row[before], commit[before], client[before]
    epoch = adds.epoch[adds.kind != INITIAL][row]
    # The previous holder persists the offset, unless it was lost or takes the queue again.
    handing = rows.held_until_now[row] & (client != rows.client[row])
    holders = segments.distinct(segments.pair(rows.holder_row, rows.holder))
    handing &= segments.find(holders, segments.pair(row, client)) >= 0
    handing &= segments.find(lost, segments.pair(epoch, client)) < 0
    return Inside(row, commits.at_ms[commit], commits.offset[commit], client, handing)


def release_times(
    prepared: PreparedGroups, cell: Ints, queue: Ints, drops: OwnerChanges
) -> tuple[Ints, Ints]:
    """Return when all earlier holders had released the queue, and when the last one was notified.

    Only releases up to each cell count; -1 where there are none.
    """
    gone_ms = segments.running_max(drops.latest_ms, drops.queue)
    last_drop = np.searchsorted(drops.cell, cell, side="right") - 1
    mine = (last_drop >= 0) & (np.append(drops.queue, segments.NONE)[last_drop] == queue)
    told_ms = prepared.epochs.from_ms[drops.epoch]
    return (
        np.where(mine, np.append(gone_ms, segments.NONE)[last_drop], segments.NONE),
        np.where(mine, np.append(told_ms, segments.NONE)[last_drop], segments.NONE),
    )


def others_start(prepared: PreparedGroups, adds: OwnerChanges) -> Bools:
    """Return `Holders.others_start` for each add; see `replay.pull_starts.PullStarts`."""
    from_ms, count = prepared.epochs.from_ms[adds.epoch], len(adds.queue)
    order = np.argsort(segments.pair(adds.queue, adds.client), kind="stable")
    last = segments.last_of_run(adds.queue[order], adds.client[order])
    again_ms = np.empty(count, np.int64)
    again_ms[order] = np.where(last, segments.NEVER, np.roll(from_ms[order], -1))
    # the next epoch in which a client adds the queue and may learn about it late
    end = np.append(np.flatnonzero(segments.last_of_run(adds.queue, adds.epoch)), count)
    run_of = np.searchsorted(end, np.arange(count))
    late = np.where(prepared.epochs.seen_late[adds.epoch], np.arange(count), count)
    following = np.append(np.minimum.accumulate(late[::-1])[::-1], count)[end[run_of] + 1]
    same = np.append(adds.queue, segments.NONE)[following] == adds.queue
    late_ms = np.where(same, np.append(from_ms, segments.NEVER)[following], segments.NEVER)
    first, last = segments.ends_of_runs(adds.queue, adds.epoch)
    return ~(first & last) | (np.minimum(again_ms, late_ms) <= adds.latest_ms)

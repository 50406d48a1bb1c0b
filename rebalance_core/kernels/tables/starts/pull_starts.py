"""The rows of ``pull_starts``: where each new owner of a queue starts to read, and why."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from rebalance_core.kernels.codes.codes import names_of
from rebalance_core.kernels.codes.group_rows import TYPES
from rebalance_core.kernels.codes.offset_rows import Observations
from rebalance_core.kernels.ownership.changes import INITIAL, Changes, Differ
from rebalance_core.kernels.ownership.holdings import Holdings
from rebalance_core.kernels.ownership.world import World
from rebalance_core.kernels.segments import (
    Bools,
    Ints,
    extreme,
    find,
    first_of_run,
    pair,
    pointers,
    ranges,
)
from rebalance_core.kernels.state.cells import Broadcast, Piece
from rebalance_core.kernels.state.epochs import lost_clients
from rebalance_core.kernels.tables.output import group_columns, nullable, table_rows, words
from rebalance_core.kernels.tables.ownership import queue_columns
from rebalance_core.kernels.tables.starts.first_starts import first_starts
from rebalance_core.kernels.tables.starts.local_starts import local_starts
from rebalance_core.kernels.tables.starts.lookups import NONE, SeenCommits, SeenOffsets, pick
from rebalance_core.kernels.tables.starts.starts import (
    LOCAL_STORE,
    PULL_ALWAYS_ZERO,
    RULES,
    STATUSES,
    Starts,
)
from rebalance_core.kernels.tables.starts.stored_starts import (
    Handover,
    Inside,
    chain_lows,
    stored_starts,
)
from rebalance_core.model.group_settings import PULL


class PullStarts:
    """Answers for the pieces of a world.

    Args:
        world: the groups.
        holdings: of this world.
    """

    def __init__(self, world: World, holdings: Holdings) -> None:
        self._world, self._queues = world, holdings.queues
        self._differ = Differ(world, holdings.queues)
        fleet, queues = world.fleet, holdings.queues
        rows = fleet.observations if fleet.observations is not None else Observations.none()
        self._offsets = SeenOffsets(world, queues, rows)
        self._commits = None if fleet.commits is None else SeenCommits(world, queues, fleet.commits)
        epoch, client = lost_clients(fleet.events, world.membership, world.epochs)
        self._lost = np.unique(pair(epoch, client))
        topics = world.grid.topics.topic[queues.group_topic]
        self._retry = fleet.topic_is_retry[topics]

    def rows(self, piece: Piece) -> pa.RecordBatch:
        """One row per ADD of the piece that is not INITIAL."""
        changes = self._differ.changes(piece)
        adds, drops = changes.where(changes.is_add), changes.where(~changes.is_add)
        starts = self._starts(adds, drops, local=isinstance(piece, Broadcast))
        return self._table(adds.where(adds.kind != INITIAL), starts)

    def _starts(self, adds: Changes, drops: Changes, *, local: bool) -> Starts:
        """The starts of the adds that are not INITIAL; ``local``: clients keep offset files."""
        again = ~first_of_run(adds.queue, adds.client if local else adds.queue)
        wanted = adds.kind != INITIAL
        mine, held_before = adds.where(wanted), again[wanted]
        starts = Starts.unknown(len(mine.queue))
        if self._commits is not None:
            if local:
                starts, unset = local_starts(
                    self._world, self._commits, self._offsets, mine, held_before
                )
            else:
                earliest_ms = self._world.epochs.from_ms[mine.epoch]
                known = self._commits.newest(mine.queue, earliest_ms) >= 0
                unset = ~held_before & ~known
            first = np.flatnonzero(unset)
            some = mine.where(first)
            starts.update(
                first,
                first_starts(
                    self._world, self._offsets, some, self._retry[some.queue],
                    asks_broker=not local,
                ),
            )  # fmt: skip
            if not local:
                self._put_stored(adds, drops, wanted, ~unset, starts)
        group = self._world.epochs.group[mine.epoch]
        pulls = self._world.fleet.groups.consumer_type[group] == TYPES.index(PULL)
        starts.zero(pulls, PULL_ALWAYS_ZERO)
        return starts

    def _put_stored(
        self, adds: Changes, drops: Changes, wanted: Bools, stored: Bools, starts: Starts
    ) -> None:
        """Set the rows that the group's commits decide."""
        assert self._commits is not None
        handover = self._handovers(adds, drops, wanted)
        inside = self._inside(adds, handover)
        kept = stored[inside.row]
        inside = Inside(inside.row[kept], inside.offset[kept], inside.client[kept])
        bounds = pointers(np.bincount(inside.row, minlength=len(stored)))
        known = self._commits.newest(handover.queue, handover.earliest_ms) >= 0
        past_low = chain_lows(
            starts.low,
            extreme(np.minimum, inside.offset, bounds, NONE),
            handover.queue,
            stored & ~known,
        )
        answers = stored_starts(self._commits, self._offsets, handover, inside, past_low)
        rows = np.flatnonzero(stored)
        starts.update(rows, answers.take(rows))

    def _handovers(self, adds: Changes, drops: Changes, wanted: Bools) -> Handover:
        """Who had the queue before each wanted row."""
        epochs = self._world.epochs
        last = np.where(first_of_run(adds.queue), NONE, np.roll(adds.client, 1))[wanted]
        mine = adds.where(wanted)
        at = np.searchsorted(drops.cell, mine.cell, side="right") - 1
        of = np.maximum(at, 0)
        dropped = (at >= 0) & (np.append(drops.queue, NONE)[of] == mine.queue)
        now = dropped & (np.append(drops.cell, NONE)[of] == mine.cell)
        return Handover(
            queue=mine.queue,
            client=mine.client,
            earliest_ms=epochs.from_ms[mine.epoch],
            latest_ms=mine.latest_ms,
            last_client=last,
            held_until_now=now,
            free_since_ms=np.where(dropped, np.append(drops.latest_ms, NONE)[of], NONE),
            lost=find(self._lost, pair(mine.epoch, np.maximum(last, 0))) >= 0,
        )

    def _inside(self, adds: Changes, rows: Handover) -> Inside:
        """Commits in (earliest_ms, latest_ms] of clients that held the queue before."""
        commits = self._commits
        assert commits is not None
        first = commits.after(rows.queue, rows.earliest_ms)
        count = commits.after(rows.queue, rows.latest_ms) - first
        row = np.repeat(np.arange(len(count)), count)
        commit = ranges(first, count)
        client = commits.client[commit]
        # adds are by queue and epoch, so the first of a pair is the first holding
        pairs, held = np.unique(pair(adds.queue, adds.client), return_index=True)
        at = find(pairs, pair(rows.queue[row], np.maximum(client, 0)))
        since = self._world.epochs.from_ms[np.append(adds.epoch[held], 0)[at]]
        before = (client >= 0) & (at >= 0) & (since < rows.earliest_ms[row])
        return Inside(row[before], commits.offset[commit[before]], client[before])

    def _table(self, adds: Changes, starts: Starts) -> pa.RecordBatch:
        world, epoch = self._world, adds.epoch
        epochs, names, group = world.epochs, world.fleet.names, world.epochs.group[adds.epoch]
        offsets, earliest_ms = self._offsets, world.epochs.from_ms[adds.epoch]
        seen = offsets.newest(adds.queue, earliest_ms)
        least, most = pick(offsets.rows.min_offset, seen), pick(offsets.rows.max_offset, seen)
        stored = self._stored(adds, starts.rule == LOCAL_STORE, earliest_ms)
        known = (starts.offset >= 0) & (seen >= 0)
        overflow = world.fleet.groups.overflow_to_max[group]
        corrected = np.where(known, _corrected(starts.offset, least, most, overflow), NONE)
        effective = np.where(corrected >= 0, corrected, starts.offset)
        skipped = np.maximum(0, effective - np.maximum(least, np.maximum(stored, 0)))
        return table_rows(
            "pull_starts",
            group_columns(world, group)
            | queue_columns(world, self._queues, adds.queue)
            | {
                "epoch": epochs.number[epoch],
                "change_ms": earliest_ms,
                "earliest_ms": earliest_ms,
                "latest_ms": adds.latest_ms,
                "client_id": names_of(names.clients, adds.client),
                "start_offset": _offsets(starts.offset),
                "start_offset_low": _offsets(starts.low),
                "start_offset_high": _offsets(starts.high),
                "rule": words(RULES, starts.rule),
                "stored_offset": _offsets(stored),
                "min_offset": _offsets(least),
                "max_offset": _offsets(most),
                "corrected_offset": _offsets(corrected),
                "skipped": nullable(skipped, known),
                "status": words(STATUSES, starts.status),
            },
        )

    def _stored(self, adds: Changes, local: Bools, earliest_ms: Ints) -> Ints:
        """The newest commit before: the client's own where its local store decides."""
        commits = self._commits
        if commits is None:
            return np.full(len(local), NONE, np.int64)
        row = commits.newest(adds.queue, earliest_ms)
        own = commits.newest_of(adds.queue, adds.client, earliest_ms)
        return pick(commits.offset, np.where(local, own, row))


def _offsets(values: Ints) -> pa.Array:
    return nullable(values, values >= 0)


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

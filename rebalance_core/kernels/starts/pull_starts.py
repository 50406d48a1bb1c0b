"""The rows of ``pull_starts``: where each new owner of a queue starts to read, and why."""

import numpy as np
import pyarrow as pa

from rebalance_core.kernels.cell_holders import Block, Broadcast, Piece, Shared
from rebalance_core.kernels.codes import encoded
from rebalance_core.kernels.encoded_offsets import Observations
from rebalance_core.kernels.group_rows import TYPES
from rebalance_core.kernels.ownership.changes import INITIAL, OwnerChanges
from rebalance_core.kernels.ownership.holdings import Holdings
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups
from rebalance_core.kernels.ownership_rows import queue_columns
from rebalance_core.kernels.segments import NONE, Bools, Ints, first_of_run, pair
from rebalance_core.kernels.starts.deletions import find_deletions
from rebalance_core.kernels.starts.first_pulls import FirstPulls
from rebalance_core.kernels.starts.first_starts import first_starts
from rebalance_core.kernels.starts.handovers import commits_inside, handovers, lost_holders
from rebalance_core.kernels.starts.local_starts import local_starts
from rebalance_core.kernels.starts.lookups import SeenCommits, SeenOffsets, pick
from rebalance_core.kernels.starts.popped_starts import popped_since, put_popped
from rebalance_core.kernels.starts.role_switches import RoleSwitchArrays
from rebalance_core.kernels.starts.shared_handovers import chained_lows, shared_handovers
from rebalance_core.kernels.starts.starts import (
    LOCAL_STORE,
    OF_THE_QUEUE,
    OK,
    PULL_ALWAYS_ZERO,
    RULES,
    Starts,
)
from rebalance_core.kernels.starts.stored_starts import StoredStartArrays, chain_lows, highest
from rebalance_core.kernels.starts.switched_lows import find_steps, switched_lows
from rebalance_core.kernels.table_rows import dictionary_array, group_columns, nullable, table_rows
from rebalance_core.model.group_settings import BROADCASTING, PULL
from rebalance_core.model.verdicts import START_STATUSES
from rebalance_core.protocol.commits import COMMIT_TRANSIT_MS


class PullStartArrays:
    """Start offsets for the pieces of prepared groups.

    Args:
        prepared: the groups.
        holdings: the holdings from `prepared`.
    """

    def __init__(self, prepared: PreparedGroups, holdings: Holdings) -> None:
        self._prepared, self._queues = prepared, holdings.queues
        encoded, queues = prepared.encoded, holdings.queues
        rows = encoded.observations if encoded.observations is not None else Observations.none()
        self._offsets = SeenOffsets(prepared, queues, rows, find_deletions(prepared))
        self._lost = lost_holders(prepared)
        commits = encoded.commits
        self._commits = None if commits is None else SeenCommits(prepared, queues, commits)
        self._first_pulls = FirstPulls(prepared, self._commits, self._offsets)
        self._switches = RoleSwitchArrays(prepared, queues)
        topics = prepared.grid.topics.topic[queues.group_topic]
        self._retry = encoded.topic_is_retry[topics]

    def rows(self, piece: Piece, changes: OwnerChanges) -> pa.RecordBatch:
        """Return one row per ADD in a piece that is not INITIAL, from the piece's changes; names
        are coded.
        """
        adds = changes.where(changes.is_add)
        mine = adds.where(adds.kind != INITIAL)
        starts = Starts.unknown(len(mine.queue))
        if self._commits is None:
            _put_missing(piece, mine, starts)
        elif isinstance(piece, Broadcast):
            self._put_local(self._commits, adds, mine, starts)
        else:
            self._put_stored(self._commits, piece, changes, mine, starts)
        group = self._prepared.epochs.group[mine.epoch]
        pulls = self._prepared.encoded.groups.consumer_type[group] == TYPES.index(PULL)
        starts.zero(pulls, PULL_ALWAYS_ZERO)
        return self._table(mine, starts)

    def _put_local(
        self, commits: SeenCommits, adds: OwnerChanges, mine: OwnerChanges, starts: Starts
    ) -> None:
        """Set the starts of clients that keep offset files."""
        held_before = ~first_of_run(adds.queue, adds.client)[adds.kind != INITIAL]
        answers, unset = local_starts(self._prepared, commits, self._offsets, mine, held_before)
        starts.update(np.arange(len(mine.queue)), answers)
        self._put_first(mine, unset, starts, asks_broker=False)
        self._open_deleted(mine, starts)

    def _put_first(
        self, mine: OwnerChanges, wanted: Bools, starts: Starts, *, asks_broker: bool
    ) -> None:
        """Set the rows that are not determined by a commit."""
        rows = np.flatnonzero(wanted)
        some, retry = mine.where(rows), self._retry[mine.queue[rows]]
        answers = first_starts(self._prepared, self._offsets, some, retry, asks_broker=asks_broker)
        earliest_ms = self._prepared.epochs.from_ms[some.epoch]
        answers.without_end(self._switches.has_no_end(some.queue, earliest_ms, some.latest_ms))
        starts.update(rows, answers)

    def _put_stored(
        self,
        commits: SeenCommits,
        piece: Block | Shared,
        changes: OwnerChanges,
        mine: OwnerChanges,
        starts: Starts,
    ) -> None:
        """Set the starts of groups whose commits the broker keeps."""
        adds, drops = changes.where(changes.is_add), changes.where(~changes.is_add)
        handover = (
            shared_handovers(self._prepared, piece, adds, drops, self._offsets)
            if isinstance(piece, Shared)
            else handovers(self._prepared, adds, drops, self._offsets)
        )
        inside = commits_inside(self._prepared, adds, handover, commits, self._lost)
        switches, steps = self._switches, find_steps(changes, self._switches)
        switched = switches.switched(mine.queue, steps.count_at(mine.queue, mine.epoch))
        of_group = StoredStartArrays(commits, self._offsets, handover, inside, switches, switched)
        self._put_first(mine, of_group.unsure, starts, asks_broker=True)
        others = handover.others_start | switched.any
        open_ = np.flatnonzero(others & of_group.unsure & (starts.low >= 0))
        top = self._offsets.max_by(
            mine.queue[open_], mine.latest_ms[open_], handover.earliest_ms[open_]
        )
        starts.high[open_] = highest(starts.high[open_], top)
        starts.low[open_] = 0
        unset = (of_group.stored < 0) & (handover.first | handover.forgotten)
        answers, chained = of_group.starts(starts)
        rows, chained = np.flatnonzero(~unset), chained & ~unset
        starts.update(rows, answers.take(rows))
        back = handover.forgotten & (handover.gone_ms + COMMIT_TRANSIT_MS > handover.earliest_ms)
        starts.high[unset & back] = NONE
        popped = popped_since(self._prepared, self._queues, adds)[adds.kind != INITIAL]
        put_popped(
            starts,
            popped,
            mine,
            of_group.stored,
            handover.forgotten_ms,
            commits,
            self._offsets,
            handover.earliest_ms,
        )
        starts.low[(popped >= 0) & switched.any & (starts.low >= 0)] = 0
        of_broker = popped < 0
        if isinstance(piece, Shared):
            of_broker &= ~self._put_others(commits, piece, adds, mine, starts)
        chained &= of_broker
        self._open_deleted(mine, starts)
        decided_by = self._own_where_local(commits, mine, starts, of_group.stored)
        sent_back = self._first_pulls.sent_back(mine, starts, decided_by)
        before = (
            chained_lows(mine.cell, mine.queue, starts.low, sent_back, chained, handover.stays)
            if isinstance(piece, Shared)
            else chain_lows(starts.low, sent_back, mine.queue, chained)
        )
        low = np.minimum(starts.low, np.maximum(before, 0))
        lost = of_group.switched & ~unset & of_broker
        if lost.any():
            lows = switched_lows(
                self._prepared, piece, steps, switches, adds, drops, mine, commits, self._offsets
            )
            before, low = lows.chained(mine, starts.low, sent_back, chained, lost, handover.stays)
            chained |= lost
        np.copyto(starts.low, low, where=chained)
        unknown = chained & (starts.offset < 0)
        np.copyto(starts.offset, before, where=unknown)
        starts.status[unknown & (before >= 0)] = OK

    def _put_others(
        self,
        commits: SeenCommits,
        piece: Shared,
        adds: OwnerChanges,
        mine: OwnerChanges,
        starts: Starts,
    ) -> Bools:
        """Set the rows of a shared piece that are not determined by a group commit; return their
        mask.

        Members that read everything have their own offset files.
        """
        roster, states = self._prepared.roster, self._prepared.membership.states
        model = states.message_model[roster.runs.state[roster.run[mine.entry]]]
        local = np.isin(self._prepared.encoded.names.words, [BROADCASTING])[model]
        rows = np.flatnonzero(local)
        if len(rows):
            again = np.ones(len(adds.queue), np.bool_)
            again[np.unique(pair(adds.queue, adds.client), return_index=True)[1]] = False
            some, first_take = mine.where(rows), again[adds.kind != INITIAL][rows]
            answers, unset = local_starts(self._prepared, commits, self._offsets, some, first_take)
            starts.update(rows, answers)
            alone = np.zeros(len(local), np.bool_)
            alone[rows[unset]] = True
            self._put_first(mine, alone, starts, asks_broker=False)
        return local | _put_missing(piece, mine, starts)

    def _own_where_local(
        self, commits: SeenCommits, mine: OwnerChanges, starts: Starts, row: Ints
    ) -> Ints:
        """Return ``row``, replaced by the client's own newest row if its local store applies."""
        local = np.flatnonzero(starts.rule == LOCAL_STORE)
        own_row, earliest_ms = row.copy(), self._prepared.epochs.from_ms[mine.epoch[local]]
        own_row[local] = commits.newest_of(mine.queue[local], mine.client[local], earliest_ms)
        return own_row

    def _open_deleted(self, mine: OwnerChanges, starts: Starts) -> None:
        """Set the answers for a topic that is deleted and recreated within the window."""
        earliest_ms = self._prepared.epochs.from_ms[mine.epoch]
        deleted = self._offsets.emptied_ms(mine.queue, mine.latest_ms) > earliest_ms
        deleted &= (starts.low >= 0) & np.isin(starts.rule, OF_THE_QUEUE)
        starts.low[deleted], starts.high[deleted] = 0, NONE

    def _table(self, adds: OwnerChanges, starts: Starts) -> pa.RecordBatch:
        prepared, epoch = self._prepared, adds.epoch
        epochs, names = prepared.epochs, prepared.encoded.names
        group = epochs.group[epoch]
        offsets, earliest_ms = self._offsets, prepared.epochs.from_ms[adds.epoch]
        seen = offsets.newest(adds.queue, earliest_ms)
        least, most = pick(offsets.rows.min_offset, seen), pick(offsets.rows.max_offset, seen)
        stored = self._stored(adds, starts, earliest_ms)
        comparable = (starts.offset >= 0) & (seen >= 0)
        corrected = self._first_pulls.corrected(adds, starts, seen)
        effective = np.where(corrected >= 0, corrected, starts.offset)
        skipped = np.maximum(0, effective - np.maximum(least, np.maximum(stored, 0)))
        return table_rows(
            "pull_starts",
            group_columns(prepared, group)
            | queue_columns(prepared, self._queues, adds.queue)
            | {
                "epoch": epochs.number[epoch],
                "change_ms": earliest_ms,
                "earliest_ms": earliest_ms,
                "latest_ms": adds.latest_ms,
                "client_id": encoded(names.clients, adds.client),
                "start_offset": _offsets(starts.offset),
                "start_offset_low": _offsets(starts.low),
                "start_offset_high": _offsets(starts.high),
                "rule": dictionary_array(RULES, starts.rule),
                "stored_offset": _offsets(stored),
                "min_offset": _offsets(least),
                "max_offset": _offsets(most),
                "corrected_offset": _offsets(corrected),
                "skipped": nullable(skipped, comparable),
                "status": dictionary_array(START_STATUSES, starts.status),
                "reason": pa.nulls(len(adds.queue), pa.string()),
            },
            names_encoded=True,
        )

    def _stored(self, adds: OwnerChanges, starts: Starts, earliest_ms: Ints) -> Ints:
        """Return the newest earlier commit: the client's own if its local store applies."""
        commits = self._commits
        if commits is None:
            return np.full(len(adds.queue), NONE, np.int64)
        row = self._switches.newest(commits, adds.queue, earliest_ms)
        forgotten = pick(commits.at_ms, row) <= self._offsets.forgotten_ms(adds.queue, earliest_ms)
        row[forgotten] = NONE
        return pick(commits.offset, self._own_where_local(commits, adds, starts, row))


def _put_missing(piece: Piece, mine: OwnerChanges, starts: Starts) -> Bools:
    """Set the rows of unreadable queues, which only CONFIG lists, and return those rows."""
    missing = ~piece.cells.readable[mine.cell]
    starts.fail(missing)
    return missing


def _offsets(values: Ints) -> pa.Array:
    return nullable(values, values >= 0)

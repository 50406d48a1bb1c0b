"""The rows of ``pop_starts``: see `replay.pop_starts`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from rebalance_core.kernels import segments
from rebalance_core.kernels.codes import encoded
from rebalance_core.kernels.encoded_events import NO_SHARE
from rebalance_core.kernels.encoded_offsets import Observations
from rebalance_core.kernels.ownership.holdings import Holdings
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups
from rebalance_core.kernels.ownership.shared_topics import SharedTopics
from rebalance_core.kernels.ownership.takers import find_takers
from rebalance_core.kernels.queue_parts import Part
from rebalance_core.kernels.queues import Queues
from rebalance_core.kernels.segments import NONE, Bools, Ints
from rebalance_core.kernels.shared_loads import SharedLoads
from rebalance_core.kernels.starts.deletions import find_deletions
from rebalance_core.kernels.starts.lookups import SeenCommits, SeenOffsets, pick
from rebalance_core.kernels.starts.role_switches import RoleSwitchArrays
from rebalance_core.kernels.starts.starts import OK, UNKNOWN, Starts
from rebalance_core.kernels.starts.stored_starts import highest
from rebalance_core.kernels.table_rows import dictionary_array, group_columns, nullable, table_rows
from rebalance_core.model.verdicts import START_STATUSES
from rebalance_core.protocol.commits import COMMIT_TRANSIT_MS
from rebalance_core.protocol.pop_start import POP_RULES
from rebalance_core.protocol.settling_windows import ROUTE_MS
from rebalance_core.protocol.start_offset import FIRST_OFFSET

STORED, POP_MIN, POP_ZERO, POP_LAST = range(len(POP_RULES))


@dataclass(frozen=True, slots=True)
class _Shared:
    """Queues that members begin to share, one value per row."""

    queue: Ints
    """The index into the `Queues` of the shared topics."""
    queue_id: Ints
    epoch: Ints
    earliest_ms: Ints
    latest_ms: Ints
    topic_cell: Ints
    readable_before: Bools
    """Whether members of the group could read the queue in an earlier epoch, by pull or pop."""


def pop_start_rows(sharing: SharedLoads, owned: PreparedGroups, part: Part) -> pa.RecordBatch:
    """Return one row per queue and epoch in which members begin to share it.

    Args:
        sharing: the topics that members share.
        owned: the same groups with the queues that members own.
        part: The part of their queues to compute.
    """
    prepared = sharing.reach.answers.prepared
    queues = Holdings(prepared, part).queues
    shared = _newly_shared(prepared, queues, owned)
    deletions = find_deletions(prepared)
    seen = prepared.encoded.observations
    offsets = SeenOffsets(prepared, queues, seen or Observations.none(), deletions)
    starts, stored = Starts.unknown(len(shared.queue)), np.full(len(shared.queue), NONE)
    if prepared.encoded.commits is not None:
        commits = SeenCommits(prepared, queues, prepared.encoded.commits)
        switches = RoleSwitchArrays(prepared, queues)
        row = switches.newest(commits, shared.queue, shared.earliest_ms)
        forgotten_ms = offsets.forgotten_ms(shared.queue, shared.earliest_ms)
        row[pick(commits.at_ms, row) <= forgotten_ms] = NONE
        stored = pick(commits.offset, row)
        _put_uncommitted(prepared, sharing.topics, shared, offsets, starts)
        _put_committed(shared, stored, forgotten_ms, commits, offsets, starts)
        _widen(shared, switches, offsets, starts)
    return _table(prepared, queues, shared, offsets, stored, starts)


def _newly_shared(prepared: PreparedGroups, queues: Queues, owned: PreparedGroups) -> _Shared:
    grid, epochs = prepared.grid, prepared.epochs
    cells = np.diff(grid.broker_first)
    topic_broker = np.repeat(np.arange(len(cells)), cells)
    epoch = segments.ranges(epochs.of_group[grid.brokers.group], cells)
    opens = segments.first_of_run(topic_broker)

    def before(values: Ints) -> Ints:
        return np.where(opens, 0, np.roll(values, 1))

    readable = grid.readable
    ever = segments.running_max(np.maximum(readable, owned.grid.readable), topic_broker)
    least = before(readable)
    count = np.where(epochs.initial[epoch], 0, np.maximum(readable - least, 0))
    cell = np.repeat(np.arange(len(count)), count)
    queue_id = segments.ranges(least, count)
    keys = segments.pair(queues.topic_broker, queues.queue_id)
    queue = segments.find(keys, segments.pair(topic_broker[cell], queue_id))
    mine = np.flatnonzero(queue >= 0)
    queue, queue_id, cell = queue[mine], queue_id[mine], cell[mine]
    of_epoch = epoch[cell]
    return _Shared(
        queue=queue,
        queue_id=queue_id,
        epoch=of_epoch,
        earliest_ms=epochs.from_ms[of_epoch],
        latest_ms=epochs.latest_ms[of_epoch],
        topic_cell=grid.topic_cell[cell],
        readable_before=before(ever)[cell] > queue_id,
    )


def _init_modes(prepared: PreparedGroups, shared: SharedTopics) -> tuple[Bools, Bools]:
    """Return, for each topic cell, whether members pop from the minimum, and whether any do not."""
    runs, grid = prepared.roster.runs, shared.grid
    takers = find_takers(prepared.encoded, prepared.membership, runs, shared)
    run, group_topic = takers.reading.run, takers.reading.group_topic
    offset = grid.topic_first[group_topic] - prepared.epochs.of_group[runs.group[run]]
    begin, end = offset + runs.from_epoch[run], offset + runs.to_epoch[run]
    first = np.isin(prepared.encoded.names.words, [FIRST_OFFSET])[runs.start_mode[run]]
    asked, cells = shared.share != NO_SHARE, len(shared.cells)

    def some(rows: Bools) -> Bools:
        return segments.covered(begin[rows], end[rows], cells) > 0

    from_min = some(takers.asking & first) & asked
    return from_min, some(takers.proxied) | (some(takers.asking & ~first) & asked)


def _put_uncommitted(
    prepared: PreparedGroups,
    topics: SharedTopics,
    shared: _Shared,
    offsets: SeenOffsets,
    starts: Starts,
) -> None:
    """Set the rows as if no commit were known."""
    queue, group = shared.queue, prepared.epochs.group[shared.epoch]
    seen = offsets.newest(queue, shared.earliest_ms)
    after = offsets.first_from(queue, shared.latest_ms, shared.earliest_ms)
    least, most = pick(offsets.rows.min_offset, seen), pick(offsets.rows.max_offset, seen)
    next_least, top = (
        pick(values, after) for values in (offsets.rows.min_offset, offsets.rows.max_offset)
    )
    last = np.where(top >= 0, np.maximum(top - 1, 0), NONE)
    from_min, from_max = (modes[shared.topic_cell] for modes in _init_modes(prepared, topics))
    from_memory = prepared.encoded.groups.pops_from_memory[group]
    never_zero = np.append(offsets.rows.never_zero, False)[seen]
    zero = from_memory & (least <= 0) & (most > 0) & ~never_zero
    rule = np.where(zero, POP_ZERO, POP_LAST)
    offset = np.where(zero, 0, np.maximum(most - 1, 0))
    low = np.where(from_memory & (least <= 0), 0, offset)
    known = seen >= 0
    starts.put(known, rule, offset, low, np.where(last >= 0, np.maximum(last, low), NONE), OK)
    starts.put(~known, np.where(from_memory, NONE, POP_LAST), NONE, 0, last, UNKNOWN)
    high = np.where(next_least >= 0, np.maximum(next_least, least), NONE)
    starts.put(from_min & known, POP_MIN, least, least, high, OK)
    starts.put(from_min & ~known, POP_MIN, NONE, 0, next_least, UNKNOWN)
    both = from_min & from_max
    of_max = np.where(last >= 0, np.maximum(last, np.where(known, low, 0)), NONE)
    starts.put(both, NONE, NONE, 0, highest(starts.high, of_max), UNKNOWN)
    starts.put(shared.readable_before, STORED, NONE, 0, top, UNKNOWN)


def _put_committed(
    shared: _Shared,
    stored: Ints,
    forgotten_ms: Ints,
    commits: SeenCommits,
    offsets: SeenOffsets,
    starts: Starts,
) -> None:
    """Set the rows of queues that have a commit, which owners and other pops may still advance."""
    rows = np.flatnonzero(stored >= 0)
    queue, stored = shared.queue[rows], stored[rows]
    arrived = commits.arrived(queue, shared.earliest_ms[rows])
    arrived[pick(commits.at_ms, arrived) <= forgotten_ms[rows]] = NONE
    first = np.maximum(arrived, 0)
    count = np.where(arrived >= 0, commits.after(queue, shared.latest_ms[rows]) - first, 0)
    later, bounds = commits.offset[segments.ranges(first, count)], segments.pointers(count)
    low = np.minimum(stored, segments.extreme(np.minimum, later, bounds, int(segments.NEVER)))
    most = np.maximum(stored, segments.extreme(np.maximum, later, bounds, NONE))
    top = offsets.max_by(queue, shared.latest_ms[rows], shared.earliest_ms[rows])
    high = np.where(top >= 0, np.maximum(top, most), NONE)
    codes = np.full(len(rows), STORED), np.full(len(rows), OK)
    low = np.where(arrived >= 0, low, 0)
    starts.update(rows, Starts(codes[0], stored, low, high, codes[1]))


def _widen(
    shared: _Shared, switches: RoleSwitchArrays, offsets: SeenOffsets, starts: Starts
) -> None:
    """Widen the bounds of queues whose master was lost, or whose topic was deleted, by then."""
    lost = switches.lost_by(shared.queue, shared.latest_ms)
    top = offsets.max_by(shared.queue, shared.latest_ms, shared.earliest_ms)
    starts.low[lost] = 0
    starts.high[lost] = highest(starts.high, top)[lost]
    deleted_ms = offsets.emptied_ms(shared.queue, shared.latest_ms)
    deleted = deleted_ms > shared.earliest_ms - ROUTE_MS - COMMIT_TRANSIT_MS
    deleted &= deleted_ms >= 0
    starts.low[deleted], starts.high[deleted] = 0, NONE


def _table(
    prepared: PreparedGroups,
    queues: Queues,
    shared: _Shared,
    offsets: SeenOffsets,
    stored: Ints,
    starts: Starts,
) -> pa.RecordBatch:
    epochs, names, brokers = prepared.epochs, prepared.encoded.names, prepared.grid.brokers
    topic_broker = queues.topic_broker[shared.queue]
    seen = offsets.newest(shared.queue, shared.earliest_ms)
    least, most = pick(offsets.rows.min_offset, seen), pick(offsets.rows.max_offset, seen)
    skipped = np.maximum(0, starts.offset - np.maximum(least, np.maximum(stored, 0)))
    return table_rows(
        "pop_starts",
        group_columns(prepared, epochs.group[shared.epoch])
        | {
            "epoch": epochs.number[shared.epoch],
            "change_ms": shared.earliest_ms,
            "earliest_ms": shared.earliest_ms,
            "latest_ms": shared.latest_ms,
            "topic": encoded(names.topics, brokers.topic[topic_broker]),
            "broker_name": encoded(names.brokers, brokers.broker[topic_broker]),
            "queue_id": shared.queue_id,
            "start_offset": nullable(starts.offset, starts.offset >= 0),
            "start_offset_low": nullable(starts.low, starts.low >= 0),
            "start_offset_high": nullable(starts.high, starts.high >= 0),
            "rule": dictionary_array(POP_RULES, starts.rule),
            "stored_offset": nullable(stored, stored >= 0),
            "min_offset": nullable(least, seen >= 0),
            "max_offset": nullable(most, seen >= 0),
            "skipped": nullable(skipped, (starts.offset >= 0) & (seen >= 0)),
            "status": dictionary_array(START_STATUSES, starts.status),
            "reason": pa.nulls(len(shared.queue), pa.string()),
        },
    )

"""The rows of ``queue_states``: queues that are not simply readable and owned."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from rebalance_core.kernels import segments
from rebalance_core.kernels.cell_holders import Block, Piece, Shared, Spans
from rebalance_core.kernels.cells import Cells
from rebalance_core.kernels.codes import names_of
from rebalance_core.kernels.ownership.holdings import Holdings
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups
from rebalance_core.kernels.ownership_rows import queue_columns
from rebalance_core.kernels.periods import Periods
from rebalance_core.kernels.queues import Queues
from rebalance_core.kernels.segments import Bools, Ints
from rebalance_core.kernels.shared_loads import SharedLoads
from rebalance_core.kernels.table_rows import (
    group_columns,
    span_columns,
    table_rows,
)


def queue_state_rows(
    prepared: PreparedGroups, holdings: Holdings, sharing: SharedLoads | None
) -> Iterator[pa.RecordBatch]:
    """Yield one row per queue and run of epochs with the same state.

    Cost: pieces are skipped if none of their groups can hold an unreadable queue, or hold a queue
    through several processes of an id.
    """
    if (concerned := _concerned(prepared)).any():
        several = _several(prepared)
        for piece in holdings.pieces():
            cells = piece.cells
            if concerned[cells.queues.group_of[cells.stretches.topic_broker]].any():
                yield _of_piece(prepared, holdings.queues, piece, several)
    if sharing is not None:
        yield from _of_shared_topics(sharing)


def _concerned(prepared: PreparedGroups) -> Bools:
    """Mark the groups that may hold an unreadable queue, or hold a queue through several processes
    of an id.
    """
    grid = prepared.grid
    of_cell = np.repeat(grid.topics.group, np.diff(grid.topic_first))
    concerned = np.zeros(len(prepared.encoded.groups), np.bool_)
    concerned[of_cell[grid.frozen]] = True
    concerned[prepared.encoded.member_strategies.listing] = True
    concerned[prepared.membership.suspended] = concerned[prepared.roster.twice] = True
    return concerned


def _several(prepared: PreparedGroups) -> Periods:
    """Return, by (0, process), when the process shares its client id with another process."""
    runs = prepared.roster.runs
    run = np.flatnonzero(np.isin(runs.group, prepared.roster.twice))
    client, process = np.tile(runs.client[run], 2), runs.process[run]
    epoch = np.concatenate([runs.from_epoch[run], runs.to_epoch[run]])
    step = np.repeat([1, -1], len(run))
    order = np.lexsort((epoch, client))
    client, epoch, total = client[order], epoch[order], np.cumsum(step[order])
    last = np.flatnonzero(segments.last_of_run(client, epoch))  # every client's steps add up to 0
    client, epoch, many = client[last], epoch[last], total[last] > 1
    opens = np.flatnonzero(many)
    shared = Periods.union(
        np.zeros(len(opens), np.int64), client[opens], epoch[opens], np.append(epoch, 0)[opens + 1]
    )
    asker, begin, end = shared.parts(
        np.zeros_like(run), runs.client[run], runs.from_epoch[run], runs.to_epoch[run]
    )
    return Periods.union(np.zeros_like(asker), process[asker], begin, end)


def _of_piece(
    prepared: PreparedGroups, queues: Queues, piece: Piece, several: Periods
) -> pa.RecordBatch:
    cells = piece.cells
    held = piece.entry >= 0 if isinstance(piece, Block) else piece.holders > 0
    unread = held & ~cells.readable
    channels = _channels(
        prepared, cells, piece.spans if isinstance(piece, Shared) else None, several
    )
    turns = segments.first_of_run(unread, cells.segment)
    turns[channels.begin] = True
    turns[channels.end[channels.end < len(cells)]] = True
    begin = np.flatnonzero(turns)
    first = np.searchsorted(begin, channels.begin)
    count = np.searchsorted(begin, channels.end) - first
    stretch, channel = segments.ranges(first, count), np.repeat(channels.minor - 1, count)
    order = np.lexsort((channel, stretch))
    of_stretch = np.bincount(stretch, minlength=len(begin))
    shown = np.flatnonzero(unread[begin] | (of_stretch > 0))
    names = names_of(prepared.encoded.names.channels, channel[order])
    end = np.append(begin[1:], len(cells))[shown]
    begin = begin[shown]
    return _state_rows(
        prepared,
        queues,
        cells,
        begin,
        end,
        cells.readable[begin],
        pa.ListArray.from_arrays(pa.array(segments.pointers(of_stretch[shown]), pa.int32()), names),
    )


def _channels(
    prepared: PreparedGroups, cells: Cells, spans: Spans | None, several: Periods
) -> Periods:
    """Return the cells held by processes whose id has several processes.

    Periods are by (segment, channel + 1).
    """
    if spans is None:
        nothing = np.zeros(0, np.int64)
        return Periods(nothing, nothing, nothing, nothing)
    epoch = cells.epoch[spans.begin]
    until = epoch + spans.end - spans.begin
    asker, begin, end = several.parts(np.zeros_like(spans.process), spans.process, epoch, until)
    offset = (spans.begin - epoch)[asker]
    channel = prepared.membership.processes.channel[spans.process[asker]]
    return Periods.union(spans.segment[asker], channel + 1, begin + offset, end + offset)


def _of_shared_topics(sharing: SharedLoads) -> Iterator[pa.RecordBatch]:
    """Yield rows for the readable queues of topics that members share."""
    answers = sharing.reach.answers
    prepared, holdings = answers.prepared, answers.holdings
    for cells in holdings.laid_out(np.ones(len(prepared.grid.topics.group), np.int64)):
        readable = cells.readable
        begin, last = segments.stretches(readable, cells.segment)
        none = pa.array(np.zeros(len(begin) + 1, np.int32))
        yield _state_rows(
            prepared,
            holdings.queues,
            cells,
            begin,
            last + 1,
            readable[begin],
            pa.ListArray.from_arrays(none, pa.array([], pa.string())),
        )


def _state_rows(
    prepared: PreparedGroups,
    queues: Queues,
    cells: Cells,
    begin: Ints,
    end: Ints,
    readable: Bools,
    channels: pa.ListArray,
) -> pa.RecordBatch:
    """Return rows for runs of cells from ``begin`` up to, but excluding, ``end``."""
    queue = cells.queue[cells.segment[begin]]
    return table_rows(
        "queue_states",
        group_columns(prepared, queues.group[queue])
        | queue_columns(prepared, queues, queue)
        | span_columns(prepared, cells.epoch[begin], cells.epoch[end - 1] + 1)
        | {"readable": readable, "channel_ids": channels},
    )

"""Hand-overs of queues that several processes may hold: see `replay.stored_start.Past`."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from rebalance_core.kernels import segments
from rebalance_core.kernels.cell_holders import Shared
from rebalance_core.kernels.ownership.changes import INITIAL, OwnerChanges
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups
from rebalance_core.kernels.ownership.sharing import continued, held_by
from rebalance_core.kernels.periods import Periods
from rebalance_core.kernels.segments import Bools, Ints
from rebalance_core.kernels.starts.handovers import Holders, others_start, release_times
from rebalance_core.kernels.starts.lookups import SeenOffsets, pick


def shared_handovers(
    prepared: PreparedGroups,
    piece: Shared,
    adds: OwnerChanges,
    drops: OwnerChanges,
    offsets: SeenOffsets,
) -> Holders:
    """Return the hand-over for each add that is not INITIAL.

    Args:
        prepared: the groups.
        piece: the holdings.
        adds: the piece's adds, by cell.
        drops: the piece's drops, by cell.
        offsets: observations of the queues.
    """
    mine = adds.where(adds.kind != INITIAL)
    queue, cell, at_ms = mine.queue, mine.cell, prepared.epochs.from_ms[mine.epoch]
    gone_ms, dropped_ms = release_times(prepared, cell, queue, drops)
    return replace(
        shared_past(prepared, piece, queue, cell, at_ms, adds, drops, offsets),
        client=mine.client,
        latest_ms=mine.latest_ms,
        stays=continued(held_by(piece.tenures), len(piece.cells))[cell] > 0,
        dropped_ms=dropped_ms,
        gone_ms=gone_ms,
        others_start=others_start(prepared, adds)[adds.kind != INITIAL],
    )


def shared_past(
    prepared: PreparedGroups,
    piece: Shared,
    queue: Ints,
    cell: Ints,
    at_ms: Ints,
    adds: OwnerChanges,
    drops: OwnerChanges,
    offsets: SeenOffsets,
) -> Holders:
    """Return a hand-over without a new owner at each moment, from the holders before the cell.

    Args:
        prepared: the groups.
        piece: the holdings.
        queue: the queue of each hand-over; the next two arguments are also per hand-over.
        cell: the cell of the queue.
        at_ms: the moment.
        adds: the piece's adds, by cell.
        drops: the piece's drops, by cell.
        offsets: observations of the queues.
    """
    cells, from_ms = piece.cells, prepared.epochs.from_ms
    opening = cells.first[cells.segment[cell]]
    held = held_by(piece.tenures)
    last_held = segments.last_true(piece.holders > 0, segments.first_of_run(cells.segment))
    last_cell = np.where(cell > opening, last_held[cell - 1], segments.NONE)
    holder_row, holder = _holders(held, last_cell)
    last_client = np.full(len(cell), segments.NONE, np.int64)
    last_client[holder_row[::-1]] = holder[::-1]
    stays = continued(held, len(cells)) > 0
    moved_in = np.flatnonzero(~stays[adds.cell])
    since, taken = (
        _last_before(sorted_cells, cell, opening)
        for sorted_cells in (adds.cell[moved_in], adds.cell)
    )
    taken_ms = np.where(adds.kind == INITIAL, segments.NONE, adds.latest_ms)
    no_client, no = np.full(len(cell), segments.NONE, np.int64), np.zeros(len(cell), np.bool_)
    return Holders(
        queue=queue,
        client=no_client,
        earliest_ms=at_ms,
        latest_ms=at_ms,
        last_client=last_client,
        holder_row=holder_row,
        holder=holder,
        held_until_now=(last_cell >= 0) & (last_cell == cell - 1),
        stays=no,
        since_ms=pick(from_ms[adds.epoch[moved_in]], since),
        taken_ms=pick(taken_ms, taken),
        alone=(last_cell >= 0) & (piece.holders[last_cell] == 1),
        alone_ms=release_times(prepared, last_cell, queue, drops)[0],
        dropped_ms=no_client,
        gone_ms=release_times(prepared, cell - 1, queue, drops)[0],
        others_start=no,
        emptied_ms=offsets.emptied_ms(queue, at_ms),
        forgotten_ms=offsets.forgotten_ms(queue, at_ms),
    )


def _holders(held: Periods, cell: Ints) -> tuple[Ints, Ints]:
    """Return (row, client) for all clients that hold the queue in each row's cell, sorted."""
    asked = segments.distinct(cell[cell >= 0])
    first = np.searchsorted(asked, held.begin)
    count = np.searchsorted(asked, held.end) - first
    asked_cell, client = segments.ranges(first, count), np.repeat(held.minor, count)
    order = np.lexsort((client, asked_cell))
    asked_cell, client = asked_cell[order], client[order]
    row = np.flatnonzero(cell >= 0)
    of, holding = segments.matching(asked_cell, np.searchsorted(asked, cell[row]))
    return row[of], client[holding]


def _last_before(cells: Ints, cell: Ints, opening: Ints) -> Ints:
    """Return the index of the last sorted cell before each cell in its segment, or `NONE`."""
    last = np.searchsorted(cells, cell) - 1
    in_segment = (last >= 0) & (np.append(cells, segments.NONE)[last] >= opening)
    return np.where(in_segment, last, segments.NONE)


def chained_lows(
    step: Ints, queue: Ints, low: Ints, sent_back: Ints, chained: Bools, stays: Bools
) -> Ints:
    """Return `replay.stored_start.Past.low` before each row: the lowest start of earlier holders.

    Rows in the same step of a queue share their past and together bound later rows; if a holder
    stays, so does its own lowest start.

    Args:
        step: the step of each row; equal within a step, and ascending.
        queue: the queue of each row; ascending.
        low: as in `stored_starts.chain_lows`.
        sent_back: as in `stored_starts.chain_lows`.
        chained: as in `stored_starts.chain_lows`.
        stays: for each row, whether another client keeps the queue; equal within a step.

    Returns:
        The lowest starts; `NONE` where unknown.
    """
    if not len(step):
        return low
    begins = np.flatnonzero(segments.first_of_run(step))
    least = np.minimum.reduceat(np.minimum(low, sent_back), begins)
    unknown = np.logical_or.reduceat((low < 0) & ~chained, begins)
    linked = np.logical_or.reduceat(chained, begins)
    first, stays = segments.first_of_run(queue[begins]), stays[begins]
    after = np.where(unknown, segments.NONE, least)
    depends = np.flatnonzero((linked | stays) & ~unknown)
    alone = np.ones(len(begins), np.bool_)
    alone[depends] = False
    begin_index = np.arange(len(begins))
    depth = (
        begin_index - np.maximum.accumulate(np.where(alone | first, begin_index - ~alone, -1))
    )[depends]
    before = np.full(len(begins), segments.NONE, np.int64)
    order = np.argsort(depth, kind="stable")
    bounds = np.searchsorted(depth[order], np.arange(1, int(depth.max(initial=0)) + 2))
    for begin, end in pairwise(bounds):
        begin_index = depends[order[begin:end]]
        previous_low = np.where(first[begin_index], segments.NONE, after[begin_index - 1])
        lowest = np.where(
            linked[begin_index],
            np.minimum(least[begin_index], np.maximum(previous_low, 0)),
            least[begin_index],
        )
        lowest = np.where(
            stays[begin_index],
            np.where(previous_low < 0, segments.NONE, np.minimum(lowest, previous_low)),
            lowest,
        )
        after[begin_index] = lowest
    before[1:] = after[:-1]
    before[first] = segments.NONE
    return np.repeat(before, np.diff(np.append(begins, len(step))))

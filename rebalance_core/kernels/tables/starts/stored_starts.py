"""Where members start on queues that somebody of their group held or committed before."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rebalance_core.kernels.segments import (
    Bools,
    Ints,
    extreme,
    first_of_run,
    pointers,
    running_min,
)
from rebalance_core.kernels.tables.starts.lookups import NONE, SeenCommits, SeenOffsets, pick
from rebalance_core.kernels.tables.starts.starts import OK, STORED, UNKNOWN, Starts

BIGGEST = np.iinfo(np.int64).max
"""No offset is higher."""


@dataclass(frozen=True, slots=True)
class Handover:
    """By row of new owners, by queue and moment: who had the queue before."""

    queue: Ints
    client: Ints
    earliest_ms: Ints
    latest_ms: Ints
    last_client: Ints
    """The last holder; -1: nobody ever held it."""
    held_until_now: Bools
    free_since_ms: Ints
    """By when the last holder has given it up; -1: it never did."""
    lost: Bools
    """The last holder was lost at this moment."""


@dataclass(frozen=True, slots=True)
class Inside:
    """Commits in each row's window by clients that held the queue before; by row, oldest first."""

    row: Ints
    offset: Ints
    client: Ints


def stored_starts(
    commits: SeenCommits,
    offsets: SeenOffsets | None,
    rows: Handover,
    inside: Inside,
    past_low: Ints,
) -> Starts:
    """`replay.pull_starts.PullStarts._stored_start` of many.

    Args:
        commits: what was committed.
        offsets: what was seen of the queues; None: nothing.
        rows: the new owners.
        inside: of these rows.
        past_low: the lowest start of the owner before, where no commit is known before the row;
            else, or if that start is unknown, `NONE`.
    """
    count, queue = len(rows.queue), rows.queue
    bounds = pointers(np.bincount(inside.row, minlength=count))
    stored = commits.newest(queue, rows.earliest_ms)
    known = stored >= 0
    own = commits.newest_of(queue, rows.last_client, rows.earliest_ms)
    offset = pick(commits.offset, stored)
    own_offset = np.where(known & (rows.last_client >= 0), pick(commits.offset, own), NONE)
    least = extreme(np.minimum, inside.offset, bounds, BIGGEST)
    most = extreme(np.maximum, inside.offset, bounds, NONE)
    for values in (offset, own_offset, past_low):
        least = np.minimum(least, np.where(values >= 0, values, BIGGEST))
        most = np.maximum(most, values)
    low = np.where(most >= 0, least, 0)
    by_last = (inside.client == rows.last_client[inside.row]) & (inside.client >= 0)
    handing = rows.held_until_now & ~rows.lost & (rows.last_client != rows.client)
    handed = np.full(count, NONE, np.int64)
    mine = by_last & handing[inside.row]
    handed[inside.row[mine]] = inside.offset[mine]
    estimate = np.where(handed >= 0, handed, np.where(known, offset, past_low))
    high = _high(rows, offsets, most, np.bincount(inside.row[by_last], minlength=count) > 0)
    status = np.where(estimate >= 0, OK, UNKNOWN)
    starts = Starts(np.full(count, STORED), estimate, low, high, status)
    settled = known & (rows.free_since_ms >= 0)
    settled &= pick(commits.at_ms, stored) >= rows.free_since_ms
    starts.put(settled, STORED, offset, least, most)
    return starts


def _high(rows: Handover, offsets: SeenOffsets | None, most: Ints, last_seen: Bools) -> Ints:
    """The last holder's own commit where it holds on or was lost, else what the queue had."""
    unseen_drop = rows.held_until_now & ~rows.lost
    free = np.where(rows.free_since_ms > 0, rows.free_since_ms, rows.latest_ms)
    top = np.full(len(most), NONE)
    if offsets is not None:
        top = offsets.max_by(rows.queue, np.minimum(free, rows.latest_ms))
    by_queue = np.where(top >= 0, np.maximum(top, most), NONE)
    return np.where(~unseen_drop & last_seen, most, by_queue)


def chain_lows(low: Ints, least: Ints, queue: Ints, chained: Bools) -> Ints:
    """The lowest start of the owner before, for rows before which no commit is known.

    The rows of a queue that are chained follow each other: each one's lowest start is the lowest
    of what was committed in its window and of the owner's before; without either it is 0.

    Args:
        low: of the rows that are not chained; `NONE` where it is unknown.
        least: lowest commit inside each row's window, `NONE` without any.
        queue: the queue of each row; rows are by queue and moment.
        chained: rows whose queue was held before and for which no commit is known.

    Returns:
        `NONE` for the first row of a queue and for rows that are not chained.
    """
    first = first_of_run(queue)
    previous = np.where(first, NONE, np.roll(low, 1))
    links = np.flatnonzero(chained)
    begins = first_of_run(queue[links])
    value = np.where(least >= 0, least, BIGGEST)[links]
    opening = links[begins]
    known = previous[opening] >= 0
    alone = np.maximum(least[opening], 0)
    value[begins] = np.where(known, np.minimum(value[begins], previous[opening]), alone)
    lows = low.copy()
    lows[links] = running_min(value, queue[links])
    return np.where(chained & ~first, np.roll(lows, 1), NONE)

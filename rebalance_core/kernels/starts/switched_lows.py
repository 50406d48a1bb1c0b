"""The lowest starts in queues whose commits may have been lost with a master.

The master's possible commits at each loss bound every start until it settles, and may depend on
where the owner at that time started: see `replay.stored_start.StoredStarts.follow_masters`.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from rebalance_core.kernels import segments
from rebalance_core.kernels.cell_holders import Block, Shared
from rebalance_core.kernels.ownership.changes import INITIAL, OwnerChanges
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups
from rebalance_core.kernels.segments import Bools, Ints
from rebalance_core.kernels.starts.handovers import Holders, Inside, release_times
from rebalance_core.kernels.starts.lookups import SeenCommits, SeenOffsets, pick
from rebalance_core.kernels.starts.role_switches import RoleSwitchArrays, Switched
from rebalance_core.kernels.starts.shared_handovers import shared_past
from rebalance_core.kernels.starts.stored_starts import BIGGEST, StoredStartArrays


@dataclass(frozen=True, slots=True)
class Steps:
    """Every queue and epoch in which a client takes or releases the queue, sorted by both."""

    queue: Ints
    epoch: Ints
    cell: Ints
    count: Ints
    """The number of the queue's role switches that are known up to this step."""
    new: Ints
    """The number of these that become known at this step."""

    def count_at(self, queue: Ints, epoch: Ints) -> Ints:
        """Return the number of steps at each queue and epoch."""
        if not len(self.queue):
            return np.zeros(len(queue), np.int64)
        return self.count[
            np.searchsorted(segments.pair(self.queue, self.epoch), segments.pair(queue, epoch))
        ]


def find_steps(changes: OwnerChanges, switches: RoleSwitchArrays) -> Steps:
    """Return the steps in a piece's changes, or none if no master was ever lost."""
    if not switches:
        changes = changes.where(np.zeros(0, np.int64))
    order = np.argsort(segments.pair(changes.queue, changes.epoch), kind="stable")
    queue, epoch = changes.queue[order], changes.epoch[order]
    switch_count = switches.until(queue, changes.latest_ms[order])
    last = segments.last_of_run(queue, epoch)
    count = segments.running_max(switch_count, queue)[last]
    queue = queue[last]
    before = np.where(segments.first_of_run(queue), 0, np.roll(count, 1))
    return Steps(queue, epoch[last], changes.cell[order][last], count, count - before)


@dataclass(frozen=True, slots=True)
class SwitchedLows:
    """The lowest offsets that any client can have committed, or kept, over the switches before an
    add.
    """

    lowest: Ints
    """The bound if known; `BIGGEST`: unknown."""
    asks: Bools
    """Whether, from this row on, the previous owner's possible start is also a bound."""

    def chained(
        self,
        mine: OwnerChanges,
        low: Ints,
        sent_back: Ints,
        chained: Bools,
        switched: Bools,
        stays: Bools,
    ) -> tuple[Ints, Ints]:
        """Return the lowest start of each row's previous holders (`NONE`: unknown) and the row's
        own.

        Rows in the same step of a queue share their past and together bound later rows.

        Args:
            mine: the rows.
            low: as in `stored_starts.chain_lows`.
            sent_back: as in `stored_starts.chain_lows`.
            chained: as in `stored_starts.chain_lows`.
            switched: the rows that these switches bound.
            stays: for each row, whether another client keeps the queue; equal within a step.
        """
        least, begins = low.copy(), np.flatnonzero(segments.first_of_run(mine.queue, mine.epoch))
        count = np.diff(np.append(begins, len(low)))
        asks = np.logical_or.reduceat(self.asks, begins) if len(begins) else self.asks
        before = np.full(len(begins), segments.NONE, np.int64)
        after, asked = before.copy(), np.full(len(begins), BIGGEST)
        rank = segments.rank(mine.queue[begins])
        order = np.argsort(rank, kind="stable")
        bounds = np.searchsorted(rank[order], np.arange(int(rank.max(initial=-1)) + 2))
        for turn, (begin, end) in enumerate(pairwise(bounds)):
            step = order[begin:end]
            if turn:
                before[step], asked[step] = after[step - 1], asked[step - 1]
            least_known = np.maximum(before[step], 0)
            asked[step] = np.where(asks[step], np.minimum(asked[step], least_known), asked[step])
            row = segments.ranges(begins[step], count[step])
            of = np.repeat(np.arange(len(step)), count[step])
            bound = np.where(chained[row], least_known[of], BIGGEST)
            most = np.minimum(self.lowest[row], asked[step][of])
            bound = np.where(switched[row], np.minimum(bound, most), bound)
            bounded = chained[row] | switched[row]
            least[row] = np.where(bounded, np.minimum(low[row], bound), low[row])
            opens = np.flatnonzero(segments.first_of_run(of))
            unknown = np.logical_or.reduceat(least[row] < 0, opens)
            after[step] = np.minimum.reduceat(np.minimum(least[row], sent_back[row]), opens)
            remain = stays[begins[step]]
            after[step] = np.where(remain, np.minimum(after[step], before[step]), after[step])
            after[step[unknown]] = segments.NONE
        return np.repeat(before, count), least


def switched_lows(
    prepared: PreparedGroups,
    piece: Block | Shared,
    steps: Steps,
    switches: RoleSwitchArrays,
    adds: OwnerChanges,
    drops: OwnerChanges,
    mine: OwnerChanges,
    commits: SeenCommits,
    offsets: SeenOffsets,
) -> SwitchedLows:
    """Return the lowest offset that each queue's master can have had at each switch.

    Args:
        prepared: the groups.
        piece: the holdings.
        steps: the piece's steps.
        switches: the switches of the groups.
        adds: the piece's adds, by queue and cell, like the drops.
        drops: the piece's drops.
        mine: the adds that are not INITIAL.
        commits: all commits.
        offsets: observations of the queues.
    """
    step = np.repeat(np.arange(len(steps.queue)), steps.new)
    switch = segments.ranges(switches.first(steps.queue) + steps.count - steps.new, steps.new)
    queue, epoch = steps.queue[step], steps.epoch[step]
    at_ms = np.minimum(switches.kept_ms[switch], prepared.epochs.from_ms[epoch])
    cell = steps.cell[step]
    asked = (
        shared_past(prepared, piece, queue, cell, at_ms, adds, drops, offsets)
        if isinstance(piece, Shared)
        else _past(prepared, queue, epoch, cell, at_ms, adds, drops, offsets)
    )
    nothing = Switched(*(np.full(len(step), value, np.int64) for value in (0, 0, segments.NONE)))
    base = StoredStartArrays(commits, offsets, asked, Inside.none(), switches, nothing).base()
    value = np.where(base >= 0, pick(commits.offset, base), np.where(asked.outlived, 0, BIGGEST))
    value[asked.first & (base < 0)] = 0
    place, rows = segments.pair(queue, epoch), segments.pair(mine.queue, mine.epoch)
    least = np.append(segments.running_min(value, queue), BIGGEST)
    last = np.searchsorted(place, rows, side="right") - 1
    of_queue = (last >= 0) & (np.append(queue, segments.NONE)[last] == mine.queue)
    asks = np.zeros(len(rows) + 1, np.bool_)
    open_ = value == BIGGEST
    following = np.searchsorted(rows, place[open_])
    same = np.append(mine.queue, segments.NONE)[following] == queue[open_]
    asks[following[same]] = True
    return SwitchedLows(np.where(of_queue, least[last], BIGGEST), asks[:-1])


def _past(
    prepared: PreparedGroups,
    queue: Ints,
    epoch: Ints,
    cell: Ints,
    at_ms: Ints,
    adds: OwnerChanges,
    drops: OwnerChanges,
    offsets: SeenOffsets,
) -> Holders:
    """Return a hand-over without a new owner at each moment, from the holders before the epoch."""
    before = np.searchsorted(segments.pair(adds.queue, adds.epoch), segments.pair(queue, epoch)) - 1
    held = (before >= 0) & (np.append(adds.queue, segments.NONE)[before] == queue)
    before = np.where(held, before, segments.NONE)
    from_ms = prepared.epochs.from_ms[adds.epoch]
    alone_ms, _ = release_times(prepared, adds.cell, adds.queue, drops)
    gone_ms, _ = release_times(prepared, cell - 1, queue, drops)
    dropped = np.searchsorted(drops.cell, cell) - 1  # before the epoch
    last_cell = np.where(
        (dropped >= 0) & (np.append(drops.queue, segments.NONE)[dropped] == queue),
        np.append(drops.cell, segments.NONE)[dropped],
        segments.NONE,
    )
    last, rows = pick(adds.client, before), np.flatnonzero(held)
    none = np.zeros(len(queue), np.bool_)
    return Holders(
        queue=queue,
        client=np.full(len(queue), segments.NONE, np.int64),
        earliest_ms=at_ms,
        latest_ms=at_ms,
        last_client=last,
        holder_row=rows,
        holder=last[rows],
        held_until_now=held & (last_cell <= pick(adds.cell, before)),
        stays=none,
        since_ms=pick(from_ms, before),
        taken_ms=pick(np.where(adds.kind == INITIAL, segments.NONE, adds.latest_ms), before),
        alone=~none,
        alone_ms=pick(alone_ms, before),
        dropped_ms=np.full(len(queue), segments.NONE, np.int64),
        gone_ms=gone_ms,
        others_start=none,
        emptied_ms=offsets.emptied_ms(queue, at_ms),
        forgotten_ms=offsets.forgotten_ms(queue, at_ms),
    )

"""Where members start on queues that somebody of their group held or committed before."""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from rebalance_core.kernels import segments
from rebalance_core.kernels.cells import Block, Shared
from rebalance_core.kernels.ownership.changes import INITIAL, OwnerChanges
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups
from rebalance_core.kernels.segments import Bools, Ints
from rebalance_core.kernels.starts.first_starts import (
    LOCAL_STORE,
    OK,
    STORED,
    UNKNOWN,
    RoleSwitchArrays,
    Starts,
    Switched,
)
from rebalance_core.kernels.starts.handovers import Holders, Inside, release_times, shared_past
from rebalance_core.kernels.starts.lookups import SeenCommits, SeenOffsets, pick
from rebalance_core.protocol.members import ROUTE_MS
from rebalance_core.protocol.start_offset import (
    COMMIT_TRANSIT_MS,
    FINAL_COMMIT_STORED_MS,
    OWN_COMMIT_STORED_MS,
)

# Where BROADCASTING members start on queues they held before: their own offset files.


def local_starts(
    prepared: PreparedGroups,
    commits: SeenCommits,
    offsets: SeenOffsets,
    adds: OwnerChanges,
    held_before: Bools,
) -> tuple[Starts, Bools]:
    """`replay.pull_starts.PullStarts._local_start` of many.

    Args:
        prepared: the groups.
        commits: what was committed.
        offsets: what was seen of the queues.
        adds: the rows.
        held_before: by row: the client held the queue before.

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
        row >= 0, LOCAL_STORE, newest, np.minimum(low, offset),
        np.maximum(segments.extreme(np.maximum, seen, bounds, segments.NONE), offset), OK,
    )  # fmt: skip
    top = offsets.max_by(adds.queue, adds.latest_ms, earliest_ms)
    starts.put((row < 0) & held_before, LOCAL_STORE, segments.NONE, 0, top, UNKNOWN)
    return starts, (row < 0) & ~held_before


# Where members start on queues that somebody of their group held or committed before.
#
# What bounds a start, and why, says `replay.stored_start`.

MANY = 1 << 20
"""Holders looked at at a time."""
BIGGEST = np.iinfo(np.int64).max
"""No offset is higher."""


class StoredStartArrays:
    """`replay.stored_start.StoredStarts` of many.

    Args:
        commits: what was committed.
        offsets: what was seen of the queues.
        rows: the new owners.
        inside: of these rows.
        switches: of their masters.
        switched: of these rows.
    """

    def __init__(
        self, commits: SeenCommits, offsets: SeenOffsets, rows: Holders, inside: Inside,
        switches: RoleSwitchArrays, switched: Switched,
    ) -> None:  # fmt: skip
        self._commits, self._offsets, self._rows, self._inside = commits, offsets, rows, inside
        self._bounds = segments.pointers(np.bincount(inside.row, minlength=len(rows.queue)))
        newest = switches.newest(commits, rows.queue, rows.earliest_ms)
        self.stored = self._since(newest, rows.forgotten_ms)
        """The newest commit that whoever answers still knows, or `NONE`."""
        self.arrived = self._arrived(rows.earliest_ms, rows.forgotten_ms)
        """The newest one that the broker surely has."""
        self.unsure = self._may_be_unknown(switched)
        """Nothing says that a commit had arrived, and that no loss of a master took it."""
        self.switched = self._settle(switched)
        """By row: commits may still get lost, or be made by others than the owner."""

    def starts(self, uncommitted: Starts) -> tuple[Starts, Bools]:
        """The starts, and which rows' lowest still depends on the owner's before.

        Such a row's low, and its offset where that is `NONE`, are completed by `chain_lows`; the
        low of `switched` ones by what `switched_lows` says, too.

        Args:
            uncommitted: where the members start if the broker knows no commit.
        """
        rows, commits, unsure = self._rows, self._commits, self.unsure
        known = self.stored >= 0
        offset = pick(commits.offset, self.stored)
        least = segments.extreme(np.minimum, self._inside.offset, self._bounds, BIGGEST)
        most = segments.extreme(np.maximum, self._inside.offset, self._bounds, segments.NONE)
        least, most = _with(offset, least, most)
        final_low, final_high = least, most
        least, most = self._with_holders(least, most)
        base = self.base()
        low = np.minimum(least, np.where(base >= 0, pick(commits.offset, base), BIGGEST))
        low[(base < 0) & (rows.first | rows.outlived)] = 0
        low = np.where(unsure, np.minimum(low, np.maximum(uncommitted.low, 0)), low)
        high = np.where(self._may_be_old(base), segments.NONE, self._high(most))
        high = np.where(unsure, highest(high, uncommitted.high), high)
        estimate = np.where(known, offset, np.where(rows.outlived, 0, segments.NONE))
        handed = self._handed_over()
        estimate = np.where(handed >= 0, handed, estimate)
        status = np.where(estimate >= 0, OK, UNKNOWN)
        starts = Starts(np.full(len(low), STORED), estimate, low, high, status)
        final = known & ~self.switched & ~rows.others_start & self._is_final(self.stored)
        starts.put(final, STORED, offset, final_low, final_high)
        return starts, ~final & ~rows.first & ~rows.outlived & (base < 0)

    def _arrived(self, at_ms: Ints, after_ms: Ints) -> Ints:
        return self._since(self._commits.arrived(self._rows.queue, at_ms), after_ms)

    def _may_be_unknown(self, switched: Switched) -> Bools:
        rows, some = self._rows, switched.any & (self.arrived >= 0)
        if not some.any():
            return self.arrived < 0
        kept = self._arrived(np.minimum(switched.kept_ms, rows.earliest_ms), rows.forgotten_ms)
        later_ms = np.maximum(rows.forgotten_ms, switched.settled_ms)
        later = self._arrived(rows.earliest_ms, later_ms) >= 0  # `NEVER`: none is later
        lost = ((kept < 0) & ~later) | (self.stored < 0)
        return np.where(some, lost, self.arrived < 0)

    def _settle(self, switched: Switched) -> Bools:
        """Take rows as if they had no role switch where a later commit decides; the others' mask.

        That is what they still are then.
        """
        over = switched.any & (switched.settled_ms != segments.NEVER)
        if over.any():
            before, settled_ms = self._rows, np.where(over, switched.settled_ms, segments.NONE)
            names = ("alone_ms", "taken_ms", "gone_ms")
            later = {name: np.maximum(getattr(before, name), settled_ms) for name in names}
            self._rows = replace(before, **later)
            newer_ms = settled_ms + FINAL_COMMIT_STORED_MS
            over &= pick(self._commits.at_ms, self.base()) >= newer_ms
            self._rows = replace(
                before, **{n: np.where(over, later[n], getattr(before, n)) for n in names}
            )
        return switched.any & ~over

    def _since(self, row: Ints, after_ms: Ints) -> Ints:
        return np.where(pick(self._commits.at_ms, row) > after_ms, row, segments.NONE)

    def _with_holders(self, least: Ints, most: Ints) -> tuple[Ints, Ints]:
        """The extremes with the last holders' newest commits, where they are known."""
        rows, commits = self._rows, self._commits
        least, most = least.copy(), most.copy()
        for some in np.split(np.arange(len(rows.holder)), range(MANY, len(rows.holder), MANY)):
            row = rows.holder_row[some]
            newest = commits.newest_of(rows.queue[row], rows.holder[some], rows.earliest_ms[row])
            known = pick(commits.at_ms, newest) > rows.forgotten_ms[row]
            row, offset = row[known], commits.offset[newest[known]]
            np.minimum.at(least, row, offset)
            np.maximum.at(most, row, offset)
        return least, most

    def _newest_sent(self, at_ms: Ints) -> Ints:
        """The newest commit of the only last holder that no outage of the broker may have lost."""
        rows = self._rows
        row = self._commits.newest_of(rows.queue, rows.last_client, at_ms, kept=True)
        return np.where(rows.first, segments.NONE, row)

    def _is_final(self, row: Ints) -> Bools:
        """Nobody could write any more when the commit arrived, and it had by the event."""
        rows = self._rows
        at_ms, client = pick(self._commits.at_ms, row), pick(self._commits.client, row)
        kept = np.append(self._commits.kept, False)[row]
        sent = (at_ms >= rows.gone_ms) & (at_ms <= rows.earliest_ms - COMMIT_TRANSIT_MS) & kept
        seen = at_ms >= rows.gone_ms + FINAL_COMMIT_STORED_MS
        return (row >= 0) & ~rows.first & ~rows.held_until_now & np.where(client < 0, seen, sent)

    def base(self) -> Ints:
        """The newest commit after which nobody wrote less, or `NONE`."""
        rows, arrived = self._rows, self.arrived
        alone_ms = np.maximum(rows.forgotten_ms, rows.alone_ms + COMMIT_TRANSIT_MS - 1)
        sent_ms = rows.earliest_ms - COMMIT_TRANSIT_MS
        alone_sent = self._since(self._newest_sent(sent_ms), alone_ms)
        settled_ms = np.maximum(rows.taken_ms, rows.alone_ms) + OWN_COMMIT_STORED_MS
        broker = np.full(len(rows.queue), segments.NONE)
        seen = self._commits.newest_of(rows.queue, broker, rows.earliest_ms)
        seen = self._since(seen, np.maximum(rows.forgotten_ms, settled_ms - 1))
        alone = np.where(rows.taken_ms < 0, arrived, np.maximum(alone_sent, seen))
        alone = np.where(rows.outlived | ~rows.alone, segments.NONE, alone)
        return np.where(rows.first | self._is_final(arrived), arrived, alone)

    def _handed_over(self) -> Ints:
        """Return the offset that the last holder is seen to persist on the way out, or `NONE`."""
        inside = self._inside
        handed = np.full(len(self._rows.queue), segments.NONE, np.int64)
        handed[inside.row[inside.handing]] = inside.offset[inside.handing]
        return handed

    def _high(self, most: Ints) -> Ints:
        """Return the queue's end when the last owner that can have written gave it up."""
        rows = self._rows
        end_ms = np.minimum(rows.gone_ms, rows.latest_ms)
        last_ms = segments.extreme(np.maximum, self._inside.at_ms, self._bounds, segments.NONE)
        back, shared = last_ms > end_ms + COMMIT_TRANSIT_MS, rows.stays | rows.others_start
        back |= self.switched
        end_ms = np.where(shared | back | rows.first, rows.latest_ms, end_ms)
        top = self._offsets.max_by(rows.queue, end_ms, rows.earliest_ms)
        if self.switched.any():
            # a slave may know a commit of messages that it has not got
            seen = self._offsets.most_by(rows.queue, rows.latest_ms, rows.earliest_ms)
            most = np.where(self.switched, np.maximum(most, seen), most)
        return np.where(top >= 0, np.maximum(top, most), segments.NONE)

    def _may_be_old(self, base: Ints) -> Bools:
        """The broker may answer what was committed on a queue of that name that was deleted."""
        rows, born_ms = self._rows, self._rows.emptied_ms
        kept = rows.forgotten_ms < born_ms
        recent = rows.earliest_ms <= born_ms + ROUTE_MS + COMMIT_TRANSIT_MS
        old = (born_ms >= 0) & (pick(self._commits.at_ms, base) <= born_ms)
        return old & (kept | recent | rows.outlived)


def _with(offset: Ints, least: Ints, most: Ints) -> tuple[Ints, Ints]:
    """The extremes with one more offset, where it is known."""
    return np.minimum(least, np.where(offset >= 0, offset, BIGGEST)), np.maximum(most, offset)


def highest(one: Ints, other: Ints) -> Ints:
    """The higher of two upper bounds; `NONE`: there is none."""
    return np.where((one >= 0) & (other >= 0), np.maximum(one, other), segments.NONE)


def chain_lows(low: Ints, sent_back: Ints, queue: Ints, chained: Bools) -> Ints:
    """The lowest start of the owner before, its first pull corrected, for each chained row.

    Chained rows of a queue follow each other: what one owner can have started at bounds the next.

    Args:
        low: the lowest start of each row; of a chained row without what came before (`BIGGEST`:
            nothing else bounds it); `NONE`: unknown.
        sent_back: where the row's owner is sent if its start is illegal; `BIGGEST`: nowhere.
        queue: the queue of each row; rows are by queue and moment.
        chained: rows whose lowest start depends on the owner's before.

    Returns:
        `NONE` for rows that are not chained, and where the start of the owner before is unknown.
    """
    first = segments.first_of_run(queue)
    unknown = first | np.roll((low < 0) & ~chained, 1)
    before = np.minimum(np.maximum(np.roll(low, 1), 0), np.roll(sent_back, 1))
    before[unknown] = 0
    links = np.flatnonzero(chained)
    run = np.cumsum(~(chained & ~first), dtype=np.int64)[links]
    lows = np.full(len(low), segments.NONE, np.int64)
    lows[links] = segments.running_min(before[links], run)
    lows[chained & unknown] = segments.NONE
    return lows


# The lowest starts of queues whose commits a loss of a master may have taken.
#
# What the master can have had at each loss bounds every start until it settles, and may depend on
# where the owner of that time started: see
# `replay.stored_start.StoredStarts.follow_masters`.


@dataclass(frozen=True, slots=True)
class Steps:
    """Every queue and epoch in which somebody takes or gives up the queue; by both."""

    queue: Ints
    epoch: Ints
    cell: Ints
    count: Ints
    """Role switches of the queue known so far."""
    new: Ints
    """How many of them are known from this step on."""

    def count_at(self, queue: Ints, epoch: Ints) -> Ints:
        """The count of some of the steps."""
        if not len(self.queue):
            return np.zeros(len(queue), np.int64)
        return self.count[
            np.searchsorted(segments.pair(self.queue, self.epoch), segments.pair(queue, epoch))
        ]


def find_steps(changes: OwnerChanges, switches: RoleSwitchArrays) -> Steps:
    """The steps of a piece's changes; none where no master was ever lost."""
    if not switches:
        changes = changes.where(np.zeros(0, np.int64))
    order = np.argsort(segments.pair(changes.queue, changes.epoch), kind="stable")
    queue, epoch = changes.queue[order], changes.epoch[order]
    known = switches.until(queue, changes.latest_ms[order])
    last = segments.last_of_run(queue, epoch)
    count = segments.running_max(known, queue)[last]
    queue = queue[last]
    before = np.where(segments.first_of_run(queue), 0, np.roll(count, 1))
    return Steps(queue, epoch[last], changes.cell[order][last], count, count - before)


@dataclass(frozen=True, slots=True)
class SwitchedLows:
    """By new owner: the lowest offset that anybody can have committed, or kept, in all switches."""

    known: Ints
    """As far as it is known; `BIGGEST`: nothing is."""
    asks: Bools
    """It is bounded, too, by where the owner before can have started, from this row on."""

    def chained(
        self, mine: OwnerChanges, low: Ints, sent_back: Ints, chained: Bools, switched: Bools,
        stays: Bools,
    ) -> tuple[Ints, Ints]:  # fmt: skip
        """The lowest start of whoever held the queue before each row, `NONE` if unknown; and the
        row's own.

        Rows of one step of a queue share what came before, and together bound what comes after.

        Args:
            mine: the rows.
            low: as `stored_starts.chain_lows` takes it.
            sent_back: as `stored_starts.chain_lows` takes it.
            chained: as `stored_starts.chain_lows` takes it.
            switched: rows that all this bounds.
            stays: by row, equal in a step: somebody else goes on holding the queue.
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
            at = order[begin:end]
            if turn:
                before[at], asked[at] = after[at - 1], asked[at - 1]
            least_known = np.maximum(before[at], 0)
            asked[at] = np.where(asks[at], np.minimum(asked[at], least_known), asked[at])
            row = segments.ranges(begins[at], count[at])
            of = np.repeat(np.arange(len(at)), count[at])
            bound = np.where(chained[row], least_known[of], BIGGEST)
            most = np.minimum(self.known[row], asked[at][of])
            bound = np.where(switched[row], np.minimum(bound, most), bound)
            bounded = chained[row] | switched[row]
            least[row] = np.where(bounded, np.minimum(low[row], bound), low[row])
            opens = np.flatnonzero(segments.first_of_run(of))
            unknown = np.logical_or.reduceat(least[row] < 0, opens)
            after[at] = np.minimum.reduceat(np.minimum(least[row], sent_back[row]), opens)
            remain = stays[begins[at]]
            after[at] = np.where(remain, np.minimum(after[at], before[at]), after[at])
            after[at[unknown]] = segments.NONE
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
    """Ask what each queue's master can have had at each switch.

    Args:
        prepared: the groups.
        piece: who holds what.
        steps: of the piece.
        switches: of the groups.
        adds: of the piece, by queue and cell, as the drops.
        drops: of the piece.
        mine: the adds that are not INITIAL.
        commits: what was committed.
        offsets: what was seen of the queues.
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
    """A handover to nobody at each moment, from whoever had the queue before the epoch."""
    before = np.searchsorted(segments.pair(adds.queue, adds.epoch), segments.pair(queue, epoch)) - 1
    held = (before >= 0) & (np.append(adds.queue, segments.NONE)[before] == queue)
    before = np.where(held, before, segments.NONE)
    from_ms = prepared.epochs.from_ms[adds.epoch]
    alone_ms, _ = release_times(prepared, adds.cell, adds.queue, drops)
    gone_ms, _ = release_times(prepared, cell - 1, queue, drops)
    dropped = np.searchsorted(drops.cell, cell) - 1  # before the epoch
    last_cell = np.where(
        (dropped >= 0) & (np.append(drops.queue, segments.NONE)[dropped] == queue),
        np.append(drops.cell, segments.NONE)[dropped], segments.NONE,
    )  # fmt: skip
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


# Where the broker sends the first pull of a start that lies outside of the queue.


class FirstPulls(NamedTuple):
    """The state of the queues when their new owners pull for the first time."""

    prepared: PreparedGroups
    commits: SeenCommits | None
    offsets: SeenOffsets

    def corrected(self, mine: OwnerChanges, starts: Starts, seen: Ints) -> Ints:
        """Return where the first pull of each start is sent; `NONE`: pulled as it is, or not known.

        Args:
            mine: ADDs.
            starts: of these.
            seen: the row of `offsets` that holds for each.
        """
        rows = self.offsets.rows
        least, most, seen_ms = (
            pick(values, seen) for values in (rows.min_offset, rows.max_offset, rows.at_ms)
        )
        group = self.prepared.epochs.group[mine.epoch]
        overflow = self.prepared.coded.groups.overflow_to_max[group]
        known = (starts.offset >= 0) & (seen >= 0)
        above = np.flatnonzero(known & (starts.offset > most))
        if len(above):
            furthest = self._furthest(mine.where(above), starts.rule[above], seen_ms[above])
            known[above] = furthest >= starts.offset[above]
        return np.where(known, _corrected(starts.offset, least, most, overflow), segments.NONE)

    def sent_back(self, mine: OwnerChanges, starts: Starts, stored: Ints) -> Ints:
        """Return where the first pull is sent, if what was seen of the queue is as new as its
        commit.
        """
        assert self.commits is not None
        seen = self.offsets.newest(mine.queue, self.prepared.epochs.from_ms[mine.epoch])
        corrected = self.corrected(mine, starts, seen)
        newer = pick(self.offsets.rows.at_ms, seen) >= pick(self.commits.at_ms, stored)
        return np.where((corrected >= 0) & (stored >= 0) & newer, corrected, BIGGEST)

    def _furthest(self, mine: OwnerChanges, rule: Ints, seen_ms: Ints) -> Ints:
        """The highest offset committed by a moment: the client's own where it keeps it itself."""
        commits, earliest_ms = self.commits, self.prepared.epochs.from_ms[mine.epoch]
        assert commits is not None
        forgotten_ms = self.offsets.forgotten_ms(mine.queue, earliest_ms)
        furthest = commits.highest(mine.queue, forgotten_ms, seen_ms)
        local = np.flatnonzero(rule == LOCAL_STORE)
        furthest[local] = commits.highest_of(mine.queue[local], mine.client[local], seen_ms[local])
        return furthest


def _corrected(offset: Ints, least: Ints, most: Ints, overflow_to_max: Bools) -> Ints:
    """`protocol.start_offset.first_pull_correction` of many; `NONE`: pulled as it is."""
    to_start = (least == 0) & ~overflow_to_max
    return np.select(
        [(most == 0) & (offset != 0), most == 0, offset < least, offset <= most, to_start],
        [0, segments.NONE, least, segments.NONE, 0],
        most,
    )

"""Start offsets in queues that a member of the group held or committed before.

`replay.stored_start` explains the bounds of a start.
"""

from dataclasses import replace

import numpy as np

from rebalance_core.kernels import segments
from rebalance_core.kernels.segments import Bools, Ints
from rebalance_core.kernels.starts.handovers import Holders, Inside
from rebalance_core.kernels.starts.lookups import SeenCommits, SeenOffsets, pick
from rebalance_core.kernels.starts.role_switches import RoleSwitchArrays, Switched
from rebalance_core.kernels.starts.starts import OK, STORED, UNKNOWN, Starts
from rebalance_core.protocol.commits import (
    COMMIT_TRANSIT_MS,
    FINAL_COMMIT_STORED_MS,
    OWN_COMMIT_STORED_MS,
)
from rebalance_core.protocol.settling_windows import ROUTE_MS

MANY = 1 << 20
"""The number of holders per batch."""
BIGGEST = np.iinfo(np.int64).max
"""An upper bound that no offset exceeds."""


class StoredStartArrays:
    """`replay.stored_start.StoredStarts` for many rows.

    Args:
        commits: all commits.
        offsets: observations of the queues.
        rows: the new owners.
        inside: the commits inside the windows of these rows.
        switches: the switches of their masters.
        switched: the combined switches of these rows.
    """

    def __init__(
        self,
        commits: SeenCommits,
        offsets: SeenOffsets,
        rows: Holders,
        inside: Inside,
        switches: RoleSwitchArrays,
        switched: Switched,
    ) -> None:
        self._commits, self._offsets, self._rows, self._inside = commits, offsets, rows, inside
        self._bounds = segments.pointers(np.bincount(inside.row, minlength=len(rows.queue)))
        newest = switches.newest(commits, rows.queue, rows.earliest_ms)
        self.stored = self._since(newest, rows.forgotten_ms)
        """The newest commit that the answering broker still knows, or `NONE`."""
        self.arrived = self._arrived(rows.earliest_ms, rows.forgotten_ms)
        """The newest commit that the broker certainly has."""
        self.unsure = self._may_be_unknown(switched)
        """Whether there is no evidence that a commit had arrived and survived all losses of
        masters.
        """
        self.switched = self._settle(switched)
        """For each row, whether commits may still be lost, or come from clients other than the
        owner.
        """

    def starts(self, uncommitted: Starts) -> tuple[Starts, Bools]:
        """Return the starts, and which rows' lowest start still depends on the previous owner's.

        `chain_lows` completes such a row's low, and its offset if that is `NONE`; `switched_lows`
        also bounds the low of `switched` rows.

        Args:
            uncommitted: where the members start if the broker knows no commit.
        """
        rows, commits, unsure = self._rows, self._commits, self.unsure
        has_stored = self.stored >= 0
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
        estimate = np.where(has_stored, offset, np.where(rows.outlived, 0, segments.NONE))
        handed = self._handed_over()
        estimate = np.where(handed >= 0, handed, estimate)
        status = np.where(estimate >= 0, OK, UNKNOWN)
        starts = Starts(np.full(len(low), STORED), estimate, low, high, status)
        final = has_stored & ~self.switched & ~rows.others_start & self._is_final(self.stored)
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
        """Drop role switches in rows that a later commit determines; return the mask of the others.

        The others remain switched.
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
        """Return ``least`` and ``most``, extended to the last holders' newest known commits."""
        rows, commits = self._rows, self._commits
        least, most = least.copy(), most.copy()
        for some in np.split(np.arange(len(rows.holder)), range(MANY, len(rows.holder), MANY)):
            row = rows.holder_row[some]
            newest = commits.newest_of(rows.queue[row], rows.holder[some], rows.earliest_ms[row])
            kept = pick(commits.at_ms, newest) > rows.forgotten_ms[row]
            row, offset = row[kept], commits.offset[newest[kept]]
            np.minimum.at(least, row, offset)
            np.maximum.at(most, row, offset)
        return least, most

    def _newest_sent(self, at_ms: Ints) -> Ints:
        """Return the newest commit of a sole last holder that cannot have been lost in a broker
        outage.
        """
        rows = self._rows
        row = self._commits.newest_of(rows.queue, rows.last_client, at_ms, kept=True)
        return np.where(rows.first, segments.NONE, row)

    def _is_final(self, row: Ints) -> Bools:
        """Return whether, by the time of the event, no client could still write when the commit
        arrived.
        """
        rows = self._rows
        at_ms, client = pick(self._commits.at_ms, row), pick(self._commits.client, row)
        kept = np.append(self._commits.kept, False)[row]
        sent = (at_ms >= rows.gone_ms) & (at_ms <= rows.earliest_ms - COMMIT_TRANSIT_MS) & kept
        seen = at_ms >= rows.gone_ms + FINAL_COMMIT_STORED_MS
        return (row >= 0) & ~rows.first & ~rows.held_until_now & np.where(client < 0, seen, sent)

    def base(self) -> Ints:
        """Return the newest commit after which no client wrote a lower one, or `NONE`."""
        rows, arrived = self._rows, self.arrived
        alone_ms = np.maximum(rows.forgotten_ms, rows.alone_ms + COMMIT_TRANSIT_MS - 1)
        sent_ms = rows.earliest_ms - COMMIT_TRANSIT_MS
        alone_sent = self._since(self._newest_sent(sent_ms), alone_ms)
        settled_ms = np.maximum(rows.taken_ms, rows.alone_ms) + OWN_COMMIT_STORED_MS
        seen = self._commits.newest_of_broker(rows.queue, rows.earliest_ms)
        seen = self._since(seen, np.maximum(rows.forgotten_ms, settled_ms - 1))
        alone = np.where(rows.taken_ms < 0, arrived, np.maximum(alone_sent, seen))
        alone = np.where(rows.outlived | ~rows.alone, segments.NONE, alone)
        return np.where(rows.first | self._is_final(arrived), arrived, alone)

    def _handed_over(self) -> Ints:
        """Return the offset that the last holder was observed to persist on its way out, or
        `NONE`.
        """
        inside = self._inside
        handed = np.full(len(self._rows.queue), segments.NONE, np.int64)
        handed[inside.row[inside.handing]] = inside.offset[inside.handing]
        return handed

    def _high(self, most: Ints) -> Ints:
        """Return the queue's end when the last owner that may have written released the queue."""
        rows = self._rows
        end_ms = np.minimum(rows.gone_ms, rows.latest_ms)
        last_ms = segments.extreme(np.maximum, self._inside.at_ms, self._bounds, segments.NONE)
        back, shared = last_ms > end_ms + COMMIT_TRANSIT_MS, rows.stays | rows.others_start
        back |= self.switched
        end_ms = np.where(shared | back | rows.first, rows.latest_ms, end_ms)
        top = self._offsets.max_by(rows.queue, end_ms, rows.earliest_ms)
        if self.switched.any():
            # a slave may know a commit for messages that it does not have yet
            seen = self._offsets.most_by(rows.queue, rows.latest_ms, rows.earliest_ms)
            most = np.where(self.switched, np.maximum(most, seen), most)
        return np.where(top >= 0, np.maximum(top, most), segments.NONE)

    def _may_be_old(self, base: Ints) -> Bools:
        """Return whether the broker may answer with a commit on a deleted queue of the same
        name.
        """
        rows, born_ms = self._rows, self._rows.emptied_ms
        kept = rows.forgotten_ms < born_ms
        recent = rows.earliest_ms <= born_ms + ROUTE_MS + COMMIT_TRANSIT_MS
        old = (born_ms >= 0) & (pick(self._commits.at_ms, base) <= born_ms)
        return old & (kept | recent | rows.outlived)


def _with(offset: Ints, least: Ints, most: Ints) -> tuple[Ints, Ints]:
    """Return ``least`` and ``most``, extended to another offset if it is known."""
    return np.minimum(least, np.where(offset >= 0, offset, BIGGEST)), np.maximum(most, offset)


def highest(bound: Ints, other_bound: Ints) -> Ints:
    """Return the higher of two upper bounds; `NONE`: unbounded."""
    return np.where(
        (bound >= 0) & (other_bound >= 0), np.maximum(bound, other_bound), segments.NONE
    )


def chain_lows(low: Ints, sent_back: Ints, queue: Ints, chained: Bools) -> Ints:
    """Return the previous owner's lowest start, with its first pull corrected, for each chained
    row.

    Chained rows of a queue follow one another: the possible starts of one owner bound those of the
    next.

    Args:
        low: the lowest start of each row; for a chained row, without its past (`BIGGEST`: nothing
            else bounds it); `NONE`: unknown.
        sent_back: the offset to which the row's owner is redirected if its start is illegal;
            `BIGGEST`: none.
        queue: the queue of each row; rows are sorted by queue and moment.
        chained: the rows whose lowest start depends on the previous owner's.

    Returns:
        `NONE` for rows that are not chained, and where the previous owner's start is unknown.
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

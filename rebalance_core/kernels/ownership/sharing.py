"""The holders of queues in shared groups, as spans of cells for each process."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from rebalance_core.kernels import group_kinds, segments
from rebalance_core.kernels.cell_holders import Shared, Spans, Tenures
from rebalance_core.kernels.cells import Cells
from rebalance_core.kernels.ownership.listed_queues import listed_queues
from rebalance_core.kernels.ownership.passes import Passes
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups
from rebalance_core.kernels.periods import Periods, begins_of_union
from rebalance_core.kernels.queues import Queues
from rebalance_core.kernels.segments import Ints

Stints = tuple[Ints, Ints, Ints, Ints]
"""(segment, stretch of passes, first epoch, epoch after the last) of holdings, in any order."""


class Sharing:
    """The pieces with shared groups.

    Args:
        prepared: the groups.
        queues: the queues that the segments of pieces index.
        passes: the passes from `prepared`.
    """

    def __init__(self, prepared: PreparedGroups, queues: Queues, passes: Passes) -> None:
        self._prepared, self._queues, self._passes = prepared, queues, passes
        self._periods = passes.periods
        self._everyone = np.flatnonzero(passes.kind == group_kinds.BROADCAST)
        listed = np.flatnonzero(passes.kind == group_kinds.CONFIGURED)
        keys = segments.pair(passes.group_topic[listed], passes.allocation[listed])
        order = np.argsort(keys, kind="stable")
        self._listing, self._list_keys = listed[order], keys[order]
        self._lists = listed_queues(prepared).sorted_among(queues)
        self._hashes = [
            prepared.encoded.divided_by(number).groups.kind == group_kinds.ON_RING
            for number in range(prepared.encoded.member_strategies.most)
        ]

    @property
    def weights(self) -> Ints:
        """The approximate size of a queue in each group topic, in addition to its cells.

        All members with CONFIG lists may hold the same queue.
        """
        passes, topics = self._passes, len(self._prepared.grid.topics.group)
        listing = np.bincount(passes.group_topic[self._listing], minlength=topics)
        return np.bincount(passes.group_topic, minlength=topics) + listing**2 // 16

    def piece(self, cells: Cells, owned: Iterable[tuple[int, Ints, Ints]]) -> Shared:
        """Return the holdings in some segments.

        Args:
            cells: the cells of the segments.
            owned: for each strategy number within its group, cells and the entry that owns each.
        """
        parts = [self._everyones(cells), self._listed(cells)]
        parts += [self._divided(cells, *by_strategy) for by_strategy in owned]
        segment, stretch, begin, end = (np.concatenate(c) for c in zip(*parts, strict=True))
        offset = cells.first[:-1] - cells.epoch[cells.first[:-1]]
        begin, end = begin + offset[segment], end + offset[segment]
        spans = _joined(
            segment, self._passes.process[stretch], begin, end, self._passes.node[stretch]
        )
        holders = segments.covered(spans.begin, spans.end, len(cells))
        client = self._prepared.membership.processes.client[spans.process]
        return Shared(
            cells, cells.readable & (holders == 0), holders, spans, _tenures(spans, client)
        )

    def _divided(self, cells: Cells, number: int, cell: Ints, owner: Ints) -> Stints:
        """Return the queues of members that allocate by their group's strategy with this number.

        Every process with the owner's id takes the share of that id's first position; the shares of
        its other positions belong to no client, except on a hash ring (rocketmq.md §2.2, §2.7).
        """
        roster, passes = self._prepared.roster, self._passes
        copy = roster.copy[owner]
        mine = (copy == 0) | self._hashes[number][self._prepared.epochs.group[cells.epoch[cell]]]
        cell, first = cell[mine], (owner - copy)[mine]
        count = roster.processes_of(first)
        cell, entry = np.repeat(cell, count), segments.ranges(first, count)
        segment, epoch = cells.segment[cell], cells.epoch[cell]
        group_topic = self._queues.group_topic[cells.queue[segment]]
        stretch = self._periods.at(group_topic, roster.process(entry), epoch)
        has_stretch = stretch >= 0
        segment, stretch, epoch = segment[has_stretch], stretch[has_stretch], epoch[has_stretch]
        divides = passes.number[stretch] == number
        divides &= group_kinds.divides(passes.kind[stretch])
        segment, stretch, epoch = segment[divides], stretch[divides], epoch[divides]
        return segment, stretch, epoch, self._until(stretch, epoch + 1)

    def _until(self, stretch: Ints, end: Ints) -> Ints:
        """Extend the ends of stints for which the result of a stretch's last pass is kept."""
        passes = self._passes
        return np.where(end == passes.end[stretch], passes.kept[stretch], end)

    def _listed(self, cells: Cells) -> Stints:
        """Return the queues on members' CONFIG lists, existing or not (rocketmq.md §2.4)."""
        passes, lists = self._passes, self._lists
        segment, row = segments.matching(lists.key, cells.queue)
        group_topic = self._queues.group_topic[cells.queue[segment]]
        keys = segments.pair(group_topic, lists.allocation[row])
        asker, row = segments.matching(self._list_keys, keys)
        stretch = self._listing[row]
        return segment[asker], stretch, passes.begin[stretch], passes.kept[stretch]

    def _everyones(self, cells: Cells) -> Stints:
        """Return every queue, for BROADCASTING members."""
        passes, stretches = self._passes, self._everyone
        first, last = segments.stretches(cells.readable, cells.segment)
        segment = cells.segment[first]
        group_topic = self._queues.group_topic[cells.queue[segment]]
        row, of = segments.matching(passes.group_topic[stretches], group_topic)
        stretch = stretches[of]
        begin = np.maximum(cells.epoch[first][row], passes.begin[stretch])
        end = np.minimum(cells.epoch[last][row] + 1, passes.end[stretch])
        meets = begin < end
        row, stretch, begin, end = row[meets], stretch[meets], begin[meets], end[meets]
        return segment[row], stretch, begin, self._until(stretch, end)


def _joined(segment: Ints, process: Ints, begin: Ints, end: Ints, node: Ints) -> Spans:
    """Merge stints that may touch into spans."""
    order = np.lexsort((begin, process, segment))
    segment, process, begin, end = (a[order] for a in (segment, process, begin, end))
    starts = begins_of_union(segments.first_of_run(segment, process), begin, end)
    last = segments.last_of_run(np.cumsum(starts))
    return Spans(segment[starts], process[starts], begin[starts], end[last], node[order][starts])


def _tenures(spans: Spans, client: Ints) -> Tenures:
    segment, client = np.tile(spans.segment, 2), np.tile(client, 2)
    cell = np.concatenate([spans.begin, spans.end])
    step = np.repeat([1, -1], len(spans.begin))
    order = np.lexsort((cell, client, segment))
    segment, client, cell = segment[order], client[order], cell[order]
    total = np.cumsum(step[order])  # each client's steps add up to 0
    last = segments.last_of_run(segment, client, cell)
    segment, client, cell, total = segment[last], client[last], cell[last], total[last]
    turns = segments.first_of_run(segment, client) | (total != np.roll(total, 1))
    segment, client, cell, total = segment[turns], client[turns], cell[turns], total[turns]
    held = total > 0
    end = np.roll(cell, -1)
    return Tenures(segment[held], client[held], cell[held], end[held], total[held])


def held_by(tenures: Tenures) -> Periods:
    """Return the cells in which any process of a client holds a queue, by (segment, client)."""
    return Periods.union(tenures.segment, tenures.client, tenures.begin, tenures.end)


def continued(held: Periods, cells: int) -> Ints:
    """Return, for each cell, how many of the clients that held the queue in the previous epoch hold
    it.

    Args:
        held: as returned by `held_by`.
        cells: the number of cells.
    """
    return segments.covered(held.begin + 1, held.end, cells)

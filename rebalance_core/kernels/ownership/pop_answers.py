"""The queues of shared topics that each process is assigned to pop, and the epochs in which it
is.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from rebalance_core.kernels import segments
from rebalance_core.kernels.cells import Cells
from rebalance_core.kernels.encoded_events import NO_SHARE
from rebalance_core.kernels.grid import places
from rebalance_core.kernels.ownership.holdings import CELLS_PER_BLOCK, Holdings
from rebalance_core.kernels.ownership.passes import parts
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups
from rebalance_core.kernels.ownership.shared_topics import SharedTopics
from rebalance_core.kernels.ownership.takers import find_takers, pulling_groups
from rebalance_core.kernels.periods import Periods
from rebalance_core.kernels.segments import Bools, Ints

Stints = tuple[Ints, Ints, Ints, Ints]
"""(segment or topic broker, process, first epoch, epoch after the last), in any order."""


class PopAnswers:
    """The brokers' answers to all members of groups that share topics.

    Args:
        prepared: the groups.
        shared: their shared topics.
        cells_per_block: as in `Holdings`.
    """

    def __init__(
        self, prepared: PreparedGroups, shared: SharedTopics, cells_per_block: int = CELLS_PER_BLOCK
    ) -> None:
        encoded, epochs, runs = prepared.encoded, prepared.epochs, prepared.roster.runs
        encoded_members = (encoded, prepared.membership)
        pulling = pulling_groups(*encoded_members, epochs, runs, shared)
        mixed = np.isin(np.arange(len(encoded.groups)), pulling)
        self._pulling = bool(mixed.any())
        self.prepared = replace(prepared, grid=shared.grid, shared=mixed)
        """The groups, with only their shared topics."""
        self.holdings = Holdings(self.prepared, cells_per_block=cells_per_block)
        self._takers = takers = find_takers(*encoded_members, runs, shared)
        self._run, self._topic = takers.reading.run, takers.reading.group_topic
        self._begin, self._end = runs.from_epoch[self._run], runs.to_epoch[self._run]
        self._process, self._group = runs.process[self._run], runs.group[self._run]
        self._rows = Periods(self._topic, self._process, self._begin, self._end)
        states, state = prepared.membership.states, runs.state[self._run]
        allocation = encoded.member_strategies.allocations(
            states.strategy[state], states.rules[state]
        )
        self._number = encoded.member_strategies.numbers(self._group, allocation)
        self._share = shared.share
        self._find_regimes(shared)

    def _find_regimes(self, shared: SharedTopics) -> None:
        """Set which branch of ``allocate4Pop`` answers for each topic cell."""
        grid, epochs = shared.grid, self.prepared.epochs
        sizes = np.diff(grid.topic_first)
        self._topic_of = np.repeat(np.arange(len(sizes)), sizes)
        epoch = segments.ranges(epochs.of_group[:-1][grid.topics.group], sizes)
        members, self._queues_of = epochs.live[epoch], grid.queues
        self._answered = grid.queues > 0
        popped = self._answered & (shared.share != NO_SHARE)
        everything = (shared.share <= 0) | (shared.share >= members - 1)
        self._everything = popped & everything
        self._neighbours = popped & ~everything & (members <= grid.queues)
        self._single = popped & ~everything & (members > grid.queues)
        self._unasked = shared.cells & (shared.share == NO_SHARE)
        self._cells = shared.cells
        last = np.flatnonzero(grid.frozen & segments.last_of_run(grid.frozen, self._topic_of))
        stretch = np.searchsorted(last, np.arange(len(epoch)))
        self._frozen_until = np.where(grid.frozen, np.append(epoch[last] + 1, 0)[stretch], 0)

    def blocks(self) -> Iterator[tuple[Cells, Periods]]:
        """Yield queues in blocks, with the epochs in which each process has them."""
        share = np.zeros(len(self._topic_of), np.int64)
        share[self._neighbours] = self._share[self._neighbours]
        most = np.zeros(len(self.prepared.grid.topics.group), np.int64)
        np.maximum.at(most, self._topic_of, share)
        for cells in self.holdings.laid_out(1 + most):
            owned = list(self.holdings.divided(cells))
            stints = [self._ones(cells), self._by_proxies(cells)]
            stints += [self._shares(cells, *of_number) for of_number in owned]
            if self._pulling:
                stints.append(self._pulled(cells, owned))
            segment, process, begin, end = (
                np.concatenate(columns) for columns in zip(*stints, strict=True)
            )
            topic = self.holdings.queues.group_topic[cells.queue[segment]]
            yield cells, Periods.union(segment, process, begin, self._kept(topic, process, end))

    def whole(self) -> Periods:
        """Return the epochs in which each process may take from every queue of a topic broker."""
        grid, proxied = self.prepared.grid, self._takers.proxied
        ordered = self.prepared.encoded.groups.ordered[self._group]
        spans = [
            parts(self.prepared, mask, np.flatnonzero(rows), self._topic, self._begin, self._end)
            for mask, rows in (
                (self._answered, proxied & ~ordered),
                (self._everything, self._takers.asking),
            )
        ]
        row, begin, end = (np.concatenate(columns) for columns in zip(*spans, strict=True))
        of, broker = segments.matching(grid.topic_of, self._topic[row])
        readable = self.readable_brokers(grid.readable > 0)
        asker, begin, end = readable.parts(broker, np.zeros_like(broker), begin[of], end[of])
        broker, process = broker[asker], self._process[row[of[asker]]]
        return Periods.union(
            broker, process, begin, self._kept(grid.topic_of[broker], process, end)
        )

    def readable_brokers(self, value: Ints | Bools) -> Periods:
        """Return runs of epochs with the same non-zero value, by (topic broker, 0).

        Args:
            value: the value of each broker cell.
        """
        grid, epochs = self.prepared.grid, self.prepared.epochs
        sizes = np.diff(grid.broker_first)
        of = np.repeat(np.arange(len(sizes)), sizes)
        epoch = segments.ranges(epochs.of_group[:-1][grid.brokers.group], sizes)
        return Periods.of_stretches(value, of, epoch)

    def _kept(self, topic: Ints, process: Ints, end: Ints) -> Ints:
        """Return the epoch until which an ending assignment is kept while its topic has no readable
        queue.
        """
        grid, of_group = self.prepared.grid, self.prepared.epochs.of_group
        group = grid.topics.group[topic]
        inside = end < of_group[group + 1]
        cell = grid.topic_first[topic] + np.where(inside, end - of_group[group], 0)
        until = np.where(inside, self._frozen_until[cell], 0)
        rows = np.flatnonzero(until > end)
        if not len(rows):
            return end
        reading = Periods.union(self._topic, self._process, self._begin, self._end)
        period = reading.at(topic[rows], process[rows], end[rows] - 1)
        kept = end.copy()
        kept[rows] = np.minimum(until[rows], reading.end[period])
        return kept

    def _shares(self, cells: Cells, number: int, cell: Ints, owner: Ints) -> Stints:
        """Return the queues of members that get their own share and those of the next members.

        A member that asks is at its id's first position, and a share is also that of an id's first
        position.
        """
        roster = self.prepared.roster
        cell, owner = self._in(cells, cell, owner, self._neighbours)
        first_of_id = roster.copy[owner] == 0
        cell, owner = cell[first_of_id], owner[first_of_id]
        epoch = cells.epoch[cell]
        first, share = roster.first[epoch], self._share[cells.topic_cell[cell]]
        members = roster.first[epoch + 1] - first
        count = np.minimum(members, share + roster.processes_of(owner))
        of = np.repeat(np.arange(len(cell)), count)
        step = segments.ranges(np.zeros(len(cell), np.int64), count)
        asker = first[of] + ((owner - first - share)[of] + step) % members[of]
        return self._of_askers(cells, cell[of], asker, number)

    def _ones(self, cells: Cells) -> Stints:
        """Return the queues of members that outnumber the queues, of which each member gets one."""
        cell = np.flatnonzero(cells.readable)
        cell, _ = self._in(cells, cell, cell, self._single)
        grid, roster, epoch = self.prepared.grid, self.prepared.roster, cells.epoch[cell]
        before, _ = places(grid, grid.readable)
        queue = cells.queue[cells.segment[cell]]
        place = before[cells.broker_cell[cell]] + self.holdings.queues.queue_id[queue]
        queues = self._queues_of[cells.topic_cell[cell]]
        members = roster.first[epoch + 1] - roster.first[epoch]
        count = -((place - members) // queues)
        of = np.repeat(np.arange(len(cell)), count)
        turn = segments.ranges(np.zeros_like(count), count)
        asker = (roster.first[epoch] + place)[of] + turn * queues[of]
        return self._of_askers(cells, cell[of], asker, None)

    def _in(self, cells: Cells, cell: Ints, other: Ints, regime: Bools) -> tuple[Ints, Ints]:
        """Return the cells in a regime, and their companion values."""
        mine = regime[cells.topic_cell[cell]]
        return cell[mine], other[mine]

    def _of_askers(self, cells: Cells, cell: Ints, asker: Ints, number: int | None) -> Stints:
        """Return one queue cell for every asking process of the asker's id, by strategy number.

        Positions of an id after the first do not ask.
        """
        roster = self.prepared.roster
        first_of_id = roster.copy[asker] == 0
        cell, asker = cell[first_of_id], asker[first_of_id]
        count = roster.processes_of(asker)
        cell, entry = np.repeat(cell, count), segments.ranges(asker, count)
        segment, epoch, process = cells.segment[cell], cells.epoch[cell], roster.process(entry)
        topic = self.holdings.queues.group_topic[cells.queue[segment]]
        row = self._rows.at(topic, process, epoch)
        is_asker = (row >= 0) & self._takers.asking[row]
        if number is not None:
            is_asker &= self._number[row] == number
        segment, process, epoch = segment[is_asker], process[is_asker], epoch[is_asker]
        return segment, process, epoch, epoch + 1

    def _by_proxies(self, cells: Cells) -> Stints:
        """Return every queue for members of ordered groups that are behind a proxy."""
        ordered = self.prepared.encoded.groups.ordered[self._group]
        rows = np.flatnonzero(self._takers.proxied & ordered)
        first, last = segments.stretches(cells.readable, cells.segment)
        segment = cells.segment[first]
        topic = self.holdings.queues.group_topic[cells.queue[segment]]
        stretch, taker = segments.matching(self._topic[rows], topic)
        row = rows[taker]
        begin = np.maximum(cells.epoch[first][stretch], self._begin[row])
        end = np.minimum(cells.epoch[last][stretch] + 1, self._end[row])
        meets = begin < end
        row, stretch = row[meets], stretch[meets]
        return segment[stretch], self._process[row], begin[meets], end[meets]

    def _pulled(self, cells: Cells, owned: list[tuple[int, Ints, Ints]]) -> Stints:
        """Return the queues that members pull from topics that others pop."""
        spans = self.holdings.shared_piece(cells, owned).spans
        begin = cells.epoch[spans.begin]
        end = begin + spans.end - spans.begin
        topic = self.holdings.queues.group_topic[cells.queue[spans.segment]]
        asker, begin, end = self._pulls().parts(topic, spans.process, begin, end)
        return spans.segment[asker], spans.process[asker], begin, end

    def _pulls(self) -> Periods:
        """Return the epochs in which each process pulls a topic that others pop."""
        takers = self._takers
        spans = [
            parts(self.prepared, mask, np.flatnonzero(rows), self._topic, self._begin, self._end)
            for mask, rows in (
                (self._cells, ~takers.proxied & ~takers.asking),
                (self._unasked, takers.asking),
            )
        ]
        row, begin, end = (np.concatenate(columns) for columns in zip(*spans, strict=True))
        return Periods.union(self._topic[row], self._process[row], begin, end)

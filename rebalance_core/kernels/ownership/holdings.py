"""Who holds each queue of all groups in each epoch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import pairwise

import numpy as np

from rebalance_core.kernels.codes.eligibility import EVERYONE, NO_KIND
from rebalance_core.kernels.ownership.broadcasts import broadcast, find_stays
from rebalance_core.kernels.ownership.kernels import Kernels
from rebalance_core.kernels.ownership.listed_queues import listed_queues
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups
from rebalance_core.kernels.ownership.process_passes import find_passes
from rebalance_core.kernels.ownership.sharing import Sharing
from rebalance_core.kernels.segments import Ints, first_of_run, halves, pair, pointers, ranges
from rebalance_core.kernels.state.cells import (
    ABSENT,
    NOBODY,
    Block,
    Cells,
    Piece,
    Queues,
    Readable,
    Shared,
)
from rebalance_core.kernels.state.roster import ALL_TOPICS

CELLS_PER_BLOCK = 1 << 17
SHARED = NO_KIND + 1
"""The kind of the queues of shared groups."""


class Holdings:
    """Who holds what in a prepared, piece by piece.

    Args:
        prepared: the groups.
        part: (i, n): only the i-th of n shares of every group's queues.
        cells_per_block: about how many cells a piece has; a segment is never cut.
    """

    def __init__(
        self,
        prepared: PreparedGroups,
        part: tuple[int, int] = (0, 1),
        cells_per_block: int = CELLS_PER_BLOCK,
    ) -> None:
        self._prepared = prepared
        self._part = part
        self._cells_per_block = cells_per_block
        self._mixed = np.zeros(len(prepared.coded.groups), np.bool_)
        runs = prepared.roster.runs
        self._mixed[runs.group[prepared.roster.topics_of_run != ALL_TOPICS]] = True
        frozen = np.repeat(prepared.grid.topics.group, np.diff(prepared.grid.topic_first))
        self._frozen = np.zeros(len(prepared.coded.groups), np.bool_)
        self._frozen[frozen[prepared.grid.frozen]] = True

    @cached_property
    def queues(self) -> Queues:
        """Every queue that can be read in some epoch, or that CONFIG lists."""
        grid = self._prepared.grid
        counts = grid.most_readable
        topic_broker = np.repeat(np.arange(len(counts)), counts)
        queue_id = ranges(np.zeros(len(counts), np.int64), counts)
        listed = listed_queues(self._prepared)
        if len(listed.allocation):
            both = np.concatenate([pair(topic_broker, queue_id), listed.key])
            topic_broker, queue_id = halves(np.unique(both))
        group = grid.brokers.group[topic_broker]
        if self._part != (0, 1):
            mine = self._mine(group)
            topic_broker, queue_id, group = topic_broker[mine], queue_id[mine], group[mine]
        return Queues(group, grid.topic_of[topic_broker], topic_broker, queue_id)

    @cached_property
    def _kernels(self) -> Kernels:
        return Kernels(self._prepared, self.queues)

    def _mine(self, group: Ints) -> Ints:
        """The rows of this part: a range of each group's queues."""
        part, parts = self._part
        first = np.flatnonzero(first_of_run(group))
        sizes = np.diff(np.append(first, len(group)))
        place = np.arange(len(group)) - np.repeat(first, sizes)
        return np.flatnonzero(place * parts // np.repeat(sizes, sizes) == part)

    def pieces(self) -> Iterator[Piece]:
        """All queues; each piece is of one kind of strategy, or of shared groups."""
        queues, shared = self.queues, self._prepared.shared[self.queues.group]
        kind = np.where(shared, SHARED, self._prepared.coded.groups.kind[queues.group])
        stays = find_stays(self._prepared)
        weights = np.diff(self._prepared.epochs.of_group)[queues.group]
        weights += np.diff(stays.first)[queues.group_topic]
        weights += shared * self._sharing.weights[queues.group_topic] if shared.any() else 0
        order = np.argsort(kind, kind="stable")
        kind = kind[order]
        for first, end in self._cuts(kind, pointers(weights[order])):
            cells = self._lay_out(order[first:end])
            if kind[first] == SHARED:
                yield self.shared_piece(cells, self.divided(cells))
            elif kind[first] == EVERYONE:
                yield broadcast(self._prepared, queues, stays, cells)
            else:
                yield self._block(int(kind[first]), cells)

    @cached_property
    def _sharing(self) -> Sharing:
        return Sharing(self._prepared, self.queues, find_passes(self._prepared))

    def laid_out(self, room: Ints) -> Iterator[Cells]:
        """All queues, whoever holds them, some at a time.

        Args:
            room: by queue: about how much an epoch of it takes.
        """
        queues, of_group = self.queues, self._prepared.epochs.of_group
        weights = pointers(np.diff(of_group)[queues.group] * room)
        for first, end in self._cuts(np.zeros(len(queues.group), np.int64), weights):
            yield self._lay_out(np.arange(first, end))

    def shared_piece(self, cells: Cells, owned: Iterable[tuple[int, Ints, Ints]]) -> Shared:
        """Who holds cells of shared groups; ``owned`` as `divided` gives it."""
        return self._sharing.piece(cells, owned)

    def divided(self, cells: Cells) -> Iterator[tuple[int, Ints, Ints]]:
        """Cells that a group's strategy of each number divides, and the entry that owns each."""
        prepared = self._prepared
        cell = np.flatnonzero(cells.readable & (prepared.epochs.live[cells.epoch] > 0))
        group = prepared.epochs.group[cells.epoch[cell]]
        for number in range(prepared.coded.divisions.most):
            kinds = self._kernels.divided_by[number].groups.kind[group]
            for kind in np.unique(kinds[kinds < EVERYONE]).tolist():
                mine = cell[kinds == kind]
                owner = self._kernels.of(kind, number).entries(self._readable(cells, mine))
                yield number, mine[owner >= 0], owner[owner >= 0]

    def _cuts(self, kind: Ints, weights: Ints) -> Iterator[tuple[int, int]]:
        """Ranges of queues of one kind, each of about `cells_per_block`."""
        bounds = np.append(np.flatnonzero(first_of_run(kind)), len(kind)).tolist()
        for begin, end in pairwise(bounds):
            at = begin
            while at < end:
                limit = weights[at] + self._cells_per_block
                following = int(np.searchsorted(weights, limit, side="right")) - 1
                following = min(max(at + 1, following), end)
                yield at, following
                at = following

    def _lay_out(self, queue: Ints) -> Cells:
        """The cells of some queues."""
        epochs, grid, queues = self._prepared.epochs, self._prepared.grid, self.queues
        group, opening = queues.group[queue], epochs.of_group[queues.group[queue]]
        count = epochs.of_group[group + 1] - opening
        broker_cell = ranges(grid.broker_first[queues.topic_broker[queue]], count)
        return Cells(
            queue,
            pointers(count),
            grid.topic_first[queues.group_topic[queue]] - opening,
            np.repeat(np.arange(len(queue)), count),
            ranges(opening, count),
            broker_cell,
            grid.readable[broker_cell] > np.repeat(queues.queue_id[queue], count),
        )

    def _block(self, kind: int, cells: Cells) -> Block:
        prepared, queues = self._prepared, self.queues
        group = queues.group[cells.queue]
        entry = np.where(cells.readable, NOBODY, ABSENT)
        divided = np.flatnonzero(cells.readable & (prepared.epochs.live[cells.epoch] > 0))
        queue = cells.queue[cells.segment[divided]]
        owner = self._kernels.of(kind).entries(self._readable(cells, divided))
        if self._mixed[group].any():
            held = np.flatnonzero(owner >= 0)
            group_topic = queues.group_topic[queue[held]]
            owner[held[~prepared.roster.subscribes(owner[held], group_topic)]] = NOBODY
        entry[divided] = owner
        if self._frozen[group].any():
            self._carry(entry, cells)
        return Block(cells, entry)

    def _readable(self, cells: Cells, divided: Ints) -> Readable:
        """What a strategy is told of some cells."""
        queues, queue = self.queues, cells.queue[cells.segment[divided]]
        return Readable(
            queue,
            cells.epoch[divided],
            cells.broker_cell[divided],
            queues.topic_broker[queue],
            queues.queue_id[queue],
        )

    def _carry(self, entry: Ints, cells: Cells) -> None:
        """Frozen topics: whoever held a queue and is still there keeps it."""
        grid, roster, topic_cell = self._prepared.grid, self._prepared.roster, cells.topic_cell
        group_topic = self.queues.group_topic[cells.queue]
        frozen = np.flatnonzero(grid.frozen[topic_cell])
        frozen = frozen[frozen > cells.first[cells.segment[frozen]]]
        ago = grid.thawed[topic_cell[frozen]]
        for turn in range(1, int(ago.max(initial=0)) + 1):
            at = frozen[ago == turn]
            at = at[entry[at - 1] >= 0]
            held = entry[at - 1]
            keeps = roster.following(held)
            stays = (keeps >= 0) & (roster.process(keeps) == roster.process(held))
            stays &= roster.subscribes(keeps, group_topic[cells.segment[at]])
            entry[at[stays]] = keeps[stays]

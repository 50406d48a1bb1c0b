"""The holders of each queue in each epoch, for all groups, computed by each strategy's kernel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import pairwise

import numpy as np

from rebalance_core.kernels import segments
from rebalance_core.kernels.cell_holders import ABSENT, NO_MEMBER, Block, Piece, Shared
from rebalance_core.kernels.cells import Cells, Readable
from rebalance_core.kernels.group_kinds import BROADCAST, SHARED, divides
from rebalance_core.kernels.ownership import passes
from rebalance_core.kernels.ownership.broadcast import Stays, broadcast, find_stays
from rebalance_core.kernels.ownership.changes import Differ, OwnerChanges
from rebalance_core.kernels.ownership.layout import Layout
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups
from rebalance_core.kernels.ownership.sharing import Sharing
from rebalance_core.kernels.ownership.strategy_kernels import Kernels
from rebalance_core.kernels.queue_parts import WHOLE, Part
from rebalance_core.kernels.queues import Queues
from rebalance_core.kernels.roster import ALL_TOPICS
from rebalance_core.kernels.segments import Bools, Ints
from rebalance_core.kernels.topic_members import TopicMembers, topic_members_of

CELLS_PER_BLOCK = 1 << 17


class Holdings:
    """The holdings in prepared groups, piece by piece.

    Args:
        prepared: the groups.
        part: the share of every group's queues to compute.
        cells_per_block: the approximate number of cells in a piece; a segment is never cut.
    """

    def __init__(
        self,
        prepared: PreparedGroups,
        part: Part = WHOLE,
        cells_per_block: int = CELLS_PER_BLOCK,
    ) -> None:
        self.part = part
        self._prepared = prepared
        self._layout = Layout(prepared, part, cells_per_block)

    @property
    def queues(self) -> Queues:
        """Every queue that can be read in any epoch, or that CONFIG lists."""
        return self._layout.queues

    @cached_property
    def _mixed(self) -> Bools:
        """The topic brokers whose group has members with differing subscriptions."""
        roster = self._prepared.roster
        mixed = np.zeros(len(self._prepared.encoded.groups), np.bool_)
        mixed[roster.runs.group[roster.topics_of_run != ALL_TOPICS]] = True
        return mixed[self._prepared.grid.brokers.group]

    @cached_property
    def _carried(self) -> Bools:
        """The topic brokers whose topic is frozen, or whose order locks are refused, in any
        epoch.
        """
        grid, lockless = self._prepared.grid, self._prepared.lockless
        frozen = segments.extreme(np.logical_or, grid.frozen, grid.topic_first, False)
        return frozen[grid.topic_of] | segments.extreme(
            np.logical_or, lockless, grid.broker_first, False
        )

    @cached_property
    def _kernels(self) -> Kernels:
        return Kernels(self._prepared, self.queues)

    def pieces(self) -> Iterator[Piece]:
        """Yield all queues in pieces; each piece has strategies of one kind, or shared groups."""
        prepared, grid = self._prepared, self._prepared.grid
        group = grid.brokers.group
        kind = np.where(prepared.shared, SHARED, prepared.encoded.groups.kind)[group]
        weights = np.diff(prepared.epochs.of_group)[group]
        if (kind == BROADCAST).any():
            weights += np.diff(self._stays.first)[grid.topic_of]
        if (kind == SHARED).any():
            weights += (kind == SHARED) * self._sharing.weights[grid.topic_of]
        for of_kind, cells in self._layout.pieces(kind, weights):
            if of_kind == SHARED:
                yield self.shared_piece(cells, self.divided(cells))
            elif of_kind == BROADCAST:
                yield broadcast(prepared, self.queues, self._stays, cells)
            else:
                yield self._block(of_kind, cells)

    def changed_pieces(self) -> Iterator[tuple[Piece, OwnerChanges]]:
        """Yield the pieces, each with its changes."""
        differ = Differ(self._prepared, self.queues)
        for piece in self.pieces():
            yield piece, differ.changes(piece)

    @cached_property
    def topic_members(self) -> TopicMembers:
        """The topic members of the groups, which several tables count."""
        return topic_members_of(self._prepared)

    @cached_property
    def _stays(self) -> Stays:
        return find_stays(self._prepared)

    @cached_property
    def _sharing(self) -> Sharing:
        return Sharing(self._prepared, self.queues, passes.find_passes(self._prepared))

    def laid_out(self, room: Ints) -> Iterator[Cells]:
        """Yield the cells of all queues in pieces, whoever holds them.

        Args:
            room: for each group topic, the approximate size of one queue in one epoch.
        """
        grid, of_group = self._prepared.grid, self._prepared.epochs.of_group
        weights = np.diff(of_group)[grid.brokers.group] * room[grid.topic_of]
        for _, cells in self._layout.pieces(np.zeros_like(weights), weights):
            yield cells

    def shared_piece(self, cells: Cells, owned: Iterable[tuple[int, Ints, Ints]]) -> Shared:
        """Return the holdings in cells of shared groups; ``owned`` is the result of `divided`."""
        return self._sharing.piece(cells, owned)

    def divided(self, cells: Cells) -> Iterator[tuple[int, Ints, Ints]]:
        """Yield (strategy number, cells that the strategy divides, entries that own them)."""
        prepared = self._prepared
        cell = np.flatnonzero(cells.readable & (prepared.epochs.live[cells.epoch] > 0))
        group = prepared.epochs.group[cells.epoch[cell]]
        for number in range(prepared.encoded.member_strategies.most):
            kinds = self._kernels.divided_by[number].groups.kind[group]
            for kind in segments.distinct(kinds[divides(kinds)]).tolist():
                mine = cell[kinds == kind]
                owner = self._kernels.kernel_of(kind, number).entries(Readable(cells, mine))
                yield number, mine[owner >= 0], owner[owner >= 0]

    def _block(self, kind: int, cells: Cells) -> Block:
        prepared, queues = self._prepared, self.queues
        topic_broker = cells.stretches.topic_broker
        readable = Readable(cells, self._divided_cells(cells))
        owner = self._kernels.kernel_of(kind).entries(readable)
        if self._mixed[topic_broker].any():
            held = np.flatnonzero(owner >= 0)
            group_topic = queues.group_topic[readable.queue[held]]
            owner[held[~prepared.roster.subscribes(owner[held], group_topic)]] = NO_MEMBER
        if readable.selected is None:
            entry = owner
        else:
            entry = np.where(cells.readable, NO_MEMBER, ABSENT)
            entry[readable.selected] = owner
        if self._carried[topic_broker].any():
            self._carry(entry, cells)
        return Block(cells, entry)

    def _divided_cells(self, cells: Cells) -> Ints | None:
        """Return the cells that can be read in an epoch with members, or None for all."""
        some = cells.stretches
        last = some.queue + some.count - 1
        last_id = self.queues.ids_of(last, some.topic_broker)
        if (last_id < self._always_divided[some.topic_broker]).all():
            return None
        return np.flatnonzero(cells.readable & (self._prepared.epochs.live[cells.epoch] > 0))

    @cached_property
    def _always_divided(self) -> Ints:
        """Return how many of each topic broker's first queues are allocated in every epoch."""
        epochs, grid = self._prepared.epochs, self._prepared.grid
        live = segments.extreme(np.minimum, epochs.live, epochs.of_group, 0) > 0
        fewest = segments.extreme(np.minimum, grid.readable, grid.broker_first, 0)
        return fewest * live[grid.brokers.group]

    def _carry(self, entry: Ints, cells: Cells) -> None:
        """Keep the previous holders where there is no answer, and no other holders where locks are
        refused.

        In frozen topics, every remaining member keeps the queues that it held. Without locks, no
        other member gets them.
        """
        roster, every_cell = self._prepared.roster, np.arange(len(cells))
        frozen = self._prepared.grid.frozen[cells.topic_cell]
        lockless = self._prepared.lockless[cells.broker_cell] & ~frozen
        opening = cells.first[cells.segment] == every_cell
        entry[opening & lockless & (entry >= 0)] = NO_MEMBER
        following = np.flatnonzero((frozen | lockless) & ~opening)
        ago = segments.rank(following - np.arange(len(following)))
        order = np.argsort(ago, kind="stable")
        bounds = np.searchsorted(ago[order], np.arange(int(ago.max(initial=-1)) + 2))
        group_topic = self.queues.group_topic[cells.queue]
        for begin, end in pairwise(bounds):
            cell = following[order[begin:end]]
            held = entry[cell - 1]
            keeps = roster.following(held)
            same = (keeps >= 0) & (held >= 0) & (roster.process(keeps) == roster.process(held))
            stays = same & frozen[cell] & roster.subscribes(keeps, group_topic[cells.segment[cell]])
            refused = lockless[cell] & (entry[cell] >= 0) & ~(same & (keeps == entry[cell]))
            entry[cell[stays]] = keeps[stays]
            entry[cell[refused]] = NO_MEMBER

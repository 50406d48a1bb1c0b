"""The blocks of all groups: who holds each queue in each epoch."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from typing import Protocol

import numpy as np

from rebalance_core.kernels.cells import ABSENT, NOBODY, Block, Queues, Readable
from rebalance_core.kernels.lanes import LaneMaker, Lanes
from rebalance_core.kernels.owners.averagely import AveragelyOwners
from rebalance_core.kernels.owners.averagely_by_circle import AveragelyByCircleOwners
from rebalance_core.kernels.owners.consistent_hash import ConsistentHashOwners
from rebalance_core.kernels.owners.everyone import EveryoneOwners
from rebalance_core.kernels.owners.machine_room import MachineRoomOwners
from rebalance_core.kernels.owners.machine_room_nearby import MachineRoomNearbyOwners
from rebalance_core.kernels.roster import ALL_TOPICS, subscribes, topic_slots
from rebalance_core.kernels.segments import Ints, first_of_run, pointers, ranges
from rebalance_core.kernels.shapes import EVERYONE
from rebalance_core.kernels.spans import Spans, block_spans, broadcast_spans, find_stays
from rebalance_core.kernels.world import World

CELLS_PER_BLOCK = 1 << 17


class Owners(Protocol):
    """One strategy for many groups."""

    def entries(self, cells: Readable) -> Ints:
        """The entry that owns each cell, `NOBODY` or (BROADCASTING) `ABSENT`."""


class Holdings:
    """Who holds what in a world, block by block.

    Args:
        world: the groups.
        part: (i, n): only the i-th of n shares of every group's queues.
        cells_per_block: about how many cells a block has; a lane is never cut.
    """

    def __init__(
        self, world: World, part: tuple[int, int] = (0, 1), cells_per_block: int = CELLS_PER_BLOCK
    ) -> None:
        self._world = world
        self._part = part
        self._cells_per_block = cells_per_block
        self._slots = topic_slots(world.grid.topics)
        self._mixed = np.zeros(len(world.fleet.groups), np.bool_)
        runs = world.roster.runs
        self._mixed[runs.group[world.roster.topics_of_run != ALL_TOPICS]] = True
        frozen = np.repeat(world.grid.topics.group, np.diff(world.grid.topic_first))
        self._frozen = np.zeros(len(world.fleet.groups), np.bool_)
        self._frozen[frozen[world.grid.frozen]] = True
        self._owners: dict[int, Owners] = {}

    @cached_property
    def queues(self) -> Queues:
        """Every queue that can be read in some epoch."""
        grid = self._world.grid
        counts = grid.most_readable
        topic_broker = np.repeat(np.arange(len(counts)), counts)
        queue_id = ranges(np.zeros(len(counts), np.int64), counts)
        group = grid.brokers.group[topic_broker]
        if self._part != (0, 1):
            mine = self._mine(group)
            topic_broker, queue_id, group = topic_broker[mine], queue_id[mine], group[mine]
        return Queues(group, grid.topic_of[topic_broker], topic_broker, queue_id)

    def _mine(self, group: Ints) -> Ints:
        """The rows of this part: a range of each group's queues."""
        part, parts = self._part
        first = np.flatnonzero(first_of_run(group))
        sizes = np.diff(np.append(first, len(group)))
        place = np.arange(len(group)) - np.repeat(first, sizes)
        return np.flatnonzero(place * parts // np.repeat(sizes, sizes) == part)

    def blocks(self) -> Iterator[Block]:
        """The blocks in the order of queues; each is of one kind of strategy."""
        for first, end, kind in self._cuts(self._lanes.cells):
            yield self._block(kind, self._lanes.lanes(first, end, broadcasting=kind == EVERYONE))

    def spans(self) -> Iterator[Spans]:
        """The spans of all queues; those of BROADCASTING groups cost no cell an epoch and stay."""
        stays = find_stays(self._world)
        counts = np.diff(stays.first)[self.queues.group_topic]
        for first, end, kind in self._cuts(pointers(self._lanes.epochs + counts)):
            lanes = self._lanes.lanes(first, end, broadcasting=False)
            if kind == EVERYONE:
                yield broadcast_spans(self._world, self.queues, stays, lanes)
            else:
                yield block_spans(self._world, self._block(kind, lanes))

    @cached_property
    def _lanes(self) -> LaneMaker:
        world = self._world
        return LaneMaker(world.fleet, world.epochs, world.roster.runs, self.queues)

    def _cuts(self, cells: Ints) -> Iterator[tuple[int, int, int]]:
        """Ranges of queues of one kind, each of about `cells_per_block` cells, and the kind."""
        kind = self._world.fleet.groups.kind[self.queues.group]
        bounds = np.append(np.flatnonzero(first_of_run(kind)), len(kind)).tolist()
        for begin, end in pairwise(bounds):
            at = begin
            while at < end:
                limit = cells[at] + self._cells_per_block
                following = int(np.searchsorted(cells, limit, side="right")) - 1
                following = min(max(at + 1, following), end)
                yield at, following, int(kind[at])
                at = following

    def _block(self, kind: int, lanes: Lanes) -> Block:
        world, queues, grid = self._world, self.queues, self._world.grid
        queue, count = lanes.queue, lanes.count
        group, topic_broker = queues.group[queue], queues.topic_broker[queue]
        group_topic, opening = queues.group_topic[queue], world.epochs.of_group[group]
        lane, epoch = np.repeat(np.arange(len(queue)), count), ranges(lanes.begin, count)
        later = lanes.begin - opening
        broker_cell = ranges(grid.broker_first[topic_broker] + later, count)
        queue_id = np.repeat(queues.queue_id[queue], count)
        readable = grid.readable[broker_cell] > queue_id
        entry = np.where(readable, NOBODY, ABSENT)
        if lanes.broadcasting:
            own = (lanes.client >= 0)[lane]
            read = grid.read[ranges(grid.topic_first[group_topic] + later, count)]
            entry[own | read] = ABSENT
            divided = np.flatnonzero(readable & read & own)
        else:
            divided = np.flatnonzero(readable & (world.epochs.live[epoch] > 0))
        of = lane[divided]
        owner = self._kernel(kind).entries(
            Readable(
                queue[of], epoch[divided], broker_cell[divided], topic_broker[of],
                queue_id[divided], lanes.stay_end[of], lanes.stay_node[of],
            )
        )  # fmt: skip
        if self._mixed[group].any():
            held = np.flatnonzero(owner >= 0)
            slot = self._slots[group_topic[of[held]]]
            refuses = held[~subscribes(world.roster, owner[held], slot)]
            owner[refuses] = ABSENT if lanes.broadcasting else NOBODY
        entry[divided] = owner
        first = pointers(count)
        if self._frozen[group].any():
            topic_cell = ranges(grid.topic_first[group_topic] + later, count)
            self._carry(entry, topic_cell, self._slots[group_topic], lane, first)
        return Block(queue, lanes.client, first, lane, epoch, readable, entry, lanes.broadcasting)

    def _carry(self, entry: Ints, topic_cell: Ints, slot: Ints, lane: Ints, first: Ints) -> None:
        """Frozen topics: whoever held a queue and is still there keeps it."""
        grid, roster = self._world.grid, self._world.roster
        frozen = np.flatnonzero(grid.frozen[topic_cell])
        frozen = frozen[frozen > first[lane[frozen]]]
        ago = grid.thawed[topic_cell[frozen]]
        for turn in range(1, int(ago.max(initial=0)) + 1):
            at = frozen[ago == turn]
            at = at[entry[at - 1] >= 0]
            held = entry[at - 1]
            keeps = roster.following[held]
            stays = (keeps >= 0) & (roster.process[keeps] == roster.process[held])
            stays &= subscribes(roster, keeps, slot[lane[at]])
            entry[at[stays]] = keeps[stays]

    def _kernel(self, kind: int) -> Owners:
        """The strategy's kernel, made when the first block of its kind comes."""
        if kind not in self._owners:
            self._owners[kind] = self._made(kind)
        return self._owners[kind]

    def _made(self, kind: int) -> Owners:
        world = self._world
        fleet, epochs, grid, roster = world.fleet, world.epochs, world.grid, world.roster
        makers = (  # in the order of shapes.KINDS, then EVERYONE
            lambda: AveragelyOwners(grid, roster),
            lambda: AveragelyByCircleOwners(grid, roster),
            lambda: ConsistentHashOwners(fleet, epochs, grid, roster, self.queues),
            lambda: MachineRoomOwners(fleet, grid, roster),
            lambda: MachineRoomNearbyOwners(fleet, epochs, grid, roster),
            lambda: EveryoneOwners(roster),
        )
        made: Owners = makers[kind]()
        return made

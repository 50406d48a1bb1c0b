"""MACHINE_ROOM_NEARBY: AVG or AVG_BY_CIRCLE inside each room; rooms without members go to all."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from rebalance_core.kernels.cells.cells import Readable
from rebalance_core.kernels.codes import eligibility
from rebalance_core.kernels.codes.coded_groups import CodedGroups
from rebalance_core.kernels.ownership.owners.averagely import average_index
from rebalance_core.kernels.segments import Bools, Ints, halves, pair, ranges
from rebalance_core.kernels.state.epochs import Epochs
from rebalance_core.kernels.state.grid import Grid, places
from rebalance_core.kernels.state.roster import Roster
from rebalance_core.kernels.state.routes import TopicBrokers
from rebalance_core.kernels.state.runs import Runs
from rebalance_core.model.queue import MessageQueue
from rebalance_core.strategies.averagely import Averagely
from rebalance_core.strategies.machine_room_nearby import MachineRoomNearby, RoomResolver

RoomOf: TypeAlias = Callable[[RoomResolver, str], str | None]
NO_ROOM = -1
KIND = eligibility.KINDS.index(MachineRoomNearby)


class Rooms:
    """Machine rooms as numbers, the same for clients and brokers."""

    def __init__(self, coded: CodedGroups) -> None:
        self._coded = coded
        self._numbers: dict[str, int] = {}

    def of_clients(self, group: Ints, client: Ints) -> Ints:
        """The room of each client as its group's strategy sees it; `NO_ROOM`: it has none."""
        return self._rooms(group, self._coded.names.clients, client, _client_room)

    def of_brokers(self, group: Ints, broker: Ints) -> Ints:
        """The room of each broker as the group's strategy sees it; `NO_ROOM`: it has none."""
        return self._rooms(group, self._coded.names.brokers, broker, _broker_room)

    def _rooms(self, group: Ints, names: pa.StringArray, name: Ints, room_of: RoomOf) -> Ints:
        """Each pair of strategy and name is looked at once."""
        groups, numbers = self._coded.groups, self._numbers
        result = np.zeros(len(group), np.int64)
        rows = np.flatnonzero(groups.kind[group] == KIND)
        keys = pair(groups.allocation[group[rows]], name[rows])
        distinct, of = np.unique(keys, return_inverse=True)
        allocations, names_asked = halves(distinct)
        texts = names.take(pa.array(names_asked)).to_pylist()
        rooms = []
        for allocation, text in zip(allocations.tolist(), texts, strict=True):
            strategy = self._coded.strategies[allocation]
            assert isinstance(strategy, MachineRoomNearby)
            room = room_of(strategy.rooms, text)
            rooms.append(numbers.setdefault(room, len(numbers)) if room else NO_ROOM)
        result[rows] = np.array(rooms, np.int64)[of]
        return result


def _client_room(resolver: RoomResolver, name: str) -> str | None:
    return resolver.client_room(name)


def _broker_room(resolver: RoomResolver, name: str) -> str | None:
    return resolver.broker_room(MessageQueue("", name, 0))


def roomless_groups(coded: CodedGroups, brokers: TopicBrokers, runs: Runs) -> Ints:
    """Groups in which a member or a broker has no room: upstream's strategy throws."""
    rooms = Rooms(coded)
    lost = runs.group[rooms.of_clients(runs.group, runs.client) == NO_ROOM]
    broker = rooms.of_brokers(brokers.group, brokers.broker) == NO_ROOM
    return np.union1d(lost, brokers.group[broker])


class MachineRoomNearbyOwners:
    """`AllocateMachineRoomNearby` of many groups. Cost: O(log members) a queue and epoch."""

    def __init__(self, coded: CodedGroups, epochs: Epochs, grid: Grid, roster: Roster) -> None:
        rooms = Rooms(coded)
        run_room = rooms.of_clients(roster.runs.group, roster.runs.client)
        self._broker_room = rooms.of_brokers(grid.brokers.group, grid.brokers.broker)
        self._before, self._total = places(grid, grid.readable, self._broker_room)
        mine = self._entries(coded, epochs, roster)
        keys = pair(roster.epoch[mine], run_room[roster.run[mine]])
        order = np.argsort(keys, kind="stable")
        self._by_room, keys = mine[order], keys[order]
        wanted = self._rooms_wanted(epochs, grid)
        self._room_first = np.searchsorted(keys, wanted)
        self._in_room = np.searchsorted(keys, wanted, side="right") - self._room_first
        self._first = roster.first
        self._group = epochs.group
        self._is_average = self._inner_is_average(coded)

    @staticmethod
    def _entries(coded: CodedGroups, epochs: Epochs, roster: Roster) -> Ints:
        """The entries of groups with this strategy: a group's stand together."""
        groups = np.flatnonzero(coded.groups.kind == KIND)
        first = roster.first[epochs.of_group[groups]]
        return ranges(first, roster.first[epochs.of_group[groups + 1]] - first)

    def _rooms_wanted(self, epochs: Epochs, grid: Grid) -> Ints:
        """By broker cell: (epoch, room of the broker)."""
        sizes = np.diff(grid.broker_first)
        epoch = ranges(epochs.of_group[:-1][grid.brokers.group], sizes)
        return pair(epoch, np.repeat(self._broker_room, sizes))

    @staticmethod
    def _inner_is_average(coded: CodedGroups) -> Bools:
        """By group: the inner strategy is AVG."""
        average = [
            isinstance(s, MachineRoomNearby) and isinstance(s.inner, Averagely)
            for s in coded.strategies
        ]
        return np.array([*average, False], np.bool_)[coded.groups.allocation]

    def entries(self, cells: Readable) -> Ints:
        """The entry that owns each cell."""
        place = cells.places(self._before)
        queues = self._total[cells.broker_cell]
        first = self._room_first[cells.broker_cell]
        in_room = self._in_room[cells.broker_cell]
        everybody = self._first[cells.epoch + 1] - self._first[cells.epoch]
        members = np.where(in_room > 0, in_room, everybody)
        index = np.where(
            self._is_average[self._group[cells.epoch]],
            average_index(place, queues, members),
            place % members,
        )
        near = self._by_room[np.minimum(first + index, len(self._by_room) - 1)]
        return np.where(in_room > 0, near, self._first[cells.epoch] + index)

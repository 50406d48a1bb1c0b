"""MACHINE_ROOM_NEARBY: AVG or AVG_BY_CIRCLE inside each room; rooms without members go to all."""

from __future__ import annotations

import numpy as np

from rebalance_core.kernels.codes import eligibility
from rebalance_core.kernels.codes.coded_groups import CodedGroups
from rebalance_core.kernels.ownership.owners.averagely import average_index
from rebalance_core.kernels.segments import Bools, Ints, pair, ranges
from rebalance_core.kernels.state.cells import Readable
from rebalance_core.kernels.state.epochs import Epochs
from rebalance_core.kernels.state.grid import Grid, places
from rebalance_core.kernels.state.roster import Roster
from rebalance_core.kernels.state.routes import TopicBrokers
from rebalance_core.kernels.state.runs import Runs
from rebalance_core.model.queue import MessageQueue
from rebalance_core.strategies.averagely import Averagely
from rebalance_core.strategies.machine_room_nearby import MachineRoomNearby

NO_ROOM = -1
KIND = eligibility.KINDS.index(MachineRoomNearby)


class Rooms:
    """Machine rooms as numbers, the same for clients and brokers."""

    def __init__(self, coded: CodedGroups) -> None:
        self._fleet = coded
        self._clients = coded.names.clients
        self._brokers = coded.names.brokers
        self._numbers: dict[str, int] = {}
        self._known: dict[tuple[str, int, int], int] = {}

    def of_clients(self, group: Ints, client: Ints) -> Ints:
        """The room of each client as its group's strategy sees it; `NO_ROOM`: it has none."""
        return self._rooms("client", group, client)

    def of_brokers(self, group: Ints, broker: Ints) -> Ints:
        """The room of each broker as the group's strategy sees it; `NO_ROOM`: it has none."""
        return self._rooms("broker", group, broker)

    def _rooms(self, what: str, group: Ints, name: Ints) -> Ints:
        nearby = self._fleet.groups.kind[group] == KIND
        result = np.zeros(len(group), np.int64)
        rows = np.flatnonzero(nearby)
        pairs = zip(
            self._fleet.groups.allocation[group[rows]].tolist(), name[rows].tolist(), strict=True
        )
        result[rows] = [self._room(what, *found) for found in pairs]
        return result

    def _room(self, what: str, allocation: int, name: int) -> int:
        key = (what, allocation, name)
        if key not in self._known:
            strategy = self._fleet.strategies[allocation]
            assert isinstance(strategy, MachineRoomNearby)
            if what == "client":
                room = strategy.rooms.client_room(self._clients[name].as_py())
            else:
                broker = self._brokers[name].as_py()
                room = strategy.rooms.broker_room(MessageQueue("", broker, 0))
            self._known[key] = (
                self._numbers.setdefault(room, len(self._numbers)) if room else NO_ROOM
            )
        return self._known[key]


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
        place = self._before[cells.broker_cell] + cells.queue_id
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

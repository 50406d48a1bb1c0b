"""MACHINE_ROOM: only the queues of the configured rooms, divided among all members."""

from __future__ import annotations

from functools import cache

import numpy as np

from rebalance_core.kernels.cells.cells import Readable
from rebalance_core.kernels.cells.pieces import NOBODY
from rebalance_core.kernels.codes.coded_groups import CodedGroups
from rebalance_core.kernels.segments import Bools, Ints
from rebalance_core.kernels.state.grid import Grid, places
from rebalance_core.kernels.state.roster import Roster
from rebalance_core.model.queue import MessageQueue
from rebalance_core.strategies.machine_room import MachineRoom, queues_in_rooms
from rebalance_core.strategies.spi import is_java_blank


class MachineRoomOwners:
    """`AllocateMessageQueueByMachineRoom` of many groups. Cost: O(1) a queue and epoch."""

    def __init__(self, coded: CodedGroups, grid: Grid, roster: Roster) -> None:
        self._inside = np.repeat(_in_rooms(coded, grid), np.diff(grid.broker_first))
        self._before, self._total = places(grid, grid.readable * self._inside)
        self._first = roster.first

    def entries(self, cells: Readable) -> Ints:
        """The entry that owns each cell; the remainder goes one by one to the first members."""
        first = self._first[cells.epoch]
        members = self._first[cells.epoch + 1] - first
        place = cells.places(self._before)
        size = self._total[cells.broker_cell] // members
        remainder = place - size * members
        index = np.where(remainder >= 0, remainder, place // np.maximum(size, 1))
        return np.where(self._inside[cells.broker_cell], first + index, NOBODY)


def blank_groups(coded: CodedGroups, group: Ints, client: Ints) -> Ints:
    """Groups with a member whose id upstream takes for an empty one: its strategy throws.

    Args:
        coded: the groups.
        group: of each client that is ever a member.
        client: that client.
    """
    strict = [isinstance(s, MachineRoom) and s.blank_is_empty for s in coded.strategies]
    rows = np.flatnonzero(np.array([*strict, False], np.bool_)[coded.groups.allocation[group]])
    names = coded.names.clients.take(client[rows]).to_pylist()
    return np.unique(group[rows[np.array([is_java_blank(name) for name in names], np.bool_)]])


def _in_rooms(coded: CodedGroups, grid: Grid) -> Bools:
    """By topic broker: its queues are divided."""
    brokers = coded.names.brokers.to_pylist()

    @cache
    def inside(allocation: int, broker: int) -> bool:
        strategy = coded.strategies[allocation]
        if not isinstance(strategy, MachineRoom):
            return False
        queue = MessageQueue("", brokers[broker], 0)
        return bool(queues_in_rooms((queue,), strategy.consumer_idcs))

    allocations = coded.groups.allocation[grid.brokers.group].tolist()
    return np.array(list(map(inside, allocations, grid.brokers.broker.tolist())), np.bool_)

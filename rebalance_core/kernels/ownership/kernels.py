"""The kernel of every strategy for prepared groups, made when it is first asked for."""

from __future__ import annotations

from functools import cached_property
from typing import Protocol

from rebalance_core.kernels.cells.cells import Readable
from rebalance_core.kernels.cells.queues import Queues
from rebalance_core.kernels.ownership.owners.averagely import AveragelyOwners, slices
from rebalance_core.kernels.ownership.owners.averagely_by_circle import (
    AveragelyByCircleOwners,
    turns,
)
from rebalance_core.kernels.ownership.owners.by_place import Deal, ListedOwners, OwnersByPlace
from rebalance_core.kernels.ownership.owners.consistent_hash import ConsistentHashOwners
from rebalance_core.kernels.ownership.owners.machine_room import MachineRoomOwners
from rebalance_core.kernels.ownership.owners.machine_room_nearby import MachineRoomNearbyOwners
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups
from rebalance_core.kernels.segments import Ints
from rebalance_core.kernels.state.grid import Places, places

DEALS: tuple[Deal, ...] = (slices, turns)
"""Strategies that look at nothing but numbers; in the order of `eligibility.KINDS`."""
MOST_LISTED = 1 << 22
"""Places in all answers of one of these that are listed, at 4 bytes each; where there are more,
owners are computed cell by cell."""


class Owners(Protocol):
    """One strategy for many groups."""

    def entries(self, cells: Readable) -> Ints:
        """The entry that owns each cell, or `NOBODY`."""


class Kernels:
    """The kernels of prepared groups.

    Args:
        prepared: the groups.
        queues: what `Readable.queue` is an index into.

    Attributes:
        divided_by: the groups once for each strategy of the group that has the most.
    """

    def __init__(self, prepared: PreparedGroups, queues: Queues) -> None:
        self._prepared, self._queues = prepared, queues
        self._made: dict[tuple[int, int], Owners] = {}
        coded = prepared.coded
        self.divided_by = [*map(coded.divided_by, range(coded.divisions.most))]

    def of(self, kind: int, number: int = 0) -> Owners:
        """The kernel of a kind of strategy.

        Args:
            kind: of the strategy.
            number: of the strategy in its group.
        """
        if (kind, number) not in self._made:
            self._made[kind, number] = self._new(kind, number)
        return self._made[kind, number]

    @cached_property
    def _places(self) -> Places:
        return places(self._prepared.grid, self._prepared.grid.readable)

    def _new(self, kind: int, number: int) -> Owners:
        prepared, coded = self._prepared, self.divided_by[number]
        epochs, grid, roster = prepared.epochs, prepared.grid, prepared.roster
        rings = prepared.rings[number]
        if kind < len(DEALS):
            answers = OwnersByPlace(DEALS[kind], coded.groups.kind == kind, epochs, grid, roster)
            if answers.first[-1] <= MOST_LISTED:
                return ListedOwners(answers, grid, self._places, roster)
        makers = (  # in the order of eligibility.KINDS
            lambda: AveragelyOwners(self._places, roster),
            lambda: AveragelyByCircleOwners(self._places, roster),
            lambda: ConsistentHashOwners(coded, rings, epochs, grid, roster, self._queues),
            lambda: MachineRoomOwners(coded, grid, roster),
            lambda: MachineRoomNearbyOwners(coded, epochs, grid, roster),
        )
        made: Owners = makers[kind]()
        return made

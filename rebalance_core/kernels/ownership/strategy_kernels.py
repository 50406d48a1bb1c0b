"""The kernel of every strategy for prepared groups, built on first use."""

from __future__ import annotations

from functools import cached_property
from typing import Protocol

from rebalance_core.kernels.cells import Readable
from rebalance_core.kernels.encoded_groups import EncodedGroups
from rebalance_core.kernels.grid import Places, places
from rebalance_core.kernels.group_kinds import (
    ASKED,
    BY_PLACE,
    IN_ROOMS,
    ON_RING,
    rules_of,
)
from rebalance_core.kernels.ownership.asked import OwnStrategyOwners
from rebalance_core.kernels.ownership.by_place import (
    ComputedOwners,
    ListedOwners,
    OwnersByPlace,
    brokers_divided,
)
from rebalance_core.kernels.ownership.in_rooms import InRoomsOwners
from rebalance_core.kernels.ownership.on_ring import OnRingOwners
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups
from rebalance_core.kernels.queues import Queues
from rebalance_core.kernels.segments import Ints

MOST_LISTED = 1 << 22
"""The maximum number of places in all answers of a strategy that are listed, at 4 bytes each; if
there are more, owners are computed cell by cell.
"""


class LaidOutOwners(Protocol):
    """A strategy applied to many groups."""

    def entries(self, cells: Readable) -> Ints:
        """Return the entry that owns each cell, or `cell_holders.NO_MEMBER`."""


class Kernels:
    """The kernels of prepared groups.

    Args:
        prepared: the groups.
        queues: the queues that `Readable.queue` indexes.

    Attributes:
        divided_by: the groups, once for each strategy number up to the maximum of any group.
    """

    def __init__(self, prepared: PreparedGroups, queues: Queues) -> None:
        self._prepared, self._queues = prepared, queues
        self._made: dict[tuple[int, int], LaidOutOwners] = {}
        encoded = prepared.encoded
        self.divided_by = [*map(encoded.divided_by, range(encoded.member_strategies.most))]

    def kernel_of(self, kind: int, number: int = 0) -> LaidOutOwners:
        """Return the kernel of a kind of strategy.

        Args:
            kind: the strategy's kind.
            number: the number of the strategy in its group.
        """
        if (kind, number) not in self._made:
            self._made[kind, number] = self._new(kind, number)
        return self._made[kind, number]

    @cached_property
    def _places(self) -> Places:
        return places(self._prepared.grid, self._prepared.grid.readable)

    def _new(self, kind: int, number: int) -> LaidOutOwners:
        prepared, encoded = self._prepared, self.divided_by[number]
        epochs, grid, roster = prepared.epochs, prepared.grid, prepared.roster
        if kind >= BY_PLACE:
            return self._by_place(kind, encoded)
        if kind == ON_RING:
            rings = prepared.rings[number]
            return OnRingOwners(encoded, rings, epochs, grid, roster, self._queues)
        if kind == IN_ROOMS:
            return InRoomsOwners(encoded, epochs, grid, roster)
        assert kind == ASKED, f"no kernel divides groups of kind {kind}"
        return OwnStrategyOwners(prepared.asked[number], epochs, grid, self._places, roster)

    def _by_place(self, kind: int, encoded: EncodedGroups) -> LaidOutOwners:
        grid, roster = self._prepared.grid, self._prepared.roster
        rule = rules_of(encoded.strategies)[kind - BY_PLACE]
        mine = encoded.groups.kind == kind
        inside = brokers_divided(encoded, grid)
        if inside is None or inside[mine[grid.brokers.group]].all():
            answers = OwnersByPlace(rule, mine, self._prepared.epochs, grid, roster)
            if answers.first[-1] <= MOST_LISTED:
                return ListedOwners(answers, grid, self._places, roster)
        return ComputedOwners(rule, grid, roster, inside)

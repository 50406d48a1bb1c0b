"""Owners under strategies that divide each machine room's queues among its members (`InRooms`)."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from rebalance_core.kernels import segments
from rebalance_core.kernels.cells import Readable
from rebalance_core.kernels.encoded_groups import EncodedGroups
from rebalance_core.kernels.epochs import Epochs
from rebalance_core.kernels.grid import Grid, places
from rebalance_core.kernels.group_kinds import IN_ROOMS
from rebalance_core.kernels.roster import Roster
from rebalance_core.kernels.routes import TopicBrokers
from rebalance_core.kernels.runs import Runs
from rebalance_core.kernels.segments import NONE, Ints
from rebalance_core.strategies.vectorised import InRooms, PlaceRule

NO_ROOM = -1


class Rooms:
    """Machine rooms as numbers, the same for clients and brokers."""

    def __init__(self, encoded: EncodedGroups) -> None:
        self._coded = encoded
        self._numbers: dict[str, int] = {}

    def of_clients(self, group: Ints, client: Ints) -> Ints:
        """Return each client's room as its group's strategy sees it, or `NO_ROOM`."""
        return self._rooms(group, self._coded.names.clients, client, lambda form: form.client_room)

    def of_brokers(self, group: Ints, broker: Ints) -> Ints:
        """Return each broker's room as the group's strategy sees it, or `NO_ROOM`."""
        return self._rooms(group, self._coded.names.brokers, broker, lambda form: form.broker_room)

    def _rooms(
        self,
        group: Ints,
        names: pa.StringArray,
        name: Ints,
        room_of: Callable[[InRooms], Callable[[str], str | None]],
    ) -> Ints:
        """Look up the room of each distinct pair of strategy and name."""
        groups, numbers = self._coded.groups, self._numbers
        result = np.zeros(len(group), np.int64)
        rows = np.flatnonzero(groups.kind[group] == IN_ROOMS)
        keys = segments.pair(groups.allocation[group[rows]], name[rows])
        distinct, of = np.unique(keys, return_inverse=True)
        allocations, names_asked = segments.halves(distinct)
        texts = names.take(pa.array(names_asked)).to_pylist()
        rooms = []
        for allocation, text in zip(allocations.tolist(), texts, strict=True):
            form = self._coded.strategies[allocation].vectorised()
            assert isinstance(form, InRooms)
            room = room_of(form)(text)
            rooms.append(numbers.setdefault(room, len(numbers)) if room else NO_ROOM)
        result[rows] = np.array(rooms, np.int64)[of]
        return result


def roomless_groups(encoded: EncodedGroups, brokers: TopicBrokers, runs: Runs) -> Ints:
    """Return the groups with a member or broker that has no room, for which upstream's strategy
    throws.
    """
    rooms = Rooms(encoded)
    lost = runs.group[rooms.of_clients(runs.group, runs.client) == NO_ROOM]
    broker = rooms.of_brokers(brokers.group, brokers.broker) == NO_ROOM
    return np.union1d(lost, brokers.group[broker])


class InRoomsOwners:
    """Owners in groups whose rooms are divided by place. Cost: O(log members) per queue and
    epoch.
    """

    def __init__(self, encoded: EncodedGroups, epochs: Epochs, grid: Grid, roster: Roster) -> None:
        rooms = Rooms(encoded)
        run_room = rooms.of_clients(roster.runs.group, roster.runs.client)
        self._broker_room = rooms.of_brokers(grid.brokers.group, grid.brokers.broker)
        self._before, self._total = places(grid, grid.readable, self._broker_room)
        mine = self._entries(encoded, epochs, roster)
        keys = segments.pair(roster.epoch[mine], run_room[roster.run[mine]])
        order = np.argsort(keys, kind="stable")
        self._by_room, keys = mine[order], keys[order]
        wanted = self._rooms_wanted(epochs, grid)
        self._room_first, end = segments.equal_range(keys, wanted)
        self._in_room = end - self._room_first
        self._first = roster.first
        self._group = epochs.group
        self._rules, self._number = self._rules_in(encoded)

    @staticmethod
    def _entries(encoded: EncodedGroups, epochs: Epochs, roster: Roster) -> Ints:
        """Return the entries of groups with this strategy, with each group's entries adjacent."""
        groups = np.flatnonzero(encoded.groups.kind == IN_ROOMS)
        first = roster.first[epochs.of_group[groups]]
        return segments.ranges(first, roster.first[epochs.of_group[groups + 1]] - first)

    def _rooms_wanted(self, epochs: Epochs, grid: Grid) -> Ints:
        """Return (epoch, room of the broker) for each broker cell."""
        sizes = np.diff(grid.broker_first)
        epoch = segments.ranges(epochs.of_group[:-1][grid.brokers.group], sizes)
        return segments.pair(epoch, np.repeat(self._broker_room, sizes))

    @staticmethod
    def _rules_in(encoded: EncodedGroups) -> tuple[list[PlaceRule], Ints]:
        """Return the rules that apply inside rooms, and the number of each group's rule."""
        forms = [strategy.vectorised() for strategy in encoded.strategies]
        rules = list(dict.fromkeys(form.rule for form in forms if isinstance(form, InRooms)))
        numbers = [rules.index(f.rule) if isinstance(f, InRooms) else NONE for f in forms]
        return rules, np.array([*numbers, NONE], np.int64)[encoded.groups.allocation]

    def entries(self, cells: Readable) -> Ints:
        """Return the entry that owns each cell."""
        place = cells.places(self._before)
        queues = self._total[cells.broker_cell]
        first = self._room_first[cells.broker_cell]
        in_room = self._in_room[cells.broker_cell]
        everybody = self._first[cells.epoch + 1] - self._first[cells.epoch]
        members = np.where(in_room > 0, in_room, everybody)
        number = self._number[self._group[cells.epoch]]
        index = np.zeros(len(place), np.int64)
        for of, rule in enumerate(self._rules):
            index = np.where(number == of, rule.index(place, queues, members), index)
        near = self._by_room[np.minimum(first + index, len(self._by_room) - 1)]
        return np.where(in_room > 0, near, self._first[cells.epoch] + index)

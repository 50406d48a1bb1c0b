"""Who owns each queue: the kernel of each strategy, by places in the sorted list, by rooms, by
a ring.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from rebalance_core.kernels import group_rows, segments
from rebalance_core.kernels.cells import NOBODY, Cells, Queues, Readable
from rebalance_core.kernels.coded_groups import CodedGroups
from rebalance_core.kernels.epochs import Epochs, TopicBrokers
from rebalance_core.kernels.grid import Grid, Places, places
from rebalance_core.kernels.roster import Roster, Runs, processes_at_once
from rebalance_core.kernels.segments import AnyInts, Bools, Counts, Ints
from rebalance_core.model.queue import MessageQueue
from rebalance_core.strategies.averagely import Averagely
from rebalance_core.strategies.consistent_hash import ConsistentHash, ring_point
from rebalance_core.strategies.go import GoConsistentHash, go_ring_point
from rebalance_core.strategies.machine_room import (
    MachineRoom,
    MachineRoomNearby,
    RoomResolver,
    queues_in_rooms,
)
from rebalance_core.strategies.spi import is_java_blank

# AVG: contiguous slices, the surplus to the first clients.


def average_index(place: AnyInts, queues: AnyInts, members: AnyInts) -> AnyInts:
    """The index in cidAll whose slice holds the queue at ``place`` of ``queues``; no loop.

    The inverse of `rebalance_core.strategies.averagely.average_slice`.

    >>> average_index(np.arange(8), np.array([8] * 8), np.array([3] * 8)).tolist()
    [0, 0, 0, 1, 1, 1, 2, 2]
    """
    size, larger = np.divmod(queues, members)
    in_larger = larger * (size + 1)
    late = place >= in_larger
    return np.where(late, larger + (place - in_larger) // np.maximum(size, 1), place // (size + 1))


def slices(queues: Ints, members: Ints) -> Counts:
    """`average_index` of every place, one number of queues and members after the other.

    >>> slices(np.array([8, 2]), np.array([3, 5])).tolist()
    [0, 0, 0, 1, 1, 1, 2, 2, 0, 1]
    """
    size, larger = np.divmod(queues, members)
    owning = np.minimum(queues, members)
    index = segments.ranges(np.zeros_like(owning), owning)
    lengths = np.repeat(size, owning) + (index < np.repeat(larger, owning))
    return np.repeat(index.astype(np.int32), lengths)


class AveragelyOwners:
    """``AllocateMessageQueueAveragely`` of many groups. Cost: O(1) a queue and epoch."""

    def __init__(self, numbered: Places, roster: Roster) -> None:
        self._before, self._total = numbered
        self._first = roster.first

    def entries(self, cells: Readable) -> Ints:
        """The entry that owns each cell."""
        first = self._first[cells.epoch]
        members = self._first[cells.epoch + 1] - first
        place = cells.places(self._before)
        return first + average_index(place, self._total[cells.broker_cell], members)


# AVG_BY_CIRCLE: the queues dealt out in turn.


def turns(queues: Ints, members: Ints) -> Counts:
    """The index in cidAll of every place, one number of queues and members after the other.

    >>> turns(np.array([5, 2]), np.array([3, 4])).tolist()
    [0, 1, 2, 0, 1, 0, 1]
    """
    place = segments.ranges(np.zeros_like(queues), queues).astype(np.int32)
    dealt: Counts = place % np.repeat(members.astype(np.int32), queues)
    return dealt


class AveragelyByCircleOwners:
    """``AllocateMessageQueueAveragelyByCircle`` of many groups. Cost: O(1) a queue and epoch."""

    def __init__(self, numbered: Places, roster: Roster) -> None:
        self._before, _ = numbered
        self._first = roster.first

    def entries(self, cells: Readable) -> Ints:
        """The entry that owns each cell."""
        first = self._first[cells.epoch]
        place = cells.places(self._before)
        return first + place % (self._first[cells.epoch + 1] - first)


# Who owns the queue at each place of a topic's sorted list, once for all topics that are alike.

Deal: TypeAlias = Callable[[Ints, Ints], Counts]
"""From queues and members, one value an answer, to the index in cidAll of each place's owner."""


class OwnersByPlace:
    """The answers of a strategy that looks at nothing but how many queues and members there are.

    The queue at a place of the sorted list goes to the member at an index of cidAll. That index
    depends on the numbers of queues and members alone, so that topics of any group and epoch with
    equal numbers have one *answer*. Cost: O(topic cells), and O(places) when `index` is asked for.

    Args:
        deal: the strategy.
        mine: by group: it divides by this strategy.
        epochs: of all groups.
        grid: of all groups.
        roster: of all groups.
    """

    def __init__(self, deal: Deal, mine: Bools, epochs: Epochs, grid: Grid, roster: Roster) -> None:
        sizes = np.diff(grid.topic_first)
        self.epoch = segments.ranges(epochs.of_group[grid.topics.group], sizes)
        """By topic cell."""
        members = np.diff(roster.first)[self.epoch]
        divided = (grid.queues > 0) & (members > 0) & np.repeat(mine[grid.topics.group], sizes)
        self.topic_cell: Ints = np.flatnonzero(divided)
        """The topic cells that have an answer."""
        numbers = segments.pair(grid.queues[self.topic_cell], members[self.topic_cell])
        distinct, self.answer = np.unique(numbers, return_inverse=True)
        """`answer`: which one each of them has."""
        self._deal, self._numbers = deal, segments.halves(distinct)
        self.first = segments.pointers(self._numbers[0])
        """Where each answer begins in `index`, and the end."""

    @cached_property
    def index(self) -> Counts:
        """By answer and place: the index in cidAll of the owner."""
        return self._deal(*self._numbers)


class ListedOwners:
    """Owners of cells, looked up by place. Cost: O(1) a queue and epoch, without a division.

    Where a topic has many queues on a broker, those of an epoch are looked up at once, and topics
    that are alike are copied: what was looked up for a piece is kept for the next one.

    Args:
        answers: of the groups.
        grid: of all groups.
        numbered: how queues are numbered over the brokers of their topic.
        roster: of all groups.
    """

    def __init__(
        self, answers: OwnersByPlace, grid: Grid, numbered: Places, roster: Roster
    ) -> None:
        begin = np.zeros(len(grid.queues), np.int64)
        begin[answers.topic_cell] = answers.first[answers.answer]
        topic_cell = grid.topic_cell
        self._begin = begin[topic_cell] + numbered[0]
        """By broker cell: where the answer has its first queue."""
        self._first = roster.first[answers.epoch][topic_cell]
        """By broker cell: the first entry of the epoch."""
        self._index = answers.index
        self._made: dict[tuple[int, int, int, bytes], Ints] = {}
        """Owners of the stretches of the last piece."""

    def entries(self, cells: Readable) -> Ints:
        """The entry that owns each cell."""
        if cells.at is None and cells.cells.are_few_runs:
            return self._of_stretches(cells.cells)
        index = self._index.take(cells.places(self._begin))
        found = cells.at_brokers(self._first)
        found += index
        return found

    def _of_stretches(self, cells: Cells) -> Ints:
        """The entry that owns each cell; of stretches that are alike looked up once."""
        some, end, found = cells.stretches, 0, np.empty(len(cells), np.int64)
        queue_id = cells.queues.ids_of(some.queue, some.topic_broker)
        columns = (some.first_broker_cell, some.first_epoch, some.epochs, queue_id, some.count)
        known, self._made = self._made, {}
        for cell, epoch, epochs, first, count in zip(*(c.tolist() for c in columns), strict=True):
            alike = epoch, first, count, self._begin[cell : cell + epochs].tobytes()
            if alike not in known:
                known[alike] = self._looked_up(slice(cell, cell + epochs), first, count)
            owners = self._made[alike] = known[alike]
            begin, end = end, end + len(owners)
            found[begin:end] = owners
        return found

    def _looked_up(self, broker_cells: slice, queue_id: int, count: int) -> Ints:
        """The owners of so many queues that count on, the epochs of one after the other."""
        begins, firsts = self._begin[broker_cells] + queue_id, self._first[broker_cells]
        found = np.empty((count, len(begins)), np.int64)
        for owners, begin, first in zip(found.T, begins, firsts, strict=True):
            np.add(self._index[begin : begin + count], first, out=owners)
        return found.ravel()


# MACHINE_ROOM: only the queues of the configured rooms, divided among all members.


class MachineRoomOwners:
    """``AllocateMessageQueueByMachineRoom`` of many groups. Cost: O(1) a queue and epoch."""

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


# MACHINE_ROOM_NEARBY: AVG or AVG_BY_CIRCLE inside each room; rooms without members go to all.

RoomOf: TypeAlias = Callable[[RoomResolver, str], str | None]
NO_ROOM = -1
NEARBY_KIND = group_rows.KINDS.index(MachineRoomNearby)


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
        rows = np.flatnonzero(groups.kind[group] == NEARBY_KIND)
        keys = segments.pair(groups.allocation[group[rows]], name[rows])
        distinct, of = np.unique(keys, return_inverse=True)
        allocations, names_asked = segments.halves(distinct)
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
    """``AllocateMachineRoomNearby`` of many groups. Cost: O(log members) a queue and epoch."""

    def __init__(self, coded: CodedGroups, epochs: Epochs, grid: Grid, roster: Roster) -> None:
        rooms = Rooms(coded)
        run_room = rooms.of_clients(roster.runs.group, roster.runs.client)
        self._broker_room = rooms.of_brokers(grid.brokers.group, grid.brokers.broker)
        self._before, self._total = places(grid, grid.readable, self._broker_room)
        mine = self._entries(coded, epochs, roster)
        keys = segments.pair(roster.epoch[mine], run_room[roster.run[mine]])
        order = np.argsort(keys, kind="stable")
        self._by_room, keys = mine[order], keys[order]
        wanted = self._rooms_wanted(epochs, grid)
        self._room_first, end = segments.equal_range(keys, wanted)
        self._in_room = end - self._room_first
        self._first = roster.first
        self._group = epochs.group
        self._is_average = self._inner_is_average(coded)

    @staticmethod
    def _entries(coded: CodedGroups, epochs: Epochs, roster: Roster) -> Ints:
        """The entries of groups with this strategy: a group's stand together."""
        groups = np.flatnonzero(coded.groups.kind == NEARBY_KIND)
        first = roster.first[epochs.of_group[groups]]
        return segments.ranges(first, roster.first[epochs.of_group[groups + 1]] - first)

    def _rooms_wanted(self, epochs: Epochs, grid: Grid) -> Ints:
        """By broker cell: (epoch, room of the broker)."""
        sizes = np.diff(grid.broker_first)
        epoch = segments.ranges(epochs.of_group[:-1][grid.brokers.group], sizes)
        return segments.pair(epoch, np.repeat(self._broker_room, sizes))

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


# CONSISTENT_HASH: queues and members on one ring, the same for all epochs of a group.

RING_KIND = group_rows.RING
Ring: TypeAlias = ConsistentHash | GoConsistentHash


@lru_cache(maxsize=1 << 17)
def node_points(client_id: str, strategy: Ring, copy: int) -> tuple[int, ...]:
    """The ring points of one process's virtual nodes.

    Further processes of an id number theirs on (rocketmq.md §2.7); ``copy`` counts from 0. In Go
    they have the points of the first one.
    """
    if isinstance(strategy, GoConsistentHash):
        nodes = range(0 if copy else strategy.virtual_nodes)
        return tuple(go_ring_point(f"{number}{client_id}") for number in nodes)
    nodes = range(copy * strategy.virtual_nodes, (copy + 1) * strategy.virtual_nodes)
    return tuple(ring_point(f"{client_id}-{number}", strategy.charset) for number in nodes)


@lru_cache(maxsize=1 << 17)
def queue_point(queue: MessageQueue, strategy: Ring) -> int:
    """The point of one queue: the first node at it or after it has the queue."""
    if isinstance(strategy, GoConsistentHash):
        return go_ring_point(str(queue)) + 1  # a node at the queue's own point does not count
    return ring_point(str(queue), strategy.charset)


@dataclass(frozen=True, slots=True)
class Rings:
    """The ring points of the clients that are ever members, in the order of the runs.

    A client that ever has several processes at a time stands there as often. Clients of groups with
    another strategy have no points.
    """

    group: Ints
    """By client."""
    copy: Ints
    """Which process of the client, counted from 0."""
    first: Ints
    """Where the points of each client begin, and the end."""
    points: Ints


def find_rings(coded: CodedGroups, runs: Runs) -> Rings:
    """Hash every virtual node; it takes far longer than all that is asked of a ring."""
    clients = np.flatnonzero(segments.first_of_run(runs.group, runs.client))
    copies = processes_at_once(runs)
    client_of = np.repeat(clients, copies)
    group, client = runs.group[client_of], runs.client[client_of]
    copy = segments.ranges(np.zeros(len(copies), np.int64), copies)
    hashing = np.flatnonzero(coded.groups.kind[group] == RING_KIND)
    names = coded.names.clients.take(client[hashing]).to_pylist()
    allocations = coded.groups.allocation[group[hashing]].tolist()
    found = []
    for name, allocation, number in zip(names, allocations, copy[hashing].tolist(), strict=True):
        strategy = coded.strategies[allocation]
        assert isinstance(strategy, Ring)
        found.append(node_points(name, strategy, number))
    counts = np.zeros(len(group), np.int64)
    counts[hashing] = [len(points) for points in found]
    return Rings(
        group,
        copy,
        segments.pointers(counts),
        np.array([p for ring in found for p in ring], np.int64),
    )


def colliding_groups(rings: Rings) -> Ints:
    """Groups in which points coincide and a client has several processes at a time.

    A further process numbers its nodes on from those its id still owns on the ring, which depends
    on the collisions of that epoch.
    """
    keys = np.sort(segments.pair(np.repeat(rings.group, np.diff(rings.first)), rings.points))
    colliding = keys[1:][keys[1:] == keys[:-1]] >> 32
    return np.intersect1d(colliding, rings.group[rings.copy > 0])


class ConsistentHashOwners:
    """``AllocateMessageQueueConsistentHash`` of many groups.

    Each group has one ring, made once, with the points of every client that is ever a member; who
    comes or goes in an epoch changes which points count there. A queue goes clockwise from its own
    point to the first one whose client is a member in that epoch.
    Cost: O(clients ever / members) steps a queue and epoch, on average.
    """

    def __init__(
        self,
        coded: CodedGroups,
        rings: Rings,
        epochs: Epochs,
        grid: Grid,
        roster: Roster,
        queues: Queues,
    ) -> None:
        self._epochs = epochs
        runs, group = roster.runs, rings.group
        clients = np.flatnonzero(segments.first_of_run(runs.group, runs.client))
        client = np.repeat(np.arange(len(group)), np.diff(rings.first))
        points = segments.pair(group[client], rings.points)
        order = np.lexsort((-client, points))  # of points that coincide the later node wins
        self._ring, self._client = points[order], client[order]
        per_group = np.bincount(group[client], minlength=len(coded.groups))
        self._first, self._size = segments.pointers(per_group)[:-1], per_group
        self._member, self._row = self._presence(coded, roster, rings, clients)
        self._hashes = _queue_points(coded, grid, queues)

    def _presence(
        self, coded: CodedGroups, roster: Roster, rings: Rings, clients: Ints
    ) -> tuple[Ints, Ints]:
        """The entry of each client of the rings in each epoch, or `NOBODY`.

        Returns:
            The entries, the epochs of one client after the other, and where the row of each client
            would begin if epochs were counted over all groups.
        """
        runs, of_group, group = roster.runs, self._epochs.of_group, rings.group
        sizes = np.diff(of_group)[group] * (coded.groups.kind[group] == RING_KIND)
        row = segments.pointers(sizes)[:-1] - of_group[group]
        member = np.full(int(sizes.sum()), NOBODY, np.int64)
        run = np.flatnonzero(coded.groups.kind[runs.group] == RING_KIND)
        client = np.flatnonzero(rings.copy == 0)[np.searchsorted(clients, run, side="right") - 1]
        begin, count = runs.from_epoch[run], runs.to_epoch[run] - runs.from_epoch[run]
        entry = roster.entry_at[segments.ranges(roster.node_of_run[run] + begin, count)]
        at = np.repeat(client, count) + roster.copy[entry]
        member[row[at] + segments.ranges(begin, count)] = entry
        return member, row

    def entries(self, cells: Readable) -> Ints:
        """The entry that owns each cell; `NOBODY` on an empty ring."""
        group = self._epochs.group[cells.epoch]
        first, size = self._first[group], self._size[group]
        at = np.searchsorted(self._ring, segments.pair(group, self._hashes[cells.queue])) - first
        entry = np.full(len(group), NOBODY, np.int64)
        left = np.flatnonzero(size > 0)
        while len(left):
            at[left] = np.where(at[left] < size[left], at[left], 0)  # after the last the first
            client = self._client[first[left] + at[left]]
            entry[left] = self._member[self._row[client] + cells.epoch[left]]
            left = left[entry[left] < 0]
            at[left] += 1
        return entry


def _queue_points(coded: CodedGroups, grid: Grid, queues: Queues) -> Ints:
    """The point of each queue on its group's ring; 0 in groups with another strategy."""
    result = np.zeros(len(queues.group), np.int64)
    hashing = np.flatnonzero(coded.groups.kind[queues.group] == RING_KIND)
    topic = grid.topics.topic[queues.group_topic[hashing]]
    broker = grid.brokers.broker[queues.topic_broker[hashing]]
    names = map(
        MessageQueue,
        coded.names.topics.take(topic).to_pylist(),
        coded.names.brokers.take(broker).to_pylist(),
        queues.queue_id[hashing].tolist(),
    )
    allocations = coded.groups.allocation[queues.group[hashing]].tolist()
    points = []
    for queue, allocation in zip(names, allocations, strict=True):
        strategy = coded.strategies[allocation]
        assert isinstance(strategy, Ring)
        points.append(queue_point(queue, strategy))
    result[hashing] = points
    return result

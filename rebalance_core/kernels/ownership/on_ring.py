"""Owners under strategies that use a hash ring (`OnRing`), which is the same for all epochs of a
group.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from rebalance_core.kernels import segments
from rebalance_core.kernels.cell_holders import NO_MEMBER
from rebalance_core.kernels.cells import Readable
from rebalance_core.kernels.encoded_groups import EncodedGroups
from rebalance_core.kernels.epochs import Epochs
from rebalance_core.kernels.grid import Grid
from rebalance_core.kernels.group_kinds import ON_RING
from rebalance_core.kernels.queues import Queues
from rebalance_core.kernels.roster import Roster
from rebalance_core.kernels.runs import Runs, processes_at_once
from rebalance_core.kernels.segments import Ints
from rebalance_core.model.queue import MessageQueue
from rebalance_core.strategies import AllocationStrategy
from rebalance_core.strategies.vectorised import OnRing


@lru_cache(maxsize=1 << 17)
def _node_points(client_id: str, strategy: AllocationStrategy, process: int) -> tuple[int, ...]:
    form = strategy.vectorised()
    assert isinstance(form, OnRing)
    return form.node_points(client_id, process)


@lru_cache(maxsize=1 << 17)
def _queue_point(queue: MessageQueue, strategy: AllocationStrategy) -> int:
    form = strategy.vectorised()
    assert isinstance(form, OnRing)
    return form.queue_point(queue)


@dataclass(frozen=True, slots=True)
class Rings:
    """The ring points of the clients that are ever members, in the order of the runs.

    A client that ever has several simultaneous processes has that many copies. Clients in groups
    with another strategy have no points.
    """

    group: Ints
    """The group of each client."""
    copy: Ints
    """The number of the client's process, counted from 0."""
    first: Ints
    """Where the points of each client begin, and the end."""
    points: Ints


def find_rings(encoded: EncodedGroups, runs: Runs) -> Rings:
    """Hash every virtual node, which costs far more than all look-ups on a ring."""
    clients = np.flatnonzero(segments.first_of_run(runs.group, runs.client))
    copies = processes_at_once(runs)
    client_of = np.repeat(clients, copies)
    group, client = runs.group[client_of], runs.client[client_of]
    copy = segments.ranges(np.zeros(len(copies), np.int64), copies)
    hashing = np.flatnonzero(encoded.groups.kind[group] == ON_RING)
    names = encoded.names.clients.take(client[hashing]).to_pylist()
    allocations = encoded.groups.allocation[group[hashing]].tolist()
    ring_points = []
    for name, allocation, number in zip(names, allocations, copy[hashing].tolist(), strict=True):
        ring_points.append(_node_points(name, encoded.strategies[allocation], number))
    counts = np.zeros(len(group), np.int64)
    counts[hashing] = [len(points) for points in ring_points]
    return Rings(
        group,
        copy,
        segments.pointers(counts),
        np.array([p for ring in ring_points for p in ring], np.int64),
    )


def colliding_groups(rings: Rings) -> Ints:
    """Return the groups with coinciding points and a client that has several simultaneous
    processes.

    An additional process numbers its nodes after those that its id still owns on the ring, which
    depends on the collisions in that epoch.
    """
    keys = np.sort(segments.pair(np.repeat(rings.group, np.diff(rings.first)), rings.points))
    colliding = keys[1:][keys[1:] == keys[:-1]] >> 32
    return np.intersect1d(colliding, rings.group[rings.copy > 0])


class OnRingOwners:
    """Owners under one ring per group, for many groups.

    Each group has one ring, built once, with the points of every client that is ever a member;
    joins and departures in an epoch change which points count. A queue goes clockwise from its own
    point to the first point whose client is a member in that epoch. Cost: O(clients ever / members)
    steps per queue and epoch, on average.
    """

    def __init__(
        self,
        encoded: EncodedGroups,
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
        order = np.lexsort((-client, points))  # of coinciding points, the later node wins
        self._ring, self._client = points[order], client[order]
        per_group = np.bincount(group[client], minlength=len(encoded.groups))
        self._first, self._size = segments.pointers(per_group)[:-1], per_group
        self._member, self._row = self._presence(encoded, roster, rings, clients)
        self._hashes = _queue_points(encoded, grid, queues)

    def _presence(
        self, encoded: EncodedGroups, roster: Roster, rings: Rings, clients: Ints
    ) -> tuple[Ints, Ints]:
        """Return the entry of each client of the rings in each epoch, or `NO_MEMBER`.

        Returns:
            The entries, epoch by epoch for one client after another, and where each client's row
            would begin if epochs were counted over all groups.
        """
        runs, of_group, group = roster.runs, self._epochs.of_group, rings.group
        sizes = np.diff(of_group)[group] * (encoded.groups.kind[group] == ON_RING)
        row = segments.pointers(sizes)[:-1] - of_group[group]
        member = np.full(int(sizes.sum()), NO_MEMBER, np.int64)
        run = np.flatnonzero(encoded.groups.kind[runs.group] == ON_RING)
        client = np.flatnonzero(rings.copy == 0)[np.searchsorted(clients, run, side="right") - 1]
        begin, count = runs.from_epoch[run], runs.to_epoch[run] - runs.from_epoch[run]
        entry = roster.entry_at[segments.ranges(roster.node_of_run[run] + begin, count)]
        ring_client = np.repeat(client, count) + roster.copy[entry]
        member[row[ring_client] + segments.ranges(begin, count)] = entry
        return member, row

    def entries(self, cells: Readable) -> Ints:
        """Return the entry that owns each cell; `NO_MEMBER` on an empty ring."""
        group = self._epochs.group[cells.epoch]
        first, size = self._first[group], self._size[group]
        node = np.searchsorted(self._ring, segments.pair(group, self._hashes[cells.queue])) - first
        entry = np.full(len(group), NO_MEMBER, np.int64)
        left = np.flatnonzero(size > 0)
        while len(left):
            node[left] = np.where(
                node[left] < size[left], node[left], 0
            )  # the ring wraps around to the first point
            client = self._client[first[left] + node[left]]
            entry[left] = self._member[self._row[client] + cells.epoch[left]]
            left = left[entry[left] < 0]
            node[left] += 1
        return entry


def _queue_points(encoded: EncodedGroups, grid: Grid, queues: Queues) -> Ints:
    """Return the point of each queue on its group's ring; 0 in groups with another strategy."""
    result = np.zeros(len(queues.group), np.int64)
    hashing = np.flatnonzero(encoded.groups.kind[queues.group] == ON_RING)
    topic = grid.topics.topic[queues.group_topic[hashing]]
    broker = grid.brokers.broker[queues.topic_broker[hashing]]
    names = map(
        MessageQueue,
        encoded.names.topics.take(topic).to_pylist(),
        encoded.names.brokers.take(broker).to_pylist(),
        queues.queue_id[hashing].tolist(),
    )
    allocations = encoded.groups.allocation[queues.group[hashing]].tolist()
    strategies = map(encoded.strategies.__getitem__, allocations)
    result[hashing] = list(map(_queue_point, names, strategies))
    return result

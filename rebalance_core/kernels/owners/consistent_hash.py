"""CONSISTENT_HASH: queues and members on one ring, kept from epoch to epoch."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

import numpy as np

from rebalance_core.kernels import shapes
from rebalance_core.kernels.cells import NOBODY, Queues, Readable
from rebalance_core.kernels.epochs import Epochs
from rebalance_core.kernels.fleet import Fleet
from rebalance_core.kernels.grid import Grid
from rebalance_core.kernels.roster import Roster, Runs
from rebalance_core.kernels.segments import (
    Bools,
    Ints,
    first_of_run,
    pair,
    pointers,
    ranges,
)
from rebalance_core.model.queue import MessageQueue
from rebalance_core.strategies.consistent_hash import ConsistentHash, ring_point

KIND = shapes.KINDS.index(ConsistentHash)


@lru_cache(maxsize=1 << 17)
def node_points(client_id: str, strategy: ConsistentHash) -> tuple[int, ...]:
    """The ring points of one member's virtual nodes."""
    nodes = range(strategy.virtual_nodes)
    return tuple(ring_point(f"{client_id}-{number}", strategy.charset) for number in nodes)


@lru_cache(maxsize=1 << 17)
def queue_point(queue: MessageQueue, charset: str) -> int:
    """The point of one queue."""
    return ring_point(str(queue), charset)


def colliding_groups(fleet: Fleet, runs: Runs) -> Ints:
    """Groups in which two points of clients coincide, so that the later node wins."""
    clients = np.flatnonzero(first_of_run(runs.group, runs.client))
    first, points = _points(fleet, runs.group[clients], runs.client[clients])
    keys = np.sort(pair(np.repeat(runs.group[clients], np.diff(first)), points))
    return np.unique(keys[1:][keys[1:] == keys[:-1]] >> 32)


def _points(fleet: Fleet, group: Ints, client: Ints) -> tuple[Ints, Ints]:
    """The ring points of clients: where those of each begin, and the points.

    Groups with another strategy have none.
    """
    hashing = np.flatnonzero(fleet.groups.kind[group] == KIND)
    names = fleet.names.clients.take(client[hashing]).to_pylist()
    allocations = fleet.groups.allocation[group[hashing]].tolist()
    found = []
    for name, allocation in zip(names, allocations, strict=True):
        strategy = fleet.strategies[allocation]
        assert isinstance(strategy, ConsistentHash)
        found.append(node_points(name, strategy))
    counts = np.zeros(len(group), np.int64)
    counts[hashing] = [len(points) for points in found]
    return pointers(counts), np.array([p for points in found for p in points], np.int64)


class ConsistentHashOwners:
    """`AllocateMessageQueueConsistentHash` of many groups.

    The groups of a block go through their epochs side by side. At each step the points of members
    that come or go are put into or taken out of one sorted array of (group, point).
    Cost: O(log ring) a queue and epoch, O(rings of the block) a step.
    """

    def __init__(
        self, fleet: Fleet, epochs: Epochs, grid: Grid, roster: Roster, queues: Queues
    ) -> None:
        self._epochs, self._roster, self._queues = epochs, roster, queues
        runs = roster.runs
        self._first, self._points = _points(fleet, runs.group, runs.client)
        goes_on = np.zeros(len(runs.group) + 1, np.bool_)
        goes_on[1:-1] = ~first_of_run(runs.group, runs.client)[1:] & (
            runs.from_epoch[1:] == runs.to_epoch[:-1]
        )
        self._comes, self._goes = ~goes_on[:-1], ~goes_on[1:]
        # the entry of a member in epoch e is entry_at[node + e], whichever of its runs that is
        lengths = runs.to_epoch - runs.from_epoch
        self._node = pointers(lengths)[:-1] - runs.from_epoch
        self._hashes = self._queue_points(fleet, grid)

    def _queue_points(self, fleet: Fleet, grid: Grid) -> Ints:
        """The point of each queue on its group's ring; 0 in groups with another strategy."""
        queues, result = self._queues, np.zeros(len(self._queues.group), np.int64)
        hashing = np.flatnonzero(fleet.groups.kind[queues.group] == KIND)
        topic = grid.topics.topic[queues.group_topic[hashing]]
        broker = grid.brokers.broker[queues.topic_broker[hashing]]
        rows = zip(
            fleet.names.topics.take(topic).to_pylist(),
            fleet.names.brokers.take(broker).to_pylist(),
            queues.queue_id[hashing].tolist(),
            fleet.groups.allocation[queues.group[hashing]].tolist(),
            strict=True,
        )
        points = []
        for topic_name, broker_name, queue_id, allocation in rows:
            strategy = fleet.strategies[allocation]
            assert isinstance(strategy, ConsistentHash)
            queue = MessageQueue(topic_name, broker_name, queue_id)
            points.append(queue_point(queue, strategy.charset))
        result[hashing] = points
        return result

    def entries(self, cells: Readable) -> Ints:
        """The entry that owns each cell; `NOBODY` on an empty ring."""
        group, step = self._epochs.group[cells.epoch], self._epochs.number[cells.epoch]
        key = pair(group, self._hashes[cells.queue])
        node = np.full(len(key), -1, np.int64)
        has_owner = np.zeros(len(key), np.bool_)
        order = np.argsort(step, kind="stable")
        bounds = pointers(np.bincount(step))
        ring = _Ring()
        turns = self._turns(np.unique(group), len(bounds) - 1)
        for number, (going, coming) in enumerate(turns):
            ring.remove(self._keys(going)[0])
            ring.insert(*self._keys(coming))
            here = order[bounds[number] : bounds[number + 1]]
            node[here], has_owner[here] = ring.owners(key[here])
        entry_at = self._roster.entry_at[np.where(has_owner, node + cells.epoch, 0)]
        return np.where(has_owner, entry_at, NOBODY)

    def _turns(self, groups: Ints, steps: int) -> list[tuple[Ints, Ints]]:
        """By step: the runs after which a client goes, and those with which one comes."""
        runs, number = self._roster.runs, self._epochs.number
        wanted = np.isin(runs.group, groups)
        going, coming = np.flatnonzero(wanted & self._goes), np.flatnonzero(wanted & self._comes)
        left, came = number[runs.to_epoch[going] - 1] + 1, number[runs.from_epoch[coming]]
        return list(zip(_split(going, left, steps), _split(coming, came, steps), strict=True))

    def _keys(self, runs: Ints) -> tuple[Ints, Ints]:
        """(group, point) of these runs' clients, and the node that each stands for."""
        counts = self._first[runs + 1] - self._first[runs]
        points = self._points[ranges(self._first[runs], counts)]
        group = np.repeat(self._roster.runs.group[runs], counts)
        return pair(group, points), np.repeat(self._node[runs], counts)


def _split(rows: Ints, step: Ints, steps: int) -> list[Ints]:
    """The rows of each step."""
    order = np.argsort(step, kind="stable")
    bounds = np.searchsorted(step[order], np.arange(steps + 1))
    return [rows[order[a:b]] for a, b in pairwise(bounds)]


class _Ring:
    """The rings of many groups: sorted (group, point), and whose point it is."""

    def __init__(self) -> None:
        self._keys = np.zeros(0, np.int64)
        self._nodes = np.zeros(0, np.int64)

    def remove(self, keys: Ints) -> None:
        """Take points out; all of them are there."""
        at = np.searchsorted(self._keys, keys)
        self._keys, self._nodes = np.delete(self._keys, at), np.delete(self._nodes, at)

    def insert(self, keys: Ints, nodes: Ints) -> None:
        """Put points in; none of them is there."""
        order = np.argsort(keys)
        at = np.searchsorted(self._keys, keys[order])
        self._keys = np.insert(self._keys, at, keys[order])
        self._nodes = np.insert(self._nodes, at, nodes[order])

    def owners(self, keys: Ints) -> tuple[Ints, Bools]:
        """The node of the first point not below each key, after the last of its group the first.

        Returns:
            The nodes, and False where the group has no point.
        """
        if not len(self._keys):
            return np.zeros(len(keys), np.int64), np.zeros(len(keys), np.bool_)
        last = len(self._keys) - 1
        group = keys >> 32
        at = np.minimum(np.searchsorted(self._keys, keys), last)
        beyond = (self._keys[at] < keys) | (self._keys[at] >> 32 != group)
        at[beyond] = np.minimum(np.searchsorted(self._keys, group[beyond] << 32), last)
        return self._nodes[at], self._keys[at] >> 32 == group

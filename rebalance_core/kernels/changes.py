"""What each epoch changes: who drops and who adds which queue, and why."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from rebalance_core.kernels.cells import Block, Queues
from rebalance_core.kernels.roster import subscribes, topic_slots
from rebalance_core.kernels.segments import Bools, Ints, pair
from rebalance_core.kernels.world import World
from rebalance_core.rules.windows import ORDER_LOCK_MS

INITIAL, NEW, FORCED, VOLUNTARY = range(4)
KINDS = ("INITIAL", "NEW", "FORCED", "VOLUNTARY")


@dataclass(frozen=True, slots=True)
class Changes:
    """One value a row of ``diffs``."""

    cell: Ints
    """Of the block, as ``lane``."""
    queue: Ints
    epoch: Ints
    is_add: Bools
    entry: Ints
    """Who adds: its entry in this epoch; who drops: its entry in the epoch before."""
    client: Ints
    other: Ints
    """The only client with the opposite action on the queue in the epoch; -1: none, or several."""
    kind: Ints
    latest_ms: Ints

    def where(self, rows: Bools | Ints) -> Changes:
        """Some of the rows, by mask or number."""
        return Changes(*(getattr(self, f.name)[rows] for f in fields(self)))


@dataclass(frozen=True, slots=True)
class Before:
    """By cell of a block: the epoch before."""

    entry: Ints
    """Who held the lane; -1: nobody."""
    gone: Bools
    """Its process is no longer a member."""
    held: Bools
    """Somebody held the queue."""
    wants: Bools
    """Who held the lane is still a member that subscribes the topic."""
    wanted: Bools
    """Some earlier holder of the queue is."""


class Differ:
    """Finds the changes of blocks.

    Args:
        world: the groups.
        queues: what the blocks' lanes are about.
    """

    def __init__(self, world: World, queues: Queues) -> None:
        self._world, self._queues = world, queues
        self._slots = topic_slots(world.grid.topics)
        topics = world.grid.topics.topic
        self._retry = world.fleet.topic_is_retry[topics]

    def changes(self, block: Block) -> Changes:
        """Every ADD and DROP of a block."""
        now = self._world.roster.client[block.entry]
        past = self.before(block)
        was = self._world.roster.client[past.entry]
        differs = now != was
        adding = np.flatnonzero(differs & (now >= 0))
        dropping = np.flatnonzero(differs & (was >= 0))
        cell = np.concatenate([adding, dropping])
        is_add = np.arange(len(cell)) < len(adding)
        other = np.maximum(np.where(is_add, was[cell], now[cell]), -1)
        if block.broadcasting:
            past, other = self._across_lanes(block, past, cell, is_add, was, now)
        kind, latest_ms = self._why(block, past, cell, is_add)
        return Changes(
            cell, block.queue[block.lane[cell]], block.epoch[cell], is_add,
            np.where(is_add, block.entry[cell], past.entry[cell]),
            np.where(is_add, now[cell], was[cell]), other, kind, latest_ms,
        )  # fmt: skip

    def before(self, block: Block) -> Before:
        """What became of whoever held each cell's queue in the epoch before."""
        roster = self._world.roster
        entry = np.full(len(block.entry), -1, np.int64)
        entry[1:] = block.entry[:-1]
        entry[block.first[:-1][np.diff(block.first) > 0]] = -1
        held = entry >= 0
        still = roster.following[entry]
        gone = (still < 0) | (roster.process[still] != roster.process[entry])
        group_topic = self._queues.group_topic[block.queue[block.lane]]
        wants = (still >= 0) & (
            self._retry[group_topic] | subscribes(roster, still, self._slots[group_topic])
        )
        return Before(entry, gone, held, wants, wants)

    def _why(self, block: Block, past: Before, cell: Ints, is_add: Bools) -> tuple[Ints, Ints]:
        """Kind and latest moment of each change."""
        epochs, epoch = self._world.epochs, block.epoch[cell]
        retry = self._retry[self._queues.group_topic[block.queue[block.lane[cell]]]]
        add = np.select(
            [epochs.initial[epoch], ~past.held[cell], past.wanted[cell]],
            [INITIAL, NEW, VOLUNTARY],
            FORCED,
        )
        gone = past.gone[cell]
        forced = gone | ~block.readable[cell] | ~past.wants[cell]
        settled = np.where(retry, epochs.retry_latest_ms[epoch], epochs.latest_ms[epoch])
        lock = self._world.fleet.groups.ordered[epochs.group[epoch]] * ORDER_LOCK_MS
        dropped = np.where(gone, epochs.from_ms[epoch], settled)
        return (
            np.where(is_add, add, np.where(forced, FORCED, VOLUNTARY)),
            np.where(is_add, settled + lock, dropped),
        )

    def _across_lanes(
        self, block: Block, past: Before, cell: Ints, is_add: Bools, was: Ints, now: Ints
    ) -> tuple[Before, Ints]:
        """BROADCASTING: a queue's holders are spread over its lanes."""
        queue_epoch = pair(block.queue[block.lane], block.epoch)
        keys, of = np.unique(queue_epoch, return_inverse=True)

        def somewhere(mask: Bools) -> Bools:
            return np.bincount(of[mask], minlength=len(keys)) > 0

        anyway = Before(
            past.entry, past.gone, somewhere(past.held)[of], past.wants, somewhere(past.wants)[of]
        )
        other = np.full(len(cell), -1, np.int64)
        client = np.where(is_add, now[cell], was[cell])
        for mine in (is_add, ~is_add):
            theirs = ~mine
            count = np.bincount(of[cell[theirs]], minlength=len(keys))
            single = np.full(len(keys), -1, np.int64)
            single[of[cell[theirs]]] = client[theirs]
            single[count != 1] = -1
            other[mine] = single[of[cell[mine]]]
        return anyway, other

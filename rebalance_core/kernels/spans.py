"""Unbroken holdings: how long a client, or nobody, has a queue."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rebalance_core.kernels.cells import ABSENT, NOBODY, Block, Queues
from rebalance_core.kernels.lanes import Lanes
from rebalance_core.kernels.roster import MASK_BITS, topic_slots
from rebalance_core.kernels.segments import Bools, Ints, first_of_run, last_of_run, pointers, ranges
from rebalance_core.kernels.shapes import EVERYONE
from rebalance_core.kernels.world import World


@dataclass(frozen=True, slots=True)
class Spans:
    """One value a span; those of one queue and client do not touch."""

    queue: Ints
    """Index into `Queues`."""
    client: Ints
    """`NOBODY`: the queue can be read and nobody holds it."""
    first: Ints
    """The first epoch."""
    end: Ints
    """The epoch after the last."""


@dataclass(frozen=True, slots=True)
class Stays:
    """BROADCASTING: epochs in which one process is a member that subscribes a topic.

    One value a stay; by group topic, client and first epoch.
    """

    client: Ints
    begin: Ints
    end: Ints
    """Exclusive."""
    first: Ints
    """The first stay of each group topic, and the end."""


def block_spans(world: World, block: Block) -> Spans:
    """The spans of a block."""
    client = world.roster.client[block.entry]
    turns = np.ones(len(client), np.bool_)
    turns[1:] = client[1:] != client[:-1]
    turns[block.first[:-1][np.diff(block.first) > 0]] = True
    starts = np.flatnonzero(turns)
    lengths = np.diff(starts, append=len(client))
    kept = client[starts] != ABSENT
    starts, lengths = starts[kept], lengths[kept]
    first = block.epoch[starts]
    return Spans(block.queue[block.lane[starts]], client[starts], first, first + lengths)


def find_stays(world: World) -> Stays:
    """The stays in every topic of the BROADCASTING groups."""
    topics, runs = world.grid.topics, world.roster.runs
    run = np.flatnonzero(world.fleet.groups.kind[runs.group] == EVERYONE)
    of_group = np.searchsorted(topics.group, np.arange(len(world.fleet.groups) + 1))
    counts = np.diff(of_group)[runs.group[run]]
    group_topic, run = ranges(of_group[runs.group[run]], counts), np.repeat(run, counts)
    slot = np.minimum(topic_slots(topics)[group_topic], MASK_BITS)
    subscribed = (world.roster.topics_of_run[run] >> slot) & 1 > 0
    group_topic, run = group_topic[subscribed], run[subscribed]
    order = np.argsort(group_topic, kind="stable")
    group_topic, run = group_topic[order], run[order]
    client, process = runs.client[run], runs.process[run]
    begin, end = runs.from_epoch[run], runs.to_epoch[run]
    starts = first_of_run(group_topic, client, process)
    starts[1:] |= begin[1:] != end[:-1]
    last = last_of_run(np.cumsum(starts))
    count = np.bincount(group_topic[starts], minlength=len(topics.group))
    return Stays(client[starts], begin[starts], end[last], pointers(count))


def broadcast_spans(world: World, queues: Queues, stays: Stays, lanes: Lanes) -> Spans:
    """The spans of queues that every member of a topic reads.

    Whoever stays has the queue from the first epoch in which it can be read, and keeps it while the
    topic is frozen. Cost: an epoch and a stay of each queue, not their product.

    Args:
        world: the groups.
        queues: what the lanes are about.
        stays: of the world.
        lanes: one a queue.
    """
    grid, queue = world.grid, lanes.queue
    topic_broker, group_topic = queues.topic_broker[queue], queues.group_topic[queue]
    later = lanes.begin - world.epochs.of_group[queues.group[queue]]
    topic_cell = ranges(grid.topic_first[group_topic] + later, lanes.count)
    most = grid.readable[ranges(grid.broker_first[topic_broker] + later, lanes.count)]
    readable = most > np.repeat(queues.queue_id[queue], lanes.count)
    lane, epoch = np.repeat(np.arange(len(queue)), lanes.count), ranges(lanes.begin, lanes.count)
    nobody_first, nobody_last = _stretches(readable & ~grid.read[topic_cell], lane)
    taken = readable & grid.read[topic_cell]
    first, last = _stretches(taken | grid.frozen[topic_cell], lane)
    cells = np.arange(len(lane))
    next_taken = np.minimum.accumulate(np.where(taken, cells, len(cells))[::-1])[::-1]

    of_topic = group_topic[lane[first]]
    counts = np.diff(stays.first)[of_topic]
    stay, stretch = ranges(stays.first[of_topic], counts), np.repeat(np.arange(len(first)), counts)
    offset = (first - epoch[first])[stretch]
    begin = np.maximum(stays.begin[stay] + offset, first[stretch])
    end = np.minimum(stays.end[stay] + offset, last[stretch] + 1)
    meets = begin < end
    begin, end, stay = next_taken[begin[meets]], end[meets], stay[meets]
    meets = begin < end
    begin, end, stay = begin[meets], end[meets], stay[meets]
    client = stays.client[stay]
    starts = first_of_run(lane[begin], client)  # another process of the client goes on
    starts[1:] |= begin[1:] != end[:-1]
    begin, end, client = begin[starts], end[last_of_run(np.cumsum(starts))], client[starts]

    begin = np.concatenate([begin, nobody_first])
    return Spans(
        queue[lane[begin]],
        np.concatenate([client, np.full(len(nobody_first), NOBODY)]),
        epoch[begin],
        epoch[np.concatenate([end - 1, nobody_last])] + 1,
    )


def _stretches(mask: Bools, lane: Ints) -> tuple[Ints, Ints]:
    """The first and the last cell of every stretch of True within a lane."""
    edges = first_of_run(mask, lane)
    return np.flatnonzero(mask & edges), np.flatnonzero(mask & last_of_run(mask, lane))

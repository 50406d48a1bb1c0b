"""BROADCASTING: every member reads every queue of its topics for as long as it stays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rebalance_core.kernels import segments
from rebalance_core.kernels.cell_holders import Broadcast
from rebalance_core.kernels.cells import Cells
from rebalance_core.kernels.group_kinds import (
    BROADCAST,
)
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups
from rebalance_core.kernels.queues import Queues
from rebalance_core.kernels.segments import Ints


@dataclass(frozen=True, slots=True)
class Stays:
    """Runs of epochs in which a process is a member that subscribes to a topic.

    Each array has one value per stay, sorted by group topic, client and first epoch.
    """

    client: Ints
    begin: Ints
    end: Ints
    """Exclusive."""
    node: Ints
    """As in `Broadcast.node`."""
    first: Ints
    """The first stay of each group topic, and the end."""


def find_stays(prepared: PreparedGroups) -> Stays:
    """Return the stays in every topic of BROADCASTING groups."""
    topics, runs = prepared.grid.topics, prepared.roster.runs
    everyone = (prepared.encoded.groups.kind == BROADCAST) & ~prepared.shared
    run = np.flatnonzero(everyone[runs.group])
    asker, group_topic = segments.matching(topics.group, runs.group[run])
    run = run[asker]
    subscribed = prepared.roster.reads(run, group_topic)
    group_topic, run = group_topic[subscribed], run[subscribed]
    order = np.argsort(group_topic, kind="stable")
    group_topic, run = group_topic[order], run[order]
    begin, end = runs.from_epoch[run], runs.to_epoch[run]
    starts = segments.first_of_run(group_topic, runs.client[run], runs.process[run])
    starts[1:] |= begin[1:] != end[:-1]
    count = np.bincount(group_topic[starts], minlength=len(topics.group))
    first_node = segments.pointers(runs.to_epoch - runs.from_epoch)[run[starts]]
    return Stays(
        runs.client[run[starts]],
        begin[starts],
        end[segments.last_of_run(np.cumsum(starts))],
        first_node - begin[starts],
        segments.pointers(count),
    )


def broadcast(prepared: PreparedGroups, queues: Queues, stays: Stays, cells: Cells) -> Broadcast:
    """Return the holders of the queues in some segments.

    A member holds a queue from the first epoch of its stay in which the queue can be read, and
    keeps it while the topic is frozen. Cost: the epochs plus the stays for each queue, not their
    product.

    Args:
        prepared: the groups.
        queues: the queues that segments index.
        stays: the stays from `prepared`.
        cells: the cells of the segments.
    """
    grid, topic_cell = prepared.grid, cells.topic_cell
    read = grid.read[topic_cell]
    taken = cells.readable & read
    first, last = segments.stretches(taken | grid.frozen[topic_cell], cells.segment)
    cell = np.arange(len(cells))
    next_taken = np.minimum.accumulate(np.where(taken, cell, len(cells))[::-1])[::-1]

    group_topic = queues.group_topic[cells.queue[cells.segment[first]]]
    counts = np.diff(stays.first)[group_topic]
    stay = segments.ranges(stays.first[group_topic], counts)
    of = np.repeat(np.arange(len(first)), counts)
    offset = (first - cells.epoch[first])[of]
    begin = np.maximum(stays.begin[stay] + offset, first[of])
    end = np.minimum(stays.end[stay] + offset, last[of] + 1)
    meets = np.flatnonzero(begin < end)
    begin, end, stay = next_taken[begin[meets]], end[meets], stay[meets]
    meets = np.flatnonzero(begin < end)
    begin, end, stay = begin[meets], end[meets], stay[meets]
    order = np.lexsort((begin, stays.client[stay], cells.segment[begin]))
    begin, end, stay = begin[order], end[order], stay[order]
    segment, client = cells.segment[begin], stays.client[stay]
    starts = segments.first_of_run(segment, client)  # another process of the client continues
    starts[1:] |= begin[1:] != end[:-1]
    begin, end = begin[starts], end[segments.last_of_run(np.cumsum(starts))]
    return Broadcast(
        cells=cells,
        unheld=cells.readable & ~read,
        holders=segments.covered(begin, end, len(cells)),
        segment=segment[starts],
        client=client[starts],
        begin=begin,
        end=end,
        node=stays.node[stay[starts]],
    )

"""Who owns what, cell by cell: one queue in one epoch, in blocks that fit the cache.

A *lane* is one queue over all epochs of its group; for BROADCASTING one queue and one stay of one
client, and one more lane a queue for the epochs in which nobody holds it.
"""

from __future__ import annotations

from dataclasses import dataclass

from rebalance_core.kernels.segments import Bools, Ints

NOBODY = -1
ABSENT = -2
"""The queue cannot be read and is not held."""


@dataclass(frozen=True, slots=True)
class Queues:
    """One value a queue that could be read in some epoch; by group, topic, broker and id."""

    group: Ints
    group_topic: Ints
    topic_broker: Ints
    queue_id: Ints


@dataclass(frozen=True, slots=True)
class Readable:
    """Cells that can be read in an epoch with members: what a strategy divides."""

    queue: Ints
    """Index into `Queues`."""
    epoch: Ints
    broker_cell: Ints
    topic_broker: Ints
    queue_id: Ints
    stay_end: Ints
    stay_node: Ints
    """Of the lane, see `Lanes`; only BROADCASTING has them."""


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive lanes; the epochs of a lane stand together."""

    queue: Ints
    """By lane: index into `Queues`."""
    client: Ints
    """By lane: BROADCASTING: whose it is, or `NOBODY`."""
    first: Ints
    """The first cell of each lane, and the end."""
    lane: Ints
    """By cell, as all that follow."""
    epoch: Ints
    readable: Bools
    entry: Ints
    """Who holds it: an entry of the roster, `NOBODY` or `ABSENT`."""
    broadcasting: bool
    """Lanes of one queue stand together, one a client."""

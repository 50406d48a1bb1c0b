"""Shares of a group's queues, each computed in its own task from the rows of its queues."""

from typing import NamedTuple
from zlib import crc32

import numpy as np
import pyarrow as pa

from rebalance_core.kernels.segments import Ints


class Part(NamedTuple):
    """A share of a group's queues: of every topic and broker, a block of consecutive queues.

    Attributes:
        number: The number of the part, counted from 0.
        parts: The number of parts.
        block: The number of consecutive queues on a broker that stay together: enough that no topic
            has more blocks on a broker than there are parts.
    """

    number: int
    parts: int
    block: int


WHOLE = Part(0, 1, 1)
"""The only part of an undivided group."""


def part_of(turn: Ints, queue_id: Ints, parts: Ints | int, block: Ints | int) -> Ints:
    """Return the number of the part that has each queue.

    Args:
        turn: The turn of its topic and broker (`turns_of`).
        queue_id: Its id on the broker.
        parts: As in `Part`.
        block: As in `Part`.

    >>> part_of(np.array([1, 1, 1]), np.array([0, 1, 2]), parts=2, block=2)
    array([1, 1, 0])
    """
    return np.mod(turn + queue_id // block, parts)


def turns_of(topics: pa.StringArray, brokers: pa.StringArray) -> Ints:
    """Return by how many parts to rotate the blocks of each topic and broker.

    Without rotation, the first part would get the only queue of every single-queue topic. It
    depends only on names, so a queue's rows can be routed to its part before any event is read.

    >>> turns_of(pa.array(["t", "t"]), pa.array(["a", "b"]))
    array([2517387344,  251992554])
    """
    codes, names = [], []
    for column in (topics, brokers):
        coded = column.fill_null("").dictionary_encode()
        codes.append(np.asarray(coded.indices).astype(np.int64))
        names.append(coded.dictionary.to_pylist())
    pairs, of_pair = np.unique(codes[0] * (len(names[1]) or 1) + codes[1], return_inverse=True)
    both = (divmod(pair, len(names[1])) for pair in pairs.tolist())
    turns = [crc32(f"{names[0][topic]}\0{names[1][broker]}".encode()) for topic, broker in both]
    return np.array(turns, np.int64)[of_pair]

"""The queues that groups have, numbered through."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rebalance_core.kernels.segments import Ints, ranges


@dataclass(frozen=True)
class Queues:
    """One value a queue that could be read in some epoch, or that CONFIG lists; by group, topic,
    broker and id.
    """

    first_of_broker: Ints
    """The first queue of each topic broker, and the end."""
    first_id: Ints
    """By topic broker: the number of its first queue, from which the others count on."""
    listed_id: Ints | None
    """Their numbers, where CONFIG lists have others; None: they count on."""
    group_of: Ints
    """By topic broker."""
    group_topic_of: Ints
    """By topic broker."""

    @cached_property
    def topic_broker(self) -> Ints:
        """By queue."""
        return np.repeat(np.arange(len(self.first_id)), np.diff(self.first_of_broker))

    @cached_property
    def queue_id(self) -> Ints:
        """By queue: its number on its broker."""
        if self.listed_id is not None:
            return self.listed_id
        return ranges(self.first_id, np.diff(self.first_of_broker))

    def ids_of(self, queue: Ints, topic_broker: Ints) -> Ints:
        """The numbers of some queues of these topic brokers."""
        if self.listed_id is not None:
            return self.listed_id[queue]
        return self.first_id[topic_broker] + queue - self.first_of_broker[topic_broker]

    @cached_property
    def group(self) -> Ints:
        """By queue."""
        return self.group_of[self.topic_broker]

    @cached_property
    def group_topic(self) -> Ints:
        """By queue."""
        return self.group_topic_of[self.topic_broker]

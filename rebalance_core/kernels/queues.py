"""The queues of groups, numbered consecutively."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rebalance_core.kernels.segments import Ints, ranges


@dataclass(frozen=True)
class Queues:
    """Queues that can be read in any epoch, or that CONFIG lists, with one value per queue.

    Sorted by group, topic, broker and id.
    """

    first_of_broker: Ints
    """The first queue of each topic broker, and the end."""
    first_id: Ints
    """The number of the first queue of each topic broker; the others follow consecutively."""
    listed_id: Ints | None
    """The queue numbers, if CONFIG lists others; None: they are consecutive."""
    group_of: Ints
    """The group of each topic broker."""
    group_topic_of: Ints
    """The group topic of each topic broker."""

    @cached_property
    def topic_broker(self) -> Ints:
        """The topic broker of each queue."""
        return np.repeat(np.arange(len(self.first_id)), np.diff(self.first_of_broker))

    @cached_property
    def queue_id(self) -> Ints:
        """The number of each queue on its broker."""
        if self.listed_id is not None:
            return self.listed_id
        return ranges(self.first_id, np.diff(self.first_of_broker))

    def ids_of(self, queue: Ints, topic_broker: Ints) -> Ints:
        """Return the numbers of the given queues of these topic brokers."""
        if self.listed_id is not None:
            return self.listed_id[queue]
        return self.first_id[topic_broker] + queue - self.first_of_broker[topic_broker]

    @cached_property
    def group(self) -> Ints:
        """The group of each queue."""
        return self.group_of[self.topic_broker]

    @cached_property
    def group_topic(self) -> Ints:
        """The group topic of each queue."""
        return self.group_topic_of[self.topic_broker]

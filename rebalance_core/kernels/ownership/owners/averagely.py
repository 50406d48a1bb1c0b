"""AVG: contiguous slices, the surplus to the first clients."""

from __future__ import annotations

import numpy as np

from rebalance_core.kernels.cells.cells import Readable
from rebalance_core.kernels.segments import AnyInts, Counts, Ints, ranges
from rebalance_core.kernels.state.grid import Places
from rebalance_core.kernels.state.roster import Roster


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
    index = ranges(np.zeros_like(owning), owning)
    lengths = np.repeat(size, owning) + (index < np.repeat(larger, owning))
    return np.repeat(index.astype(np.int32), lengths)


class AveragelyOwners:
    """`AllocateMessageQueueAveragely` of many groups. Cost: O(1) a queue and epoch."""

    def __init__(self, numbered: Places, roster: Roster) -> None:
        self._before, self._total = numbered
        self._first = roster.first

    def entries(self, cells: Readable) -> Ints:
        """The entry that owns each cell."""
        first = self._first[cells.epoch]
        members = self._first[cells.epoch + 1] - first
        place = cells.places(self._before)
        return first + average_index(place, self._total[cells.broker_cell], members)

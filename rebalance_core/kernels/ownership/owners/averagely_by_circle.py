"""AVG_BY_CIRCLE: the queues dealt out in turn."""

from __future__ import annotations

import numpy as np

from rebalance_core.kernels.cells.cells import Readable
from rebalance_core.kernels.segments import Counts, Ints, ranges
from rebalance_core.kernels.state.grid import Places
from rebalance_core.kernels.state.roster import Roster


def turns(queues: Ints, members: Ints) -> Counts:
    """The index in cidAll of every place, one number of queues and members after the other.

    >>> turns(np.array([5, 2]), np.array([3, 4])).tolist()
    [0, 1, 2, 0, 1, 0, 1]
    """
    place = ranges(np.zeros_like(queues), queues).astype(np.int32)
    dealt: Counts = place % np.repeat(members.astype(np.int32), queues)
    return dealt


class AveragelyByCircleOwners:
    """`AllocateMessageQueueAveragelyByCircle` of many groups. Cost: O(1) a queue and epoch."""

    def __init__(self, numbered: Places, roster: Roster) -> None:
        self._before, _ = numbered
        self._first = roster.first

    def entries(self, cells: Readable) -> Ints:
        """The entry that owns each cell."""
        first = self._first[cells.epoch]
        place = cells.places(self._before)
        return first + place % (self._first[cells.epoch + 1] - first)

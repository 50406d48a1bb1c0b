"""AVG_BY_CIRCLE: the queues dealt out in turn."""

from __future__ import annotations

from rebalance_core.kernels.segments import Ints
from rebalance_core.kernels.state.cells import Readable
from rebalance_core.kernels.state.grid import Places
from rebalance_core.kernels.state.roster import Roster


class AveragelyByCircleOwners:
    """`AllocateMessageQueueAveragelyByCircle` of many groups. Cost: O(1) a queue and epoch."""

    def __init__(self, numbered: Places, roster: Roster) -> None:
        self._before, _ = numbered
        self._first = roster.first

    def entries(self, cells: Readable) -> Ints:
        """The entry that owns each cell."""
        first = self._first[cells.epoch]
        place = self._before[cells.broker_cell] + cells.queue_id
        return first + place % (self._first[cells.epoch + 1] - first)

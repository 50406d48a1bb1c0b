"""BROADCASTING: every member reads every queue of its topics."""

from __future__ import annotations

import numpy as np

from rebalance_core.kernels.cells import ABSENT, Readable
from rebalance_core.kernels.roster import Roster
from rebalance_core.kernels.segments import Ints


class EveryoneOwners:
    """`MessageModel.BROADCASTING` of many groups, one lane a stay. Cost: O(1) a lane and epoch."""

    def __init__(self, roster: Roster) -> None:
        self._entry_at = roster.entry_at

    def entries(self, cells: Readable) -> Ints:
        """The entry of each cell's own client; `ABSENT` where its stay is over."""
        stays = cells.epoch < cells.stay_end
        at = np.where(stays, cells.stay_node + cells.epoch, 0)
        return np.where(stays, self._entry_at[at], ABSENT)

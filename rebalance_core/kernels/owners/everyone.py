"""BROADCASTING: every member reads every queue of its topics."""

from __future__ import annotations

import numpy as np

from rebalance_core.kernels.cells import ABSENT, Readable
from rebalance_core.kernels.epochs import Epochs
from rebalance_core.kernels.roster import Roster
from rebalance_core.kernels.segments import Ints, find, pair


class EveryoneOwners:
    """`MessageModel.BROADCASTING` of many groups, one lane a client."""

    def __init__(self, epochs: Epochs, roster: Roster) -> None:
        self._entries = pair(roster.epoch, roster.client[:-2])

    def entries(self, cells: Readable) -> Ints:
        """The entry of each cell's own client; `ABSENT` while it is no member."""
        found = find(self._entries, pair(cells.epoch, cells.client))
        return np.where(found >= 0, found, ABSENT)

"""Binary search in many rows at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rebalance_core.clockwork.ticks import NEVER, Times


class SortedRows:
    """Rows of times, each sorted.

    Args:
        table: (rows, K) in any order within a row.
    """

    def __init__(self, table: Times) -> None:
        rows, self._width = table.shape
        padded = np.full((rows, self._width + 1), NEVER, np.int64)
        padded[:, : self._width] = table
        padded.sort(axis=1)
        self._flat = padded.reshape(-1)

    def first_after(self, rows: NDArray[np.int64], at_us: Times) -> Times:
        """The first time of each named row that is later than ``at_us``; `NEVER` if none is."""
        low = rows * (self._width + 1)
        size = self._width
        # What is sought is in [low, low + size]; the sentinel at the end is never skipped.
        while size > 0:
            half = (size + 1) // 2
            skipped = self._flat[low + half - 1] <= at_us
            low = low + np.where(skipped, half, 0)
            size = size - half
        found: Times = self._flat[low]
        return found

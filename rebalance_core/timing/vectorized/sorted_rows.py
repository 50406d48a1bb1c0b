"""Binary search in many rows at once."""

import numpy as np
from numpy.typing import NDArray

from rebalance_core.timing.timer_periods import NEVER, Times


class SortedRows:
    """Sorted rows of times.

    Args:
        table: (rows, K), with each row in any order.

    Attributes:
        width: the number of times in the longest row.
    """

    def __init__(self, table: Times) -> None:
        ordered = np.sort(table, axis=1)
        self.width = int((ordered < NEVER).any(axis=0).sum())
        padded = np.full((len(table), self.width + 1), NEVER, np.int64)
        padded[:, : self.width] = ordered[:, : self.width]
        self._flat = padded.reshape(-1)

    def first_after(self, rows: NDArray[np.int64], at_us: Times) -> Times:
        """Return the first time of each named row that is later than ``at_us``, or `NEVER`."""
        first: Times = self._flat.take(self.places_after(rows, at_us))
        return first

    def places_after(self, rows: NDArray[np.int64], at_us: Times) -> NDArray[np.int64]:
        """Return the position of each row's first time later than ``at_us``, in the concatenated
        rows of `width` + 1 times each.
        """
        low = rows * (self.width + 1)
        size = self.width
        # The wanted time is in [low, low + size]; the sentinel at the end is never skipped.
        while size > 0:
            half = (size + 1) // 2
            low += half * (self._flat[half - 1 :].take(low) <= at_us)
            size -= half
        return low

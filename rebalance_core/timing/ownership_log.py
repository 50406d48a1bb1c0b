"""The result of both engines: when each process took and released each queue, in every future."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

TAKEN, GIVEN_UP = 1, -1


@dataclass(frozen=True, eq=False)
class OwnershipLog:
    """Takes and releases of queues, as columns of equal length, in the order of `in_order`.

    Attributes:
        seed: the index of the seed among those that were played.
        lifetime: the number of the process in the timeline.
        queue: the number of the queue in the timeline.
        at_us: microseconds since the epoch.
        delta: `TAKEN` or `GIVEN_UP`.

    Queues held before the first change (`group_timeline.GroupTimeline.initial`) have no row.
    """

    seed: NDArray[np.int32]
    lifetime: NDArray[np.int32]
    queue: NDArray[np.int32]
    at_us: NDArray[np.int64]
    delta: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.seed)

    def in_order(self) -> OwnershipLog:
        """Return the rows sorted by seed, time, process and queue, releases first."""
        columns = (self.seed, self.at_us, self.lifetime, self.queue, self.delta)
        keys = _packed(columns)
        if keys is None:
            return self.take(np.lexsort(columns[::-1]))
        words, lows, widths = keys
        words.sort()
        sorted_columns: list[NDArray[np.int64]] = []
        for low, width in zip(reversed(lows), reversed(widths), strict=True):
            sorted_columns.append((words & ((1 << width) - 1)) + low)
            words = words >> width
        delta, queue, lifetime, at_us, seed = sorted_columns
        return OwnershipLog(
            seed.astype(np.int32),
            lifetime.astype(np.int32),
            queue.astype(np.int32),
            at_us,
            delta.astype(np.int8),
        )

    def take(self, rows: NDArray[np.int64]) -> OwnershipLog:
        """Return the selected rows."""
        return OwnershipLog(
            self.seed[rows],
            self.lifetime[rows],
            self.queue[rows],
            self.at_us[rows],
            self.delta[rows],
        )


def _packed(
    columns: Sequence[NDArray[Any]],
) -> tuple[NDArray[np.int64], list[int], list[int]] | None:
    """Return the rows packed into integers and sorted, with each column's minimum and number of
    bits.

    Integers sort ten times faster than rows. Return None if the rows do not fit or if there are
    none.
    """
    if not len(columns[0]):
        return None
    lows = [int(column.min()) for column in columns]
    spans = [int(column.max()) - low for column, low in zip(columns, lows, strict=True)]
    widths = [span.bit_length() for span in spans]
    if sum(widths) >= 63:
        return None
    words = np.zeros(len(columns[0]), np.int64)
    for column, low, width in zip(columns, lows, widths, strict=True):
        words = (words << width) | (column.astype(np.int64) - low)
    return words, lows, widths


def ownership_log(rows: list[tuple[int, int, int, int, int]] | NDArray[np.int64]) -> OwnershipLog:
    """Return the ordered log of rows (seed, lifetime, queue, at_us, delta)."""
    table = np.asarray(rows, np.int64).reshape(-1, 5)
    return OwnershipLog(
        table[:, 0].astype(np.int32),
        table[:, 1].astype(np.int32),
        table[:, 2].astype(np.int32),
        table[:, 3],
        table[:, 4].astype(np.int8),
    ).in_order()


def in_succession(logs: list[OwnershipLog]) -> OwnershipLog:
    """Return the concatenation of logs, which is in order if each log is and their seeds ascend."""
    if not logs:
        return ownership_log([])
    return OwnershipLog(
        *(
            np.concatenate([getattr(log, name) for log in logs])
            for name in ("seed", "lifetime", "queue", "at_us", "delta")
        )
    )

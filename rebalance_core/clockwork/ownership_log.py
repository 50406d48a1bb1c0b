"""What both engines find: who took and gave up which queue when, in every future."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

TAKEN, GIVEN_UP = 1, -1


@dataclass(frozen=True, eq=False)
class OwnershipLog:
    """Equally long columns, in the order of `in_order`.

    Attributes:
        seed: the place of the seed among those played.
        life: the number of the process in the script.
        queue: the number of the queue in the script.
        at_us: when, microseconds since the epoch.
        delta: `TAKEN` or `GIVEN_UP`.

    What a life holds before the first change (`Script.initial`) is in no row.
    """

    seed: NDArray[np.int32]
    life: NDArray[np.int32]
    queue: NDArray[np.int32]
    at_us: NDArray[np.int64]
    delta: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.seed)

    def in_order(self) -> OwnershipLog:
        """The same rows by seed, time, process, queue; what is given up first."""
        return self.take(np.lexsort((self.delta, self.queue, self.life, self.at_us, self.seed)))

    def take(self, rows: NDArray[np.int64]) -> OwnershipLog:
        """Some of the rows."""
        return OwnershipLog(
            self.seed[rows], self.life[rows], self.queue[rows], self.at_us[rows], self.delta[rows]
        )


def ownership_log(
    rows: list[tuple[int, int, int, int, int]] | NDArray[np.int64],
) -> OwnershipLog:
    """A log of rows (seed, life, queue, at_us, delta), in order."""
    table = np.asarray(rows, np.int64).reshape(-1, 5)
    return OwnershipLog(
        table[:, 0].astype(np.int32),
        table[:, 1].astype(np.int32),
        table[:, 2].astype(np.int32),
        table[:, 3],
        table[:, 4].astype(np.int8),
    ).in_order()


def merged(logs: list[OwnershipLog]) -> OwnershipLog:
    """Logs of different futures as one."""
    if not logs:
        return ownership_log([])
    return OwnershipLog(
        *(
            np.concatenate([getattr(log, name) for log in logs])
            for name in ("seed", "life", "queue", "at_us", "delta")
        )
    ).in_order()

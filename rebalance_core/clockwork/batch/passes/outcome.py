"""What passes did, for those who follow the clocks and the member lists."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rebalance_core.clockwork.ticks import Times

Ints = NDArray[np.int64]


@dataclass(eq=False)
class Outcome:
    """What a round of passes did.

    Attributes:
        end_us: when each ended.
        balanced: no strategy threw.
        notifies: ``messageQueueChanged`` was called, so a heartbeat follows at the end.
        sampled: by topic: the broker life that each asked, -1: none.
        fetched: some topic's route was asked for.
        timed_out_us: what it waited for lost hosts before it knew its members.
    """

    end_us: Times
    balanced: NDArray[np.bool_]
    notifies: NDArray[np.bool_]
    sampled: list[Ints]
    fetched: NDArray[np.bool_]
    timed_out_us: Times

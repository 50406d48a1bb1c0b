"""The effects of a round of passes on pass clocks and member lists."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rebalance_core.kernels.segments import Ints
from rebalance_core.timing.timer_periods import Times


@dataclass(eq=False)
class PassOutcome:
    """The outcome of a round of passes.

    Attributes:
        end_us: when each pass ended.
        balanced: whether no strategy threw.
        notifies: whether ``messageQueueChanged`` was called, so that a heartbeat follows at the
            end.
        moves: whether it releases or takes queues.
        sampled: (topics, n) the broker lifetime that each pass queried, or -1.
        fetched: whether it fetched a topic's route.
        timed_out_us: how long it waited for lost hosts before it knew its members.
    """

    end_us: Times
    balanced: NDArray[np.bool_]
    notifies: NDArray[np.bool_]
    moves: NDArray[np.bool_]
    sampled: Ints
    fetched: NDArray[np.bool_]
    timed_out_us: Times

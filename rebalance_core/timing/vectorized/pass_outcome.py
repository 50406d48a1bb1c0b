"""Results of passes for the clocks and the member lists."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rebalance_core.kernels.segments import Ints
from rebalance_core.timing.timer_periods import Times


@dataclass(eq=False)
class PassOutcome:
    """Outcome of a round of passes.

    Attributes:
        end_us: when each ended.
        balanced: no strategy threw.
        notifies: ``messageQueueChanged`` was called, so a heartbeat follows at the end.
        moves: it releases or takes queues.
        sampled: (topics, n) the broker lifetime that each asked, -1: none.
        fetched: some topic's route was fetched.
        timed_out_us: how long it waited for lost hosts before it knew its members.
    """

    end_us: Times
    balanced: NDArray[np.bool_]
    notifies: NDArray[np.bool_]
    moves: NDArray[np.bool_]
    sampled: Ints
    fetched: NDArray[np.bool_]
    timed_out_us: Times

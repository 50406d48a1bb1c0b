"""Delays after a pass's begin at which it releases queues and takes others."""

import numpy as np
from numpy.typing import NDArray

from rebalance_core.kernels.segments import Ints
from rebalance_core.timing.delays import (
    ADD_AFTER,
    COLD_ADD_AFTER,
    COLD_DROP_AFTER,
    DROP_AFTER,
    Delay,
)
from rebalance_core.timing.draws import Timer
from rebalance_core.timing.reference.pass_effects import COLD_PASSES, SLOW_PASSES
from rebalance_core.timing.timer_periods import Times
from rebalance_core.timing.vectorized.elements import Elements


def delays_of(state: Elements, who: Ints, number: Ints) -> tuple[Times, Times]:
    """Return the delays from the begin of passes to releases, and from there to takes.

    Args:
        state: the elements.
        who: (n,) which of them.
        number: of their passes, (n,) or (K, n).
    """
    new = ~state.observed[who]
    slow = np.broadcast_to(new & (number < SLOW_PASSES) | state.shared[who], number.shape)
    cold = np.broadcast_to(new & (number < COLD_PASSES), number.shape)
    return (
        _drawn(state.draws(Timer.DROP_AFTER, who, number), DROP_AFTER, COLD_DROP_AFTER, slow),
        _drawn(state.draws(Timer.ADD_AFTER, who, number), ADD_AFTER, COLD_ADD_AFTER, cold),
    )


def _drawn(
    draws: NDArray[np.uint64], usual: Delay, other: Delay, where: NDArray[np.bool_]
) -> Times:
    """Return the usual delay, or the other delay where the mask is True."""
    delays = usual.many(draws)
    if where.any():
        delays[where] = other.many(draws[where])
    return delays

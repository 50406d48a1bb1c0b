"""How long after its start a pass releases queues and takes others."""

import numpy as np
from numpy.typing import NDArray

from rebalance_core.kernels.segments import Ints
from rebalance_core.timing.delay import Delay
from rebalance_core.timing.delays import (
    ADD_AFTER,
    COLD_ADD_AFTER,
    COLD_DROP_AFTER,
    DROP_AFTER,
)
from rebalance_core.timing.draws import Timer
from rebalance_core.timing.pass_costs import taking_us
from rebalance_core.timing.reference.pass_effects import COLD_PASSES, SLOW_PASSES
from rebalance_core.timing.timer_periods import Times
from rebalance_core.timing.vectorized.elements import Elements


def delays_of(
    state: Elements, who: Ints, number: Ints, new: Ints, locks: NDArray[np.bool_]
) -> tuple[Times, Times, Times]:
    """Return the delays from the start of passes to releases, from there to takes, and until all
    queues are taken.

    Args:
        state: the elements.
        who: (n,) the indices of those that run a pass.
        number: (n,) or (K, n) the numbers of their passes.
        new: (n,) the number of queues that each takes or requests locks for.
        locks: (n,) whether it requests locks.
    """
    joined = ~state.observed[who]
    slow = np.broadcast_to(joined & (number < SLOW_PASSES) | state.shared[who], number.shape)
    cold = np.broadcast_to(joined & (number < COLD_PASSES), number.shape)
    add = _drawn(state.draws(Timer.ADD_AFTER, who, number), ADD_AFTER, COLD_ADD_AFTER, cold)
    draws = state.draws(Timer.QUEUE_NEXT, who, number)
    took, whole = taking_us(state.futures.options, new, locks, draws)
    return (
        _drawn(state.draws(Timer.DROP_AFTER, who, number), DROP_AFTER, COLD_DROP_AFTER, slow)
        + state.lists_us[who],
        add + took,
        add + whole,
    )


def _drawn(
    draws: NDArray[np.uint64], usual: Delay, other: Delay, where: NDArray[np.bool_]
) -> Times:
    """Return the usual delay, or the other delay where the mask is True."""
    delays = usual.many(draws)
    if where.any():
        delays[where] = other.many(draws[where])
    return delays

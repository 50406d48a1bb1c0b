"""How long small things take: quantile functions with whole numbers, in microseconds.

Periods of RocketMQ's timers are in `model.timers`; nothing here is one. Where each comes from is
said in docs/fidelity.md.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rebalance_core.clockwork.draws import DRAW_BITS

_ALL = 1 << DRAW_BITS
_SPAN_LIMIT = 1 << 31


@dataclass(frozen=True)
class Delay:
    """A piecewise-linear quantile function.

    Attributes:
        shares: where the pieces begin, out of 2 ** 32, from 0 on; and 2 ** 32 as the last.
        values: the delay at each of them, in microseconds; never falling.
    """

    shares: tuple[int, ...]
    values: tuple[int, ...]

    def __post_init__(self) -> None:
        rising = all(a < b for a, b in zip(self.shares, self.shares[1:], strict=False))
        if self.shares[0] != 0 or self.shares[-1] != _ALL or not rising:
            raise ValueError(f"shares go from 0 to 1: {self.shares}")
        steps = [b - a for a, b in zip(self.values, self.values[1:], strict=False)]
        if len(self.values) != len(self.shares) or min(steps) < 0 or max(steps) >= _SPAN_LIMIT:
            raise ValueError(f"one value a share, never falling: {self.values}")

    def of(self, draw: int) -> int:
        """The delay of one draw."""
        piece = bisect_right(self.shares, draw) - 1
        low, high = self.shares[piece], self.shares[piece + 1]
        value = self.values[piece]
        return value + (draw - low) * (self.values[piece + 1] - value) // (high - low)

    def many(self, draws: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The delays of many draws."""
        given = draws.astype(np.int64)
        shares = np.array(self.shares, np.int64)
        values = np.array(self.values, np.int64)
        piece = np.searchsorted(shares, given, side="right") - 1
        low, value = shares[piece], values[piece]
        rise = (given - low) * (values[piece + 1] - value) // (shares[piece + 1] - low)
        return np.asarray(value + rise, np.int64)

    @property
    def longest(self) -> int:
        """An upper bound, in microseconds."""
        return self.values[-1]

    @property
    def shortest(self) -> int:
        """A lower bound, in microseconds."""
        return self.values[0]


def delay_ms(*knots: tuple[float, float]) -> Delay:
    """A delay by its quantiles: (share from 0 to 1, milliseconds), as rising pairs."""
    return Delay(
        tuple(round(share * _ALL) for share, _ in knots),
        tuple(round(ms * 1_000) for _, ms in knots),
    )


START_UP: Final = delay_ms((0, 60), (0.05, 200), (0.5, 330), (0.95, 500), (0.99, 900), (1, 2_000))
"""From a client's creation to its join, as the log has it."""
REGISTRATION_LEAD: Final = delay_ms((0, 0), (0.5, 35), (0.95, 75), (1, 120))
"""From the first broker's registration of a client to its join, as the log has it."""
BROKER_STEP: Final = delay_ms((0, 0.3), (0.5, 3), (0.95, 20), (0.99, 60), (1, 400))
"""Between the requests of one client to two brokers, one after the other."""
NOTICE: Final = delay_ms((0, 0.2), (0.5, 2), (0.95, 10), (0.99, 40), (1, 400))
"""From a broker's change of its list until a member has been woken."""
CHANNEL_CLOSE: Final = delay_ms((0, 1), (0.5, 14), (0.95, 30), (0.99, 80), (1, 600))
"""From a process's death until a broker has seen its connection close."""
ROUTE_VISIBLE: Final = delay_ms((0, 0), (0.5, 10), (0.95, 45), (0.99, 100), (1, 500))
"""From a change of a topic or broker until a name server answers with it."""
ROUTE_ANSWER: Final = delay_ms((0, 0.5), (0.5, 4), (0.95, 20), (0.99, 60), (1, 600))
"""From a route poll's tick until its answer is in use."""
PASS_LENGTH: Final = delay_ms((0, 2), (0.5, 6), (0.95, 25), (0.99, 56), (1, 165))
"""A rebalance pass from begin to end; one draw a process."""
DROP_AFTER: Final = delay_ms((0, 1), (0.5, 4), (0.95, 14), (0.99, 40), (1, 250))
"""From a pass's begin until it has given up queues."""
ADD_AFTER: Final = delay_ms((0, 1), (0.5, 7), (0.95, 40), (0.99, 100), (1, 400))
"""From there until it has taken the others."""
LISTENER: Final = delay_ms((0, 0), (0.5, 150), (1, 500))
"""How long a pass of 5.2 or later waits for an orderly listener (``tryLock`` of 500 ms)."""

"""Quantile functions of short durations, in whole microseconds."""

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rebalance_core.timing.draws import DRAW_BITS

_ALL = 1 << DRAW_BITS
_SPAN_LIMIT = 1 << 31


@dataclass(frozen=True)
class Delay:
    """A piecewise-linear quantile function.

    Attributes:
        shares: where the pieces begin, in units of 2 ** -32, from 0 to 2 ** 32.
        values: the delay at each share, in microseconds; non-decreasing.
    """

    shares: tuple[int, ...]
    values: tuple[int, ...]

    def __post_init__(self) -> None:
        rising = all(a < b for a, b in zip(self.shares, self.shares[1:], strict=False))
        if self.shares[0] != 0 or self.shares[-1] != _ALL or not rising:
            raise ValueError(f"shares must go from 0 to 1: {self.shares}")
        steps = [b - a for a, b in zip(self.values, self.values[1:], strict=False)]
        if len(self.values) != len(self.shares) or min(steps) < 0 or max(steps) >= _SPAN_LIMIT:
            raise ValueError(f"there must be a value per share, never falling: {self.values}")

    def delay_of(self, draw: int) -> int:
        """Return the delay for a draw."""
        piece = bisect_right(self.shares, draw) - 1
        low, high = self.shares[piece], self.shares[piece + 1]
        value = self.values[piece]
        return value + (draw - low) * (self.values[piece + 1] - value) // (high - low)

    def many(self, draws: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the delay for each draw."""
        shares, values, spans, rises = self._pieces
        piece = shares.searchsorted(draws, side="right") - 1
        rise = (draws - shares.take(piece)) * rises.take(piece) // spans.take(piece)
        return np.asarray(values.take(piece) + rise.view(np.int64), np.int64)

    @cached_property
    def _pieces(self) -> tuple[NDArray[Any], ...]:
        """The share and the value at the start of each piece, and its length and rise."""
        shares, values = np.array(self.shares, np.uint64), np.array(self.values, np.int64)
        return shares, values, np.diff(shares), np.diff(values).astype(np.uint64)

    @cached_property
    def mean(self) -> int:
        """The mean, in microseconds, rounded down."""
        pieces = zip(self.shares, self.shares[1:], self.values, self.values[1:], strict=False)
        doubled = sum((until - since) * (low + high) for since, until, low, high in pieces)
        return doubled // (2 * _ALL)

    def totals(self, counts: NDArray[np.int64], draws: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return, for each count, the sum of that many independent delays, from a single draw.

        The results have the mean and the variance of such sums.
        """
        root = np.sqrt(counts).astype(np.int64)
        return np.asarray(counts * self.mean + root * (self.many(draws) - self.mean), np.int64)

    @property
    def longest(self) -> int:
        """An upper bound, in microseconds."""
        return self.values[-1]

    @property
    def shortest(self) -> int:
        """A lower bound, in microseconds."""
        return self.values[0]


def delay_ms(*knots: tuple[float, float]) -> Delay:
    """Return a delay from its quantiles: ascending pairs of (share from 0 to 1, milliseconds)."""
    return Delay(
        tuple(round(share * _ALL) for share, _ in knots),
        tuple(round(ms * 1_000) for _, ms in knots),
    )

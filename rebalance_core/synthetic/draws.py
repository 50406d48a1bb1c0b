"""Random numbers of an entity: they depend only on (seed, kind, ids).

Only generators that are stable between versions are used: ``random.random()`` of a Mersenne Twister
seeded with an integer (Python promises its sequence) and 64-bit integer arithmetic. Never `hash()`.
"""

import math
from collections.abc import Sequence
from hashlib import blake2b
from random import Random
from typing import TypeVar

import numpy as np
import numpy.typing as npt

T = TypeVar("T")
Mix = tuple[tuple[T, float], ...]
"""Values with their weights; the weights need not sum to one."""

_KEY_BYTES = 16


def key_of(seed: int, kind: str, *ids: int) -> int:
    """Return an entity's 128-bit key; any difference in the arguments gives an unrelated number."""
    text = "/".join([str(seed), kind, *map(str, ids)])
    return int.from_bytes(blake2b(text.encode(), digest_size=_KEY_BYTES).digest(), "big")


class Draws:
    """A sequence of random numbers for an entity."""

    def __init__(self, seed: int, kind: str, *ids: int) -> None:
        self.random = Random(key_of(seed, kind, *ids)).random

    def chance(self, probability: float) -> bool:
        """Return True with this probability."""
        return self.random() < probability

    def between(self, low: int, high: int) -> int:
        """Return a whole number from ``low`` to ``high``, both included."""
        return low + int(self.random() * (high - low + 1))

    def pick(self, values: Sequence[T]) -> T:
        """Return one of the values, with equal probability."""
        return values[int(self.random() * len(values))]

    def mixed(self, mix: Mix[T]) -> T:
        """Return one of the values, by weight."""
        left = self.random() * sum(weight for _, weight in mix)
        for value, weight in mix:
            left -= weight
            if left < 0:
                return value
        return mix[-1][0]

    def scattered(self, low: float, high: float) -> float:
        """Return a positive number from ``low`` to ``high`` whose logarithm is uniform."""
        return low * math.pow(high / low, self.random())

    def count(self, mean: float) -> int:
        """Return a count of events with this mean (Poisson).

        Cost: the mean.
        """
        arrived, total = 0, -math.log(1.0 - self.random())
        while total < mean:
            arrived += 1
            total -= math.log(1.0 - self.random())
        return arrived

    def shuffled(self, values: Sequence[T]) -> list[T]:
        """Return all the values in random order (Fisher-Yates)."""
        mixed = list(values)
        for last in range(len(mixed) - 1, 0, -1):
            other = int(self.random() * (last + 1))
            mixed[last], mixed[other] = mixed[other], mixed[last]
        return mixed


def noise(key: int, *numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return a number in [0, 1) for each row of the arrays: a function of only the key and the row.

    Args:
        key: from `key_of`.
        numbers: int64 arrays of equal length.
    """
    state = np.full(len(numbers[0]), key & 0xFFFFFFFFFFFFFFFF, np.uint64)
    for values in numbers:
        state = _mixed(state ^ _mixed(values.astype(np.uint64)))
    return (state >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _mixed(state: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return SplitMix64's output function (Steele, Lea, Flood 2014); arithmetic wraps."""
    state = state + np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))

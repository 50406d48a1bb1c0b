"""The counter of round robin (``ThreadLocalIndex``): a Java int that wraps."""

from collections.abc import Callable
from dataclasses import dataclass

POSITIVE_MASK = 0x7FFFFFFF
_INT_MIN = -(2**31)
_MAX_INT = 2**31 - 1

Draw = Callable[[], int]
"""``Random.nextInt()``: any int."""


def java_int(value: int) -> int:
    """Return the value as a signed 32-bit int, wrapped.

    >>> java_int(2**31)
    -2147483648
    """
    return (value + 2**31) % 2**32 - 2**31


def java_abs(value: int) -> int:
    """``Math.abs`` of an int: the smallest stays negative."""
    return value if value == _INT_MIN else abs(value)


def java_remainder(value: int, size: int) -> int:
    """``value % size`` of Java: its sign is that of the value."""
    return -((-value) % size) if value < 0 else value % size


@dataclass(slots=True)
class Counter:
    """One thread's counter of one topic; ``value`` null: not drawn yet. rocketmq.md §9.1."""

    value: int | None
    draw: Draw
    raw_seed: bool
    """from 5.0.0 the first value is drawn as it is, before its absolute value"""
    masked: bool = True
    """from 4.9.4 the sign bit is cut off, before the absolute value is taken"""

    def next(self) -> int:
        """``incrementAndGet``: the position before the modulus.

        The result is not negative, except for the smallest int up to 4.9.3.
        """
        if self.value is None:
            drawn = java_int(self.draw())
            self.value = drawn if self.raw_seed else java_abs(drawn)
        self.value = java_int(self.value + 1)
        return self.value & POSITIVE_MASK if self.masked else java_abs(self.value)

    def reset(self) -> None:
        """``reset`` (5.1.4+): a new random value, as a retry asks for it."""
        self.value = self.draw() % _MAX_INT

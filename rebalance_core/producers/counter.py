"""The round-robin counter (``ThreadLocalIndex``): a Java int that wraps around."""

from collections.abc import Callable
from dataclasses import dataclass

POSITIVE_MASK = 0x7FFFFFFF
_INT_MIN = -(2**31)
_MAX_INT = 2**31 - 1

Draw = Callable[[], int]
"""``Random.nextInt()``: any int."""


def java_int(value: int) -> int:
    """Return the value as a signed 32-bit int, wrapped around.

    >>> java_int(2**31)
    -2147483648
    """
    return (value + 2**31) % 2**32 - 2**31


def java_abs(value: int) -> int:
    """Return ``Math.abs`` of an int; the smallest int stays negative."""
    return value if value == _INT_MIN else abs(value)


def java_remainder(value: int, size: int) -> int:
    """Return Java's ``value % size``, whose sign is that of the value."""
    return -((-value) % size) if value < 0 else value % size


@dataclass(slots=True)
class Counter:
    """One thread's counter for one topic; with ``value`` None, it has not been drawn yet.
    rocketmq.md §9.1.
    """

    value: int | None
    draw: Draw
    raw_seed: bool
    """from 5.0.0 on, the first value is used as drawn, before its absolute value is taken"""
    masked: bool = True
    """from 4.9.4 on, the sign bit is cleared; in earlier versions, the absolute value is taken"""

    def next(self) -> int:
        """Apply ``incrementAndGet``; return the position before the modulus.

        The result is not negative, except for the smallest int up to 4.9.3.
        """
        if self.value is None:
            drawn = java_int(self.draw())
            self.value = drawn if self.raw_seed else java_abs(drawn)
        self.value = java_int(self.value + 1)
        return self.value & POSITIVE_MASK if self.masked else java_abs(self.value)

    def reset(self) -> None:
        """Apply ``reset`` (5.1.4+): draw a new random value, as a retry requires."""
        self.value = self.draw() % _MAX_INT

"""Random numbers as a function of their purpose, so that partitioning changes none of them."""

from hashlib import blake2b

_BYTES = 8
_SCALE = 2.0**-53


def draw_bits(seed: int, *ids: str | int) -> int:
    """Return 64 random bits for an event; events that differ in any way have unrelated bits."""
    text = "\x1f".join([str(seed), *map(str, ids)])
    return int.from_bytes(blake2b(text.encode(), digest_size=_BYTES).digest(), "big")


def draw(seed: int, *ids: str | int) -> float:
    """Return a number above 0 and below 1.

    >>> draw(1, "gap", 2) == draw(1, "gap", 2) != draw(1, "gap", 3)
    True
    """
    return ((draw_bits(seed, *ids) >> 11) + 0.5) * _SCALE

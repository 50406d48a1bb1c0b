"""The order in which Java iterates over a ``ConcurrentHashMap``, which decides ties upstream."""

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

Key = TypeVar("Key")


def java_hash(text: str) -> int:
    """Return ``String.hashCode`` of the UTF-16 code units, as an unsigned 32-bit value.

    >>> java_hash("broker-a")
    372697965
    """
    units = text.encode("utf-16-be", "surrogatepass")
    code = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        code = (31 * code + (high << 8) + low) & 0xFFFFFFFF
    return code


class ConcurrentMapOrder(Generic[Key]):
    """Keys in the order of ``ConcurrentHashMap``'s iterators (JDK 8 and later).

    Buckets are chosen by spread hash and doubled when three quarters full, as by ``transfer``: the
    last run of a bucket keeps its order, and the entries before it are reversed. Buckets of more
    than eight keys, which become trees, are not modelled. Cost: O(1) per change.
    """

    def __init__(self, hash_code: Callable[[Key], int], buckets: int) -> None:
        """Create an empty map.

        Args:
            hash_code: Java's ``hashCode`` of a key; only its lowest 32 bits are used.
            buckets: The initial number of buckets, a power of two.
        """
        self._hash_code = hash_code
        self._buckets: list[list[Key]] = [[] for _ in range(buckets)]
        self._size = 0

    def __iter__(self) -> Iterator[Key]:
        return (key for bucket in self._buckets for key in bucket)

    def add(self, key: Key) -> None:
        """Add a key that is not in the map."""
        self._buckets[self._spread(key) & (len(self._buckets) - 1)].append(key)
        self._size += 1
        while self._size >= len(self._buckets) * 3 // 4:
            self._double()

    def remove(self, key: Key) -> None:
        """Remove an existing key; the map never shrinks."""
        self._buckets[self._spread(key) & (len(self._buckets) - 1)].remove(key)
        self._size -= 1

    def _spread(self, key: Key) -> int:
        code = self._hash_code(key) & 0xFFFFFFFF
        return (code ^ (code >> 16)) & 0x7FFFFFFF

    def _double(self) -> None:
        bit = len(self._buckets)
        low, high = [], []
        for bucket in self._buckets:
            sides = [bool(self._spread(key) & bit) for key in bucket]
            run = len(bucket)
            while run > 1 and sides[run - 2] == sides[-1]:
                run -= 1
            start = max(run - 1, 0)  # the start of the last run
            moved: tuple[list[Key], list[Key]] = ([], [])
            for key, side in reversed(list(zip(bucket[:start], sides[:start], strict=True))):
                moved[side].append(key)
            if bucket:
                moved[sides[-1]].extend(bucket[start:])
            low.append(moved[0])
            high.append(moved[1])
        self._buckets = low + high

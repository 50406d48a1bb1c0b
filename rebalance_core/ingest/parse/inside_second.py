"""When, inside its second, something happened that a server logged."""

from bisect import bisect_left

from rebalance_core.model.times import SECOND_MS

MIDDLE_MS = 500


DELIVERY_MS = 100
"""A notification may arrive this long after the second in which the preceding line was logged."""


def inside_second(second_ms: int, notified: list[int], not_before: int) -> int:
    """Return the best millisecond for a line of that second.

    Args:
        second_ms: the line's time.
        notified: sorted times of notifications by the same broker to the same group.
        not_before: time of the line before it in the same log; it counts if of the same second.
    """
    earliest = not_before if second_ms <= not_before < second_ms + SECOND_MS else second_ms
    index = bisect_left(notified, earliest)
    if index < len(notified) and notified[index] < second_ms + SECOND_MS + DELIVERY_MS:
        return notified[index]
    return max(second_ms + MIDDLE_MS, earliest)

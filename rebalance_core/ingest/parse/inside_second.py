"""The time within the second at which something happened that a server logged."""

from bisect import bisect_left

from rebalance_core.model.times import SECOND_MS

MIDDLE_MS = 500


DELIVERY_MS = 100
"""A notification may arrive this long after the second in which the line before it was logged."""


def inside_second(second_ms: int, notified: list[int], not_before: int) -> int:
    """Return the most likely millisecond for a line of that second.

    Args:
        second_ms: the line's time.
        notified: sorted times of notifications from the same broker to the same group.
        not_before: the time of the line before it in the same log, used if in the same second.
    """
    earliest = not_before if second_ms <= not_before < second_ms + SECOND_MS else second_ms
    index = bisect_left(notified, earliest)
    if index < len(notified) and notified[index] < second_ms + SECOND_MS + DELIVERY_MS:
        return notified[index]
    return max(second_ms + MIDDLE_MS, earliest)

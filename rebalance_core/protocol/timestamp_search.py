"""Bounds on a broker's timestamp search, from observations of the queue over time
(rocketmq.md §5.4).

Upstream: ``ConsumeQueue.getOffsetInQueueByTime``. The store times of individual messages are
unknown here; observations of the queue's offsets before and after the timestamp bound the answer.
"""

from collections.abc import Iterable
from typing import NamedTuple

from rebalance_core.model.versions import Version, parse_version

EXACT_LOWER_BOUND = (5, 1, 1)  # earlier: the nearest message in time


class OffsetObservation(NamedTuple):
    """Offsets of a queue at one instant."""

    observed_ms: int
    min_offset: int
    max_offset: int


class OffsetBounds(NamedTuple):
    """An offset between ``low`` and ``high``, both inclusive; ``high`` is None if unbounded."""

    low: int
    high: int | None


def timestamp_search_bounds(
    observations: Iterable[tuple[int, int, int]],
    timestamp_ms: int,
    *,
    searched_ms: int,
    version: str | Version,
) -> OffsetBounds:
    """Return the range of offsets that ``searchOffset(timestamp)`` can return.

    From 5.1.1 on, the answer is the smallest offset stored at or after the timestamp (max if there
    is none). Earlier brokers return the message nearest in time, which may be stored before the
    timestamp; for a timestamp in the future, that is the last message, max - 1.

    Args:
        observations: (observed_ms, min_offset, max_offset) of one queue, in any order.
        timestamp_ms: the timestamp searched for.
        searched_ms: when the client searches; the newest min offset seen by then applies (otherwise
            the oldest seen).
        version: the broker's version.

    Returns:
        low: the max_offset of the last observation before the timestamp; without one, the min
            offset (0 if there are no observations).
        high: the max_offset of the first observation at or after it; None if there is none. Both
            are at least the min offset.
    """
    seen = sorted(OffsetObservation(*row) for row in observations)
    if not seen:
        return OffsetBounds(0, None)
    floor = max((row for row in seen if row.observed_ms <= searched_ms), default=seen[0]).min_offset
    before = [row.max_offset for row in seen if row.observed_ms < timestamp_ms]
    after = [row.max_offset for row in seen if row.observed_ms >= timestamp_ms]
    low = before[-1] if before else floor
    if parse_version(str(version)) < EXACT_LOWER_BOUND:
        low -= 1
    high = max(after[0], floor) if after else None
    return OffsetBounds(max(low, floor), high)

"""Correction of a start offset outside the queue by the first pull: OFFSET_ILLEGAL
(rocketmq.md §5.5).

Upstream: ``DefaultMessageStore.getMessage`` of a master; a slave corrects nothing.
"""

from rebalance_core.model.versions import Version, parse_version

OVERFLOW_ALWAYS_TO_MAX = (4, 9, 4)  # before: an offset past the end of a queue with min 0 -> min


def first_pull_correction(
    *, offset: int, min_offset: int, max_offset: int, version: str | Version
) -> int | None:
    """Return the offset the broker sends the client to; None when ``offset`` is pulled as it is.

    Below min goes to min, above max to max; ``offset == max_offset`` waits for messages. An empty
    queue (max 0) sends every offset but 0 to 0. Brokers of 4.9.0-4.9.3 answer an overflow of a
    queue whose min is 0 with min: the whole queue is replayed.
    """
    if max_offset == 0:
        return 0 if offset != 0 else None
    if offset < min_offset:
        return min_offset
    if offset <= max_offset:
        return None
    if min_offset == 0 and parse_version(str(version)) < OVERFLOW_ALWAYS_TO_MAX:
        return 0
    return max_offset

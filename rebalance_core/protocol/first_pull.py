"""The first pull's correction of a start offset outside the queue: OFFSET_ILLEGAL
(rocketmq.md §5.5).

Upstream: ``DefaultMessageStore.getMessage`` on a master; a slave corrects nothing.
"""

from rebalance_core.model.versions import Version, parse_version

OVERFLOW_ALWAYS_TO_MAX = (4, 9, 4)  # earlier: an offset past the end of a queue with min 0 -> min


def first_pull_correction(
    *, offset: int, min_offset: int, max_offset: int, version: str | Version
) -> int | None:
    """Return the offset to which the broker sends the client; None if ``offset`` is pulled as it
    is.

    An offset below min is corrected to min, one above max to max; ``offset == max_offset`` waits
    for messages. In an empty queue (max 0), every offset but 0 is corrected to 0. If min is 0,
    brokers of 4.9.0-4.9.3 correct an offset above max to min, so the whole queue is replayed.
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

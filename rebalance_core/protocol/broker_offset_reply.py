"""A broker's answer to a query for the group's committed offset (rocketmq.md §5.3).

Upstream: ``ConsumerManageProcessor.queryConsumerOffset`` in the broker.
"""

from rebalance_core.model.versions import Version, parse_version

# ISSUE #5837: "is in page cache" replaces "is within 40 % of RAM".
PAGE_CACHE_CHECK = (5, 1, 0)


def broker_offset_reply(
    *,
    committed_offset: int | None,
    min_offset: int | None,
    max_offset: int | None,
    head_cached: bool | None,
    set_zero_if_not_found: bool,
    version: str | Version,
) -> int | None:
    """Return the offset in the broker's answer, or None for QUERY_NOT_FOUND.

    For a young queue, the answer to a group that has never committed is 0, so such a group starts
    at 0 in every mode of the client.

    Args:
        committed_offset: the group's commit (or its pending reset); None if it never committed.
        min_offset: the queue's min offset; None, like 0, for a queue that was never written to.
        max_offset: the queue's max offset; None, like 0, for a queue that was never written to.
            Callers that do not know the offsets must not call this, because None does not mean
            "unknown".
        head_cached: whether entry 0 is in memory (page cache; before 5.1.0, within 40 % of RAM).
            None means unknown and is taken as True. It has no effect on an empty queue.
        set_zero_if_not_found: the request's flag; clients send True for a queue that they start to
            read.
        version: the broker's version.
    """
    if committed_offset is not None:
        return committed_offset
    if not set_zero_if_not_found or (min_offset or 0) > 0:
        return None
    in_memory = head_cached is None or head_cached
    if (max_offset or 0) <= 0:
        # Earlier: no message is on disk yet, so 0. Since then: none is in the page cache, so
        # unknown.
        return 0 if parse_version(str(version)) < PAGE_CACHE_CHECK else None
    return 0 if in_memory else None

"""Where a queue starts to be pulled (rocketmq.md §5): the client's rule, the broker's answers,
commits.
"""

from collections.abc import Iterable
from typing import NamedTuple

from rebalance_core.model.clients import Version, parse_version
from rebalance_core.model.errors import StartOffsetError, UsageError
from rebalance_core.model.group_settings import CONSUMER_TYPES, LAST_OFFSET, LITE_PULL, PULL, PUSH
from rebalance_core.model.queue import is_retry_topic
from rebalance_core.model.times import FIRST_OFFSET_PERSIST_MS, OFFSET_FLUSH_MS

# Where a newly assigned queue starts to be pulled: the client's rule alone (rocketmq.md §5.1).
#
# Upstream: ``computePullFromWhereWithException`` of ``RebalancePushImpl``,
# ``RebalanceLitePullImpl`` and ``RebalancePullImpl``.

FIRST_OFFSET = "CONSUME_FROM_FIRST_OFFSET"
TIMESTAMP = "CONSUME_FROM_TIMESTAMP"
CURRENT_MODES = (LAST_OFFSET, FIRST_OFFSET, TIMESTAMP)
DEPRECATED_MODES = (  # RebalancePushImpl handles them exactly as CONSUME_FROM_LAST_OFFSET
    "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST",
    "CONSUME_FROM_MIN_OFFSET",
    "CONSUME_FROM_MAX_OFFSET",
)

NO_STORED_OFFSET = -1  # OffsetStore.readOffset: nothing stored
STORED_OFFSET_ERROR = -2  # OffsetStore.readOffset: the store could not be read
NO_START_OFFSET = -1  # computePullFromWhere: the queue is not added in this pass

# Which rule decides, as ``pull_starts.rule`` has it.
STORED = "STORED"
LOCAL_STORE = "LOCAL_STORE"
BROKER_ZERO = "BROKER_ZERO"
MAX_OFFSET = "MAX_OFFSET"
FIRST_ZERO = "FIRST_ZERO"
TIMESTAMP_SEARCH = "TIMESTAMP_SEARCH"
RETRY_ZERO = "RETRY_ZERO"
RETRY_MAX = "RETRY_MAX"
QUERY_FAILED = "QUERY_FAILED"
PULL_ALWAYS_ZERO = "PULL_ALWAYS_ZERO"

REFUSED_MODE = "Invalid ConsumeFromWhere Value"  # DefaultLitePullConsumer.setConsumeFromWhere
# RebalancePushImpl 5.x words the failure differently under CONSUME_FROM_LAST_OFFSET.
STORE_FAILED_LAST = "Failed to query consume offset from offset store"
STORE_FAILED = "Failed to query offset from offset store"
# Upstream passes on whatever MQAdminImpl said; only the fact that it failed is known here.
MAX_OFFSET_FAILED = "maxOffset failed"
SEARCH_OFFSET_FAILED = "searchOffset failed"


def compute_pull_from_where(
    *,
    consumer_type: str,
    consume_from_where: str,
    topic: str,
    stored_offset: int,
    max_offset: int | None,
    timestamp_offset: int | None,
    version: str | Version,
) -> int:
    """The offset upstream's ``computePullFromWhereWithException`` returns.

    Args:
        consumer_type: ``PUSH``, ``LITE_PULL`` or ``PULL``.
        consume_from_where: name of the ``ConsumeFromWhere`` constant.
        topic: topic of the queue; retry topics have rules of their own.
        stored_offset: what the offset store answers: an offset, -1 none, -2 error.
        max_offset: the broker's max offset; None when the look-up fails.
        timestamp_offset: the broker's answer to the timestamp search; None when it fails.
        version: version of the client.

    Returns:
        The offset, or -1: upstream returns -1 without throwing for an unreadable store, except
        in the push consumer of 5.x.

    Raises:
        StartOffsetError: upstream throws; the message is upstream's (for a failed look-up, whose
            message is the transport's, `MAX_OFFSET_FAILED` or `SEARCH_OFFSET_FAILED`).
        UsageError: an unknown consumer type or mode.
    """
    return start_rule(
        consumer_type=consumer_type,
        consume_from_where=consume_from_where,
        topic=topic,
        stored_offset=stored_offset,
        max_offset=max_offset,
        timestamp_offset=timestamp_offset,
        version=version,
    )[1]


def start_rule(
    *,
    consumer_type: str,
    consume_from_where: str,
    topic: str,
    stored_offset: int,
    max_offset: int | None,
    timestamp_offset: int | None,
    version: str | Version,
) -> tuple[str, int]:
    """The rule that decides, and what `compute_pull_from_where` returns; it raises the same."""
    _check(consumer_type, consume_from_where)
    if consumer_type == PULL:
        return PULL_ALWAYS_ZERO, 0  # RebalancePullImpl: the user handles offsets
    if consumer_type == LITE_PULL and consume_from_where not in CURRENT_MODES:
        raise StartOffsetError(REFUSED_MODE)
    throws = consumer_type == PUSH and not parse_version(str(version)).is_v4
    if stored_offset >= 0:
        return STORED, stored_offset
    if stored_offset != NO_STORED_OFFSET:
        if throws:
            last = consume_from_where not in (FIRST_OFFSET, TIMESTAMP)
            raise StartOffsetError(STORE_FAILED_LAST if last else STORE_FAILED)
        return QUERY_FAILED, NO_START_OFFSET
    rule, offset = _first_start(consume_from_where, topic, max_offset, timestamp_offset)
    if offset < 0 and throws:
        raise StartOffsetError(f"Found unexpected result {offset}")
    return rule if offset >= 0 else QUERY_FAILED, offset


def compute_pull_from_where_no_exception(
    *,
    consumer_type: str,
    consume_from_where: str,
    topic: str,
    stored_offset: int,
    max_offset: int | None,
    timestamp_offset: int | None,
    version: str | Version,
) -> int:
    """Upstream's ``computePullFromWhere``, which a pass uses: -1 where the other one throws.

    Arguments as `compute_pull_from_where`. A mode that lite pull's setter refuses still raises
    `StartOffsetError`: such a consumer never starts.
    """
    try:
        return compute_pull_from_where(
            consumer_type=consumer_type,
            consume_from_where=consume_from_where,
            topic=topic,
            stored_offset=stored_offset,
            max_offset=max_offset,
            timestamp_offset=timestamp_offset,
            version=version,
        )
    except StartOffsetError as error:
        if str(error) == REFUSED_MODE:
            raise
        return NO_START_OFFSET


def _first_start(
    consume_from_where: str, topic: str, max_offset: int | None, timestamp_offset: int | None
) -> tuple[str, int]:
    """The rule and the start of a queue for which nothing is stored."""
    retry = is_retry_topic(topic)
    if consume_from_where == FIRST_OFFSET:
        return RETRY_ZERO if retry else FIRST_ZERO, 0
    if consume_from_where == TIMESTAMP:
        # A retry topic starts at its end here, and at 0 under LAST_OFFSET: upstream's own choice.
        if retry:
            return RETRY_MAX, _looked_up(max_offset, MAX_OFFSET_FAILED)
        return TIMESTAMP_SEARCH, _looked_up(timestamp_offset, SEARCH_OFFSET_FAILED)
    return (RETRY_ZERO, 0) if retry else (MAX_OFFSET, _looked_up(max_offset, MAX_OFFSET_FAILED))


def _looked_up(answer: int | None, failure: str) -> int:
    if answer is None:
        raise StartOffsetError(failure)
    return answer


def _check(consumer_type: str, consume_from_where: str) -> None:
    if consumer_type not in CONSUMER_TYPES:
        known = ", ".join(CONSUMER_TYPES)
        raise UsageError(f"{consumer_type!r} is no consumer type; expected one of {known}")
    if consume_from_where not in CURRENT_MODES + DEPRECATED_MODES:
        known = ", ".join(CURRENT_MODES + DEPRECATED_MODES)
        raise UsageError(f"{consume_from_where!r} is no start mode; expected one of {known}")


# What a broker answers when a client asks for the group's committed offset (rocketmq.md §5.3).
#
# Upstream: ``ConsumerManageProcessor.queryConsumerOffset`` of the broker.

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
    """The offset in the broker's answer, or None for QUERY_NOT_FOUND.

    A young queue of a group that never committed answers 0, so such a group starts at 0 under
    every mode of the client.

    Args:
        committed_offset: the group's commit (or its pending reset); None: never committed.
        min_offset: the queue's min offset; None: a queue never written, as 0.
        max_offset: the queue's max offset; None: a queue never written, as 0. Whoever does not
            know the offsets must not ask: None here is not "unknown".
        head_cached: is entry 0 in memory (page cache; before 5.1.0 within 40 % of RAM)?
            None: not known, taken for yes. Without effect on an empty queue.
        set_zero_if_not_found: the request's flag; clients send True for a queue they start on.
        version: version of the broker.
    """
    if committed_offset is not None:
        return committed_offset
    if not set_zero_if_not_found or (min_offset or 0) > 0:
        return None
    in_memory = head_cached is None or head_cached
    if (max_offset or 0) <= 0:
        # Before: nothing lies on disk yet, so 0. Since: nothing is in the page cache, so unknown.
        return 0 if parse_version(str(version)) < PAGE_CACHE_CHECK else None
    return 0 if in_memory else None


# How late a broker knows a commit, and what becomes of commits when a topic goes
# (rocketmq.md §5.2).
#
# Upstream: ``RemoteBrokerOffsetStore`` of the client, ``ConsumerOffsetManager`` of the broker.

# Commits are one-way requests: the client logs them when they are sent. Two real owners started at
# 0, 135 and 260 ms after the first commit of their queue had been logged.
COMMIT_TRANSIT_MS = 1_000

OWN_COMMIT_STORED_MS = FIRST_OFFSET_PERSIST_MS + COMMIT_TRANSIT_MS + OFFSET_FLUSH_MS
"""Whoever has held a queue alone for this long wrote what the broker's store says."""
FINAL_COMMIT_STORED_MS = COMMIT_TRANSIT_MS + OFFSET_FLUSH_MS
"""Whoever gave a queue up this long ago has its last commit in the broker's store."""

OFFSETS_GO_WITH_THE_TOPIC = (5, 0, 0)  # AdminBrokerProcessor.deleteTopic: cleanOffset(topic)


def deletes_offsets(version: str | Version) -> bool:
    """True if a broker of this version forgets all commits on a topic that is deleted."""
    return parse_version(str(version)) >= OFFSETS_GO_WITH_THE_TOPIC


# What the first pull makes of a start offset outside the queue: OFFSET_ILLEGAL
# (rocketmq.md §5.5).
#
# Upstream: ``DefaultMessageStore.getMessage`` of a master; a slave corrects nothing.

OVERFLOW_ALWAYS_TO_MAX = (4, 9, 4)  # before: an offset past the end of a queue with min 0 -> min


def first_pull_correction(
    *, offset: int, min_offset: int, max_offset: int, version: str | Version
) -> int | None:
    """The offset the broker sends the client to, or None when ``offset`` is pulled as it is.

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


# Bounds of a broker's timestamp search, from what was seen of the queue over time
# (rocketmq.md §5.4).
#
# Upstream: ``ConsumeQueue.getOffsetInQueueByTime``. Store times of single messages are not known
# here; observations of the queue's offsets before and after the timestamp enclose the answer.

EXACT_LOWER_BOUND = (5, 1, 1)  # before: the nearest message in time


class OffsetObservation(NamedTuple):
    """Offsets of one queue at one instant."""

    observed_ms: int
    min_offset: int
    max_offset: int


class OffsetBounds(NamedTuple):
    """An offset between ``low`` and ``high``, both inclusive; ``high`` None: nothing bounds it."""

    low: int
    high: int | None


def timestamp_search_bounds(
    observations: Iterable[tuple[int, int, int]],
    timestamp_ms: int,
    *,
    searched_ms: int,
    version: str | Version,
) -> OffsetBounds:
    """Every offset that ``searchOffset(timestamp)`` can answer.

    From 5.1.1 the answer is the smallest offset stored at or after the timestamp (max when there
    is none). Before, it is the nearest message in time, so it may lie one before that, and for a
    timestamp in the future it is the last message, max - 1.

    Args:
        observations: (observed_ms, min_offset, max_offset) of one queue, in any order.
        timestamp_ms: the timestamp searched for.
        searched_ms: when the client searches; the newest min offset not later holds (without one,
            the oldest seen).
        version: version of the broker.

    Returns:
        low: max_offset of the last observation before the timestamp; the min offset (0 when
            nothing was ever seen) when there is none.
        high: max_offset of the first observation at or after it, None when there is none.
            Both are at least the min offset.
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

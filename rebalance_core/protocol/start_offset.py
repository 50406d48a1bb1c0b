"""The start offset of a newly assigned queue, by the client's rule alone (rocketmq.md §5.1).

Upstream: ``computePullFromWhereWithException`` in ``RebalancePushImpl``, ``RebalanceLitePullImpl``
and ``RebalancePullImpl``.
"""

from rebalance_core.model.errors import StartOffsetError, UsageError
from rebalance_core.model.group_settings import CONSUMER_TYPES, LAST_OFFSET, LITE_PULL, PULL, PUSH
from rebalance_core.model.queue import is_retry_topic
from rebalance_core.model.versions import Version, parse_version

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

# The rules that can decide: the values of ``pull_starts.rule``.
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
# Upstream passes on MQAdminImpl's own message; only the failure itself is known here.
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
    """Return the offset that upstream's ``computePullFromWhereWithException`` returns.

    Args:
        consumer_type: ``PUSH``, ``LITE_PULL`` or ``PULL``.
        consume_from_where: the name of the ``ConsumeFromWhere`` constant.
        topic: the queue's topic; retry topics have their own rules.
        stored_offset: the offset store's answer: an offset, -1 if there is none, -2 on error.
        max_offset: the broker's max offset; None if the lookup fails.
        timestamp_offset: the broker's answer to the timestamp search; None if it fails.
        version: the client's version.

    Returns:
        The offset, or -1: except in the push consumer of 5.x, upstream returns -1 for an unreadable
        store rather than throwing.

    Raises:
        StartOffsetError: upstream throws; the message is upstream's (for a failed lookup, whose
            message comes from the transport, `MAX_OFFSET_FAILED` or `SEARCH_OFFSET_FAILED`).
        UsageError: the consumer type or mode is unknown.
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
    """Return the deciding rule and the result of `compute_pull_from_where`; raise its errors."""
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
    """Run upstream's ``computePullFromWhere``, which a pass uses: -1 where the other method throws.

    The arguments are those of `compute_pull_from_where`. A mode that lite pull's setter rejects
    still raises `StartOffsetError`, because such a consumer never starts.
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
    """Return the rule and the start offset of a queue for which no offset is stored."""
    retry = is_retry_topic(topic)
    if consume_from_where == FIRST_OFFSET:
        return RETRY_ZERO if retry else FIRST_ZERO, 0
    if consume_from_where == TIMESTAMP:
        # A retry topic starts at its end here but at 0 under LAST_OFFSET, as upstream has it.
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
        valid = ", ".join(CONSUMER_TYPES)
        raise UsageError(f"{consumer_type!r} is not a consumer type; expected one of {valid}")
    if consume_from_where not in CURRENT_MODES + DEPRECATED_MODES:
        valid = ", ".join(CURRENT_MODES + DEPRECATED_MODES)
        raise UsageError(f"{consume_from_where!r} is not a start mode; expected one of {valid}")

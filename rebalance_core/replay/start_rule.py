"""The start in a queue without a known commit: the rule, its answer and its bounds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rebalance_core.model.client_profile import NEVER_WITHOUT_COMMIT
from rebalance_core.model.clients import JAVA_PROFILE
from rebalance_core.model.errors import StartOffsetError
from rebalance_core.model.group_settings import BROADCASTING, PULL
from rebalance_core.model.queue import MessageQueue, is_retry_topic
from rebalance_core.model.verdicts import FAILED, OK, UNKNOWN
from rebalance_core.protocol.broker_offset_reply import broker_offset_reply
from rebalance_core.protocol.start_offset import (
    BROKER_ZERO,
    FIRST_OFFSET,
    FIRST_ZERO,
    MAX_OFFSET,
    NO_STORED_OFFSET,
    PULL_ALWAYS_ZERO,
    QUERY_FAILED,
    RETRY_MAX,
    RETRY_ZERO,
    TIMESTAMP,
    TIMESTAMP_SEARCH,
    compute_pull_from_where,
)
from rebalance_core.protocol.timestamp_search import timestamp_search_bounds
from rebalance_core.replay.changes import OwnerChange
from rebalance_core.replay.history import GroupHistory, QueueOffset
from rebalance_core.replay.member import Member
from rebalance_core.replay.offset_observations import QueueOffsets


@dataclass(frozen=True, slots=True)
class StartOffset:
    """A start offset, the lowest and highest possible answers, and the rule that applied."""

    rule: str | None
    offset: int | None = None
    low: int | None = None
    high: int | None = None
    status: str = OK


def without_end(start: StartOffset) -> StartOffset:
    """Return the start if no broker knows the queue's end: only the broker's 0 is an answer."""
    if start.rule not in (MAX_OFFSET, RETRY_MAX, TIMESTAMP_SEARCH):
        return start
    if start.low is None or start.low == start.offset:
        return StartOffset(QUERY_FAILED, status=FAILED)
    return StartOffset(BROKER_ZERO, None, 0, 0, UNKNOWN)


def zero(rule: str) -> StartOffset:
    """Return a start of 0 under a rule, regardless of observations."""
    return StartOffset(rule, 0, 0, 0)


def uncommitted_start(
    history: GroupHistory, offsets: QueueOffsets, change: OwnerChange, member: Member
) -> StartOffset:
    """Return where a member starts in a queue for which the group never committed an offset.

    The newest observation before the change determines the rule; the bounds cover the broker's
    possible answers from then until the first observation after the window.
    """
    if history.settings.consumer_type == PULL:
        return zero(PULL_ALWAYS_ZERO)
    seen = _seen(offsets, change)
    client = _client_start(history, offsets, change, member, seen)
    if member.message_model == BROADCASTING:
        return client
    if client.offset == client.high == 0:
        says_zero = seen is not None and _broker_says_zero(history, seen) is not False
        return zero(BROKER_ZERO) if says_zero else client
    if seen is None:
        return StartOffset(None, status=UNKNOWN)
    answers = _answers(history, offsets, change, seen)
    if answers == {True}:
        return zero(BROKER_ZERO)
    if answers == {False}:
        return client
    if _broker_says_zero(history, seen) is False:
        return StartOffset(client.rule, client.offset, 0, client.high, client.status)
    return StartOffset(BROKER_ZERO, 0, 0, client.high)


def client_start(
    history: GroupHistory, offsets: QueueOffsets, change: OwnerChange, member: Member
) -> StartOffset:
    """Return `uncommitted_start` as the member's client computes it, which may differ from Java's.

    A rule that is unknown, or known only from source code, may give any offset in the queue, but a
    broker that certainly answers 0 does so for all clients. BROADCASTING members in other
    languages, whose offsets are in their own files, were never recorded.
    """
    profile = member.profile
    broadcasts = member.message_model == BROADCASTING
    if profile.start == NEVER_WITHOUT_COMMIT and not broadcasts:
        return _broker_start(history, offsets, change)
    start = uncommitted_start(history, offsets, change, member)
    rule_known = (
        profile is JAVA_PROFILE if broadcasts else profile.start_known(member.consume_from_where)
    )
    if rule_known or start == zero(BROKER_ZERO):
        return start
    top = offsets.max_by(change.queue, change.latest_ms, change.earliest_ms)
    return StartOffset(None, None, 0, top, UNKNOWN)


def _broker_start(history: GroupHistory, offsets: QueueOffsets, change: OwnerChange) -> StartOffset:
    """Return the start of a client that takes an uncommitted queue only if the broker answers 0."""
    seen = _seen(offsets, change)
    answers = {None} if seen is None else _answers(history, offsets, change, seen)
    if answers == {True}:
        return zero(BROKER_ZERO)
    if answers == {False}:
        return StartOffset(QUERY_FAILED, status=FAILED)
    return StartOffset(BROKER_ZERO, None, 0, 0, UNKNOWN)


def _seen(offsets: QueueOffsets, change: OwnerChange) -> QueueOffset | None:
    """Return the newest observation before the change.

    A queue of the retry topic that was never held or observed before was created by this group's
    own heartbeats, so it is empty.
    """
    queue = change.queue
    if is_retry_topic(queue.topic) and not offsets.observations_of(queue):
        return QueueOffset(queue, change.earliest_ms, min_offset=0, max_offset=0)
    return offsets.newest(queue, change.earliest_ms)


def _answers(
    history: GroupHistory, offsets: QueueOffsets, change: OwnerChange, seen: QueueOffset
) -> set[bool | None]:
    """Return the possible values of `_broker_says_zero` within the window.

    The minimum only rises. While it is 0, the last observation does not determine later ones,
    except for a retry queue that was not observed because it is so new.
    """
    queue = change.queue
    rows = [seen, *offsets.around(queue, change.earliest_ms, change.latest_ms)]
    answers = {_broker_says_zero(history, row) for row in rows}
    after = offsets.first_from(queue, change.latest_ms, change.earliest_ms)
    if after is None and seen.min_offset <= 0 and offsets.observations_of(queue):
        answers.add(None)
    return answers


def _broker_says_zero(history: GroupHistory, seen: QueueOffset) -> bool | None:
    """Return whether the broker answers 0, or None if that depends on whether entry 0 is in
    memory.
    """
    if seen.head_cached is None and seen.min_offset <= 0 < seen.max_offset:
        return None
    reply = broker_offset_reply(
        committed_offset=None,
        min_offset=seen.min_offset,
        max_offset=seen.max_offset,
        head_cached=seen.head_cached,
        set_zero_if_not_found=True,
        version=history.settings.broker_version,
    )
    return reply == 0


def _client_start(
    history: GroupHistory,
    offsets: QueueOffsets,
    change: OwnerChange,
    member: Member,
    seen: QueueOffset | None,
) -> StartOffset:
    """Apply the client's own rule, with the bounds of the look-up that it makes."""
    retry, mode = is_retry_topic(change.queue.topic), member.consume_from_where
    if mode == FIRST_OFFSET:
        return zero(RETRY_ZERO if retry else FIRST_ZERO)
    if mode != TIMESTAMP and retry:
        return zero(RETRY_ZERO)
    if seen is None:
        return StartOffset(None, status=UNKNOWN)
    newest = offsets.max_by(change.queue, change.latest_ms, change.earliest_ms)
    if mode == TIMESTAMP and not retry:
        return _timestamp_start(history, offsets, change, newest)
    try:
        offset = compute_pull_from_where(
            consumer_type=history.settings.consumer_type,
            consume_from_where=mode,
            topic=change.queue.topic,
            stored_offset=NO_STORED_OFFSET,
            max_offset=seen.max_offset,
            timestamp_offset=None,
            version=member.rules_version,
        )
    except StartOffsetError:
        return StartOffset(QUERY_FAILED, status=FAILED)
    return StartOffset(RETRY_MAX if retry else MAX_OFFSET, offset, offset, newest)


def _timestamp_start(
    history: GroupHistory, offsets: QueueOffsets, change: OwnerChange, newest: int | None
) -> StartOffset:
    timestamp_ms = history.settings.consume_timestamp_ms
    if timestamp_ms is None:
        return StartOffset(None, status=UNKNOWN)
    life = offsets.life(change.queue, change.earliest_ms)
    rows = [(row.observed_ms, row.min_offset, row.max_offset) for row in life]
    after = offsets.first_from(change.queue, change.latest_ms, change.earliest_ms)
    # Messages stored after the search cannot be its answer.
    searched = [row for row in rows if row[0] <= change.earliest_ms]
    low = timestamp_search_bounds(
        searched,
        timestamp_ms,
        searched_ms=change.earliest_ms,
        version=history.settings.broker_version,
    ).low
    high = timestamp_search_bounds(
        rows,
        timestamp_ms,
        searched_ms=change.latest_ms if after is None else after.observed_ms,
        version=history.settings.broker_version,
    ).high
    if newest is None:  # nor is it known which messages at the start of the queue were deleted
        return StartOffset(TIMESTAMP_SEARCH, low, low, None)
    top = newest if high is None else min(high, newest)
    return StartOffset(TIMESTAMP_SEARCH, low, low, max(low, top))


def missing_queue(readable: Mapping[str, Sequence[MessageQueue]], queue: MessageQueue) -> bool:
    """Return True for a queue in a CONFIG list that does not exist or cannot be read."""
    return queue not in readable.get(queue.topic, [])

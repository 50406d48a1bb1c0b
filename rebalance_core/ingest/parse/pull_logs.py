"""Lines in a client's log about queues that it holds but does not pull, and offsets to which it was
sent (rocketmq.md §4.4, §13).

The client stops pulling a queue while its cache is full, that is, contains too many or too large
messages, or offsets too far apart because one message is unfinished. It takes over no queue without
a lock or a start offset.
"""

import re

from rebalance_core.ingest.fact import Fact, Unread
from rebalance_core.ingest.parse import java_numbers, java_text, log_lines
from rebalance_core.ingest.parse.java_text import between, whole
from rebalance_core.ingest.parse.log_lines import LineFields, LogLine, Template
from rebalance_core.model.flow_control import COUNT, SIZE, SPAN
from rebalance_core.model.refused_starts import LOCK_FAILED, NO_OFFSET, OFFSET_FAILED

COUNT_EXCEEDED = "the cached message count exceeds the threshold "
SIZE_EXCEEDED = "the cached message size exceeds the threshold "
BUFFER_FULL = "the consumer message buffer is full, so do flow control"
SPAN_EXCEEDED = "the queue's messages, span too long, so do flow control"
_FLOW_CONTROL = {
    COUNT_EXCEEDED: COUNT,
    SIZE_EXCEEDED: SIZE,
    BUFFER_FULL: COUNT,
    SPAN_EXCEEDED: SPAN,
}
_FIRST = ", minOffset="
_REQUEST = "PullRequest [consumerGroup="
_ILLEGAL = "the pull request offset illegal, "

_REFUSED = (
    (", add a new mq failed, ", ", because lock failed", LOCK_FAILED),
    (", add new mq failed, ", ", because lock failed", LOCK_FAILED),
    (", add new mq failed, ", "", NO_OFFSET),
    (", compute offset failed, ", "", OFFSET_FAILED),
)
"""The continuation and end of a pass's line, and why the queue was not taken over."""
_NO_ROUTE = ", but the topic["


def _of_request(message: str) -> LineFields:
    """Return the group and queue of the ``PullRequest`` in a line."""
    pieces = between(message[message.find(_REQUEST) :], _REQUEST, ", messageQueue=", "")
    queues = java_text.message_queues(pieces[1]) if pieces else []
    if pieces is None or not pieces[0] or len(queues) != 1:
        return None
    topic, broker, queue_id = queues[0]
    return {"group": pieces[0], "topic": topic, "broker_name": broker, "queue_id": queue_id}


def _flow_controlled(message: str) -> LineFields:
    if _REQUEST not in message:
        return log_lines.NOTHING  # a lite pull consumer's line, which names no queue
    fields = _of_request(message)
    if fields is None:
        return None
    words = next(words for words in _FLOW_CONTROL if message.startswith(words))
    first = between(message[message.find(_FIRST) :], _FIRST, ", ")
    offset = whole(first[0], java_numbers.LONG_MAX) if first else None
    named = {} if offset is None else {"min_offset": offset}
    return {**fields, "reason": _FLOW_CONTROL[words], **named}


def _offset_illegal(message: str) -> LineFields:
    fields = _of_request(message)
    asked = between(message[message.find(", nextOffset=") :], ", nextOffset=", "]")
    answered = between(message[message.find(", nextBeginOffset=") :], ", nextBeginOffset=", ",")
    if fields is None or asked is None or answered is None:
        return None
    offsets = [whole(piece[0], java_numbers.LONG_MAX) for piece in (asked, answered)]
    if None in offsets:
        return None
    return {**fields, "asked": offsets[0], "given": offsets[1]}


def start_refused(message: str) -> LineFields:
    """Read why a pass did not take over a queue: ``doRebalance, {group}, add new mq failed, …``."""
    for words, end, reason in _REFUSED:
        pieces = between(message, "doRebalance, ", words, end) if words in message else None
        queues = java_text.message_queues(pieces[1]) if pieces else []
        if pieces and pieces[0] and len(queues) == 1:
            topic, broker, queue_id = queues[0]
            named = {"topic": topic, "broker_name": broker, "queue_id": queue_id}
            return {"group": pieces[0], **named, "reason": reason}
    return log_lines.NOTHING


def topic_missing(message: str) -> LineFields:
    """Read ``doRebalance, {group}, but the topic[{topic}] not exist.``."""
    pieces = between(message, "doRebalance, ", _NO_ROUTE, "] not exist")
    if pieces is None:
        return log_lines.NOTHING
    return log_lines.named(("group", "topic"), pieces)


def _unlock_failed(message: str) -> LineFields:
    """Read ``[WRONG]mq is consuming, so can not unlock it, {queue}. maybe hanged for a while, {}``,
    which names no group.
    """
    queues = java_text.message_queues(message)
    if len(queues) != 1:
        return None
    topic, broker, queue_id = queues[0]
    return {"topic": topic, "broker_name": broker, "queue_id": queue_id}


def message_expired(line: LogLine, text: str, source: str) -> Fact | Unread:
    """Read ``send expire msg back. topic={}, msgId={}, storeHost={}, queueId={}, queueOffset={}``.

    In 5.1.4 and later releases, but not in 5.1.0, the line's thread is named after the group's
    first 100 characters (those between were not read). The topic is that of the listener, even for
    messages from the retry topic.
    """
    marks = (EXPIRED, ", msgId=", ", storeHost=", ", queueId=", ", queueOffset=", "")
    pieces = between(line.message, *marks)
    numbers = (
        [whole(piece.strip(), java_numbers.LONG_MAX) for piece in pieces[3:]] if pieces else []
    )
    if pieces is None or not pieces[0] or None in numbers:
        return log_lines.not_read(text, source, EXPIRED)
    fields = {
        "topic": pieces[0],
        "address": pieces[2].rpartition("/")[2],
        "queue_id": numbers[0],
        "offset": numbers[1],
    }
    thread = _CLEANING_THREAD.search(text.partition(" - ")[0])
    group = thread[1] if thread else ""
    if not group or len(group) >= THREAD_CHARACTERS:
        return Fact("message_of_any_expired", line.at_ms, fields, source)
    return Fact("message_expired", line.at_ms, {"group": group, **fields}, source)


EXPIRED = "send expire msg back. topic="
THREAD_CHARACTERS = 100
"""ConsumeMessageConcurrentlyService truncates the group's name in its thread names."""
_CLEANING_THREAD = re.compile(r"\[CleanExpireMsgScheduledThread_(.+)_\d+\]")

PULL_TEMPLATES: tuple[Template, ...] = (
    *(("flow_controlled", words, _flow_controlled) for words in _FLOW_CONTROL),
    ("offset_illegal", _ILLEGAL, _offset_illegal),
    ("unlock_failed", "[WRONG]mq is consuming, so can not unlock it, ", _unlock_failed),
)
PASS_WORDS = (*dict.fromkeys(words for words, _, _ in _REFUSED), _NO_ROUTE)
"""Words in the lines of passes that `start_refused` and `topic_missing` read."""

"""Order-lock lines: lock.log, in 5.3 filter.log (rocketmq.md §10.3, §13 no. 1). They tell who is
orderly.
"""

from __future__ import annotations

from rebalance_core.ingest.fact import Fact, Unread
from rebalance_core.ingest.parse.text.java_text import between, message_queues
from rebalance_core.ingest.parse.text.log_lines import (
    Clock,
    Fields,
    Template,
    headless,
    read_message,
    server_line,
)

_REFUSED = "RebalanceLockManager#tryLockBatch: message queue has been locked by other client, "
_REFUSED_4_9 = "tryLockBatch, message queue locked by other client. "


def _group_5(message: str) -> Fields:
    pieces = between(message[message.find("group=") :], "group=", ", ")
    return {"group": pieces[0]} if pieces and pieces[0] else None


def _group_4_9(message: str) -> Fields:
    pieces = between(message[message.find("Group: ") :], "Group: ", " ")
    return {"group": pieces[0]} if pieces and pieces[0] else None


def _refused_5(message: str) -> Fields:
    marks = ("group=", ", mq=", ", locked client id=", ", current client id=", "")
    pieces = between(message, _REFUSED + marks[0], *marks[1:])
    return None if pieces is None else _refused(pieces[0], pieces[1], pieces[2], pieces[3])


def _refused_4_9(message: str) -> Fields:
    marks = ("Group: ", " OtherClientId: ", " NewClientId: ", " MessageQueue [", "")
    pieces = between(message, _REFUSED_4_9 + marks[0], *marks[1:])
    if pieces is None:
        return None
    return _refused(pieces[0], "MessageQueue [" + pieces[3], pieces[1], pieces[2])


def _refused(group: str, queue: str, owner: str, client_id: str) -> Fields:
    queues = message_queues(queue)
    if len(queues) != 1 or not (group and owner and client_id):
        return None
    topic, broker_name, queue_id = queues[0]
    return {
        "group": group,
        "topic": topic,
        "broker_name": broker_name,
        "queue_id": queue_id,
        "client_id": client_id,
        "owner": owner,
    }


TEMPLATES: tuple[Template, ...] = (
    ("lock_refused", _REFUSED, _refused_5),
    ("lock_refused", _REFUSED_4_9, _refused_4_9),
    ("queue_locked", "RebalanceLockManager#tryLockBatch: ", _group_5),
    ("queue_locked", "tryLockBatch, message queue ", _group_4_9),
)
WORDS = tuple(words for _, words, _ in TEMPLATES)


def parse_lock_line(text: str, source: str, clock: Clock) -> tuple[Fact | Unread, ...]:
    """What one line of lock.log or filter.log states; unlocks add nothing to the locks."""
    line = server_line(text, clock)
    if line is None:
        return headless(WORDS, text, source)
    return read_message(TEMPLATES, line, text, source)

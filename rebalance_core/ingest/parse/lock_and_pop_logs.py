"""Order locks and POP in logs: what lines of clients and of brokers say of them."""

from rebalance_core.ingest.fact import Fact, Unread, Unreadable
from rebalance_core.ingest.parse import log_lines
from rebalance_core.ingest.parse.java_text import MS_MAX, between, long_of, message_queues, whole
from rebalance_core.ingest.parse.log_lines import ClientClock, Clock, LineFields, Template

# Order-lock lines: lock.log, in 5.3 filter.log (rocketmq.md §10.3, §13 no. 1). They show who is
# orderly.

_REFUSED = "RebalanceLockManager#tryLockBatch: message queue has been locked by other client, "
_REFUSED_4_9 = "tryLockBatch, message queue locked by other client. "


def _group_5(message: str) -> LineFields:
    pieces = between(message[message.find("group=") :], "group=", ", ")
    return {"group": pieces[0]} if pieces and pieces[0] else None


def _group_4_9(message: str) -> LineFields:
    pieces = between(message[message.find("Group: ") :], "Group: ", " ")
    return {"group": pieces[0]} if pieces and pieces[0] else None


def _refused_5(message: str) -> LineFields:
    marks = ("group=", ", mq=", ", locked client id=", ", current client id=", "")
    pieces = between(message, _REFUSED + marks[0], *marks[1:])
    return None if pieces is None else _refused(pieces[0], pieces[1], pieces[2], pieces[3])


def _refused_4_9(message: str) -> LineFields:
    marks = ("Group: ", " OtherClientId: ", " NewClientId: ", " MessageQueue [", "")
    pieces = between(message, _REFUSED_4_9 + marks[0], *marks[1:])
    if pieces is None:
        return None
    return _refused(pieces[0], "MessageQueue [" + pieces[3], pieces[1], pieces[2])


def _refused(group: str, queue: str, owner: str, client_id: str) -> LineFields:
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


LOCK_TEMPLATES: tuple[Template, ...] = (
    ("lock_refused", _REFUSED, _refused_5),
    ("lock_refused", _REFUSED_4_9, _refused_4_9),
    ("queue_locked", "RebalanceLockManager#tryLockBatch: ", _group_5),
    ("queue_locked", "tryLockBatch, message queue ", _group_4_9),
)
LOCK_WORDS = tuple(words for _, words, _ in LOCK_TEMPLATES)


def parse_lock_line(text: str, source: str, clock: Clock) -> tuple[Fact | Unread, ...]:
    """Read what one line of lock.log or filter.log states; unlocks add nothing to the locks."""
    line = log_lines.server_line(text, clock)
    if line is None:
        return log_lines.headless(LOCK_WORDS, text, source)
    return log_lines.read_message(LOCK_TEMPLATES, line, text, source)


# pop.log: offsets of POP that the queue lacks, which PopMessageProcessor moves.

_POP_MOVED = "Pop initial offset, because store is no correct, "


def _pop_moved(message: str) -> LineFields:
    """Read ``topic@group@queue, asked->given``."""
    pieces = between(message, _POP_MOVED, "@", "@", ", ", "->", "")
    fields = log_lines.named(("topic", "group"), pieces[:2] if pieces else None)
    if fields is None or pieces is None:
        return None
    try:
        return fields | {
            "asked": long_of(pieces[3], "offset"),
            "given": long_of(pieces[4], "offset"),
        }
    except Unreadable:
        return None


POP_TEMPLATES: tuple[Template, ...] = (("offset_corrected", _POP_MOVED, _pop_moved),)
POP_WORDS = tuple(words for _, words, _ in POP_TEMPLATES)


def parse_pop_line(text: str, source: str, clock: Clock) -> tuple[Fact | Unread, ...]:
    """Read what one line of pop.log states."""
    line = log_lines.server_line(text, clock)
    if line is None:
        return log_lines.headless(POP_WORDS, text, source)
    return log_lines.read_message(POP_TEMPLATES, line, text, source)


# Lines of broker.log and rocketmq_client.log on POP and QueryAssignment (rocketmq.md §14).

QUERY = "QueryLoad: no assignment for group["
_UNSUPPORTED = "QueryLoad: unsupported strategy ["
_TIMED_OUT = "the pop message time out so abort consume. popTime="
_NO_ROUTE = "get Topic ["
_NO_ROUTE_END = "] RouteInfoFromNameServer is not exist value"
FORBIDDEN = " pop message is forbidden because timerWheelEnable is false"
"""PopMessageProcessor's answer; the client prints it in the exception below a failed pop."""


def _no_assignment(message: str) -> LineFields:
    for reason, marks in (
        ("NO_MEMBERS", ("] topic[", "], get consumer id list failed")),
        ("NO_TOPIC", ("], the topic[", "] does not exist.")),
    ):
        fields = log_lines.named(("group", "topic"), between(message, QUERY, *marks))
        if fields is not None:
            return fields | {"reason": reason}
    return log_lines.NOTHING


def _unsupported(message: str) -> LineFields:
    pieces = between(message, _UNSUPPORTED, "], ", "")
    return log_lines.named(
        ("strategy", "client_addr"), [piece.strip() for piece in pieces] if pieces else None
    )


def _timed_out(message: str) -> LineFields:
    pieces = between(
        message, _TIMED_OUT, " invisibleTime=", ", group=", " MessageQueue [topic=",
        ", brokerName=", ""
    )  # fmt: skip
    fields = log_lines.named(("group", "topic"), pieces[2:4] if pieces else None)
    invisible_ms = whole(pieces[1], MS_MAX) if pieces else None
    if fields is None or invisible_ms is None:
        return None
    return fields | {"invisible_ms": invisible_ms}


def _no_route(message: str) -> LineFields:
    if not message.endswith(_NO_ROUTE_END):
        return log_lines.NOTHING
    return log_lines.named(("topic",), [message[len(_NO_ROUTE) : -len(_NO_ROUTE_END)]])


def pop_forbidden(text: str, source: str, clock: ClientClock) -> tuple[Fact | Unread, ...]:
    """Read ``…CODE: 1 DESC: the broker[…] pop message is forbidden … BROKER: {address}``.

    The line has the time of the failed pop before it; where that is not known, as at the beginning
    of a split, it states nothing.
    """
    failed, clock.failed = clock.failed, None
    if failed is None:
        return log_lines.NOT_OURS
    values = {"address": text.partition(FORBIDDEN)[2].partition("BROKER: ")[2].strip()}
    if failed.pid is not None:
        values["pid"] = failed.pid
    return (Fact("pop_forbidden", failed.at_ms, values, source),)


BROKER_TEMPLATES: tuple[Template, ...] = (
    ("no_assignment", QUERY, _no_assignment),
    ("strategy_unsupported", _UNSUPPORTED, _unsupported),
)
CLIENT_TEMPLATES: tuple[Template, ...] = (
    ("pop_timed_out", _TIMED_OUT, _timed_out),
    ("missing_route", _NO_ROUTE, _no_route),
)
CLIENT_WORDS = (*(words for _, words, _ in CLIENT_TEMPLATES), FORBIDDEN)

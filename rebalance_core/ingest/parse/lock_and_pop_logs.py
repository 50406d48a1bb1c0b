"""Lines about order locks and POP in the logs of clients and brokers."""

from rebalance_core.ingest.fact import Fact, Unread, Unreadable
from rebalance_core.ingest.parse import log_lines
from rebalance_core.ingest.parse.java_numbers import INT_MAX, long_of
from rebalance_core.ingest.parse.java_text import MS_MAX, between, message_queues, whole
from rebalance_core.ingest.parse.log_lines import (
    ClientClock,
    Clock,
    LineFields,
    LineParser,
    Template,
    Templates,
)

# Order-lock lines: lock.log or, in 5.3, filter.log (rocketmq.md §10.3, §13 no. 1). They show
# orderly members.
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


LOCK_TEMPLATES = Templates(
    (
        ("lock_refused", _REFUSED, _refused_5),
        ("lock_refused", _REFUSED_4_9, _refused_4_9),
        ("queue_locked", "RebalanceLockManager#tryLockBatch: ", _group_5),
        ("queue_locked", "tryLockBatch, message queue ", _group_4_9),
    )
)


def parse_lock_line(text: str, source: str, clock: Clock) -> tuple[Fact | Unread, ...]:
    """Read one line of lock.log or filter.log; unlocks add no information to the locks."""
    line = log_lines.server_line(text, clock)
    if line is None:
        return log_lines.headless(LOCK_TEMPLATES.words, text, source)
    return LOCK_TEMPLATES.read(line, text, source)


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


# pop.log: the passes of PopReviveService, and the causes of their delays (rocketmq.md §14).
_OF_QUEUE = "reviveQueueId="
_FINISHED = "revive finish,"
_SWITCHED_OFF = "skip revive topic because timerWheelEnable is false"
_TOO_SLOW = "stay too long, remove from reviveRequestMap, "
_GIVEN_UP = "rePut CK reach max times, drop it. "
_NEVER_READ = -1
"""The offset of a revive queue that has never had a checkpoint."""
LATE_STEPS_S = (10, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200, 14_400, 43_200, 86_400)
"""Lateness levels: a pass is late by at least one of these values, or by less; recorded healthy
passes are up to 4 s late.
"""


def _pass(message: str) -> LineFields:
    """Read ``reviveQueueId=N, revive finish,old offset is A, new offset is B, ckDelay=S``.

    From 5.0 to 5.1, there is no blank before ``revive``. ``ckDelay`` is how long ago the first
    checkpoint of the pass was due.
    """
    head, mark, rest = message.partition(_FINISHED)
    if not mark:
        return log_lines.NOTHING
    pieces = between(rest, "old offset is ", ", new offset is ", ", ckDelay=", "")
    queue = whole(head.removeprefix(_OF_QUEUE).rstrip(", "), INT_MAX)
    if pieces is None or queue is None:
        return None
    try:
        old, new = long_of(pieces[0], "offset"), long_of(pieces[1], "offset")
        late_s = long_of(pieces[2].strip(), "delay")
    except Unreadable:
        return None
    if old == new == _NEVER_READ and late_s < LATE_STEPS_S[0]:
        return log_lines.NOTHING
    steps = [step for step in LATE_STEPS_S if step <= late_s]
    least = steps[-1] if steps else 0
    return {"revive_queue": queue, "late_s": least, "stands": least > 0 and old == new}


def _of_revive_queue(message: str) -> LineFields:
    for reason, mark in (
        ("PUT_FAILED", "revive error, msg is"),
        ("PUT_FAILED", "revive error ,msg is"),
        ("FAILED", "revive error"),
        ("OFFSET_ILLEGAL", "OFFSET_ILLEGAL "),
    ):
        if mark in message:
            queue = whole(message.removeprefix(_OF_QUEUE).partition(",")[0], INT_MAX)
            return None if queue is None else {"reason": reason, "revive_queue": queue}
    return _no_message(message) if "can not get biz msg" in message else log_lines.NOTHING


def _no_message(message: str) -> LineFields:
    """Read a checkpoint whose message is missing; 5.3.1 states whether it is retried."""
    for marks in (("can not get biz msg, topic:", ", qid:"), ("biz msg topic is ", ", offset is ")):
        pieces = between(message[message.find(marks[0]) :], *marks, "")
        if pieces is not None and pieces[0]:
            again = "retry:false" not in pieces[1]
            return _trouble("MESSAGE_NOT_READ" if again else "MESSAGE_GONE", pieces[0])
    return None


def _trouble(reason: str, topic: str = "") -> dict[str, object]:
    return {"reason": reason, "topic": topic} if topic else {"reason": reason}


def _topic_first(reason: str, words: str) -> LineParser:
    """Return a reader of messages that begin with these words, followed by the topic and a
    comma.
    """

    def read(message: str) -> LineFields:
        topic, comma, _ = message.removeprefix(words).partition(", ")
        return _trouble(reason, topic) if comma and topic else None

    return read


def _always(reason: str) -> LineParser:
    return lambda _: _trouble(reason)


_KV = "PopConsumerService "
POP_TEMPLATES = Templates(
    (
        ("offset_corrected", _POP_MOVED, _pop_moved),
        ("revive_pass", _OF_QUEUE, _pass),
        ("revive_trouble", _OF_QUEUE, _of_revive_queue),
        ("revive_trouble", _SWITCHED_OFF, _always("SWITCHED_OFF")),
        ("revive_trouble", _TOO_SLOW, _topic_first("TOO_SLOW", _TOO_SLOW)),
        ("revive_trouble", _GIVEN_UP, _topic_first("GIVEN_UP", _GIVEN_UP)),
        # with popConsumerKVServiceEnable (from 5.3.3 on), another service does the reviving
        ("revive_trouble", f"{_KV}drop record, message may be lost", _always("GIVEN_UP")),
        ("revive_trouble", f"{_KV}revive error, message may be lost", _always("GIVEN_UP")),
        ("revive_trouble", f"{_KV}revive retry msg error", _always("PUT_FAILED")),
        ("revive_trouble", f"{_KV}revive error", _always("FAILED")),
    )
)
POP_WORDS = (
    *(words for words in POP_TEMPLATES.words if words != _OF_QUEUE),
    _FINISHED,
    "revive error",
    "OFFSET_ILLEGAL ",
    "can not get biz msg",
)
"""Most lines that begin with a revive queue have no facts; the others contain these words."""


def parse_pop_line(text: str, source: str, clock: Clock) -> tuple[Fact | Unread, ...]:
    """Read one line of pop.log."""
    line = log_lines.server_line(text, clock)
    if line is None:
        return log_lines.headless(POP_WORDS, text, source)
    return POP_TEMPLATES.read(line, text, source)


# Lines in broker.log and rocketmq_client.log about POP and QueryAssignment (rocketmq.md §14).
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
        message,
        _TIMED_OUT,
        " invisibleTime=",
        ", group=",
        " MessageQueue [topic=",
        ", brokerName=",
        "",
    )
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

    The line takes the time of the failed pop before it; if that is unknown, as at the beginning of
    a split, it yields no fact.
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

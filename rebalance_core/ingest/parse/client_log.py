"""rocketmq_client.log: strategies, commits, suspensions and failures, and the identity of a process
(rocketmq.md §10.5).
"""

from collections.abc import Callable

from rebalance_core.contracts.fact_declaration import PROCESS_ID
from rebalance_core.contracts.log_facts import LOG_FACTS
from rebalance_core.ingest.fact import Fact, Unread
from rebalance_core.ingest.parse import (
    failed_requests,
    java_numbers,
    java_text,
    lock_and_pop_logs,
    log_lines,
    pull_logs,
)
from rebalance_core.ingest.parse.failed_requests import EXCEPTIONS, LIST_FAILED
from rebalance_core.ingest.parse.go_and_cpp_logs import LANGUAGE, NO_BROKER, NO_OFFSET
from rebalance_core.ingest.parse.java_text import whole
from rebalance_core.ingest.parse.lock_and_pop_logs import FORBIDDEN, pop_forbidden
from rebalance_core.ingest.parse.log_lines import (
    ClientClock,
    LineFields,
    LogLine,
    Template,
    Templates,
    marked,
)
from rebalance_core.model.times import HEARTBEAT_MS, OFFSET_PERSIST_MS, ROUTE_POLL_MS

# Lines in a client's log about failures: members, strategies, heartbeats and pulls
# (rocketmq.md §13).
NO_LIST = ", get consumer id list failed"
PULL_FAILED = ("execute the pull request exception", "An error occurred in pull message process")
"""The line before a refused pull, whose exception's own line contains it."""
REJECTED = "[REJECTREQUEST]"
"""Part of the exception of a pull that is refused by a busy broker or an unreadable slave."""
BROADCAST = "] can not consume by broadcast way"
REBALANCE = "doRebalance, "
_NOT_LISTED = "[BUG] ConsumerGroup: "
_EXPIRED = "[BUG]doRebalance, "
_THREW = "allocate message queue exception. strategy name: "
_THREW_4_9 = "AllocateMessageQueueStrategy.allocate Exception. allocateMessageQueueStrategyName="
_HEARTBEAT = failed_requests.HEARTBEATS[0]
_FAILED = ("] failed", "] exception, because the broker not up")


def no_member_list(message: str) -> LineFields:
    """Read ``doRebalance, {group} {topic}, get consumer id list failed``."""
    pieces = java_text.between(message, REBALANCE, NO_LIST)
    words = pieces[0].split(" ") if pieces else []
    return log_lines.named(("group", "topic"), words) if len(words) == 2 else None


def _not_listed(message: str) -> LineFields:
    pieces = java_text.between(message, _NOT_LISTED, " The consumerId: ", " not in cidAll: [", "")
    fields = log_lines.named(("group", "client_id"), pieces)
    if fields is None or pieces is None:
        return None
    ids = pieces[2].rpartition("]")[0]
    return fields | {"listed": ids.count(", ") + 1 if ids else 0}


def _pull_expired(message: str) -> LineFields:
    """``[BUG]doRebalance, {group}, remove unnecessary mq, {queue}, because pull is pause, …``; in
    5.x, ``try remove …``.
    """
    if ", because pull is pause" not in message:
        return log_lines.NOTHING
    pieces = java_text.between(message, _EXPIRED, ", ", ", because pull is pause")
    queues = java_text.message_queues(pieces[1]) if pieces else []
    if not pieces or not pieces[0] or len(queues) != 1:
        return None
    topic, broker, queue_id = queues[0]
    return {"group": pieces[0], "topic": topic, "broker_name": broker, "queue_id": queue_id}


def _threw(message: str) -> LineFields:
    pieces = java_text.between(message, _THREW, ", ex: ", "")
    fields = log_lines.named(("strategy",), pieces)
    if fields is None or pieces is None:
        return None
    # an exception that is also the last argument is printed as a stack, and {} remains
    return fields | {"message": pieces[1].removeprefix("{}")}


def _threw_4_9(message: str) -> LineFields:
    fields = log_lines.named(("strategy",), [message.removeprefix(_THREW_4_9).strip()])
    return None if fields is None else fields | {"message": ""}


def _failed_heartbeat(message: str) -> LineFields:
    to = message[message.find(_HEARTBEAT) :]
    pieces = next(
        filter(None, (java_text.between(to, _HEARTBEAT, failed) for failed in _FAILED)), None
    )
    if pieces is None:
        return log_lines.NOTHING if "]" in to else None
    words = pieces[0].rsplit(" ", 2)
    return log_lines.named(("broker_name", "address"), words[::2]) if len(words) == 3 else None


def broadcast_refused(text: str, source: str, clock: ClientClock) -> tuple[Fact | Unread, ...]:
    """Read ``…CODE: 16 DESC: the consumer group[{}] can not consume by broadcast way``.

    The line has no time of its own but takes that of the failed pull before it, and yields no fact
    if that line is unknown, as at the beginning of a split.
    """
    before = text.partition(BROADCAST)[0]
    group = before.rpartition("consumer group[")[2]
    if not group or group == before:
        return (log_lines.not_read(text, source, BROADCAST),)
    failed, clock.failed = clock.failed, None
    if failed is None:
        return ()
    values = {"group": group}
    for topic, broker_name, _ in java_text.message_queues(failed.message):
        values |= {"topic": topic, "broker_name": broker_name}
    if failed.pid is not None:
        values["pid"] = failed.pid
    return (Fact("broadcast_refused", failed.at_ms, values, source),)


def pull_refused(text: str, source: str, clock: ClientClock) -> tuple[Fact | Unread, ...]:
    """Read ``…CODE: 2 DESC: [REJECTREQUEST]system busy, … BROKER: {address}``.

    The time is that of the failed pull before it. Lines without the address, which 4.9 does not
    print, yield no fact.
    """
    address = text.rpartition(" BROKER: ")[2].strip()
    failed, clock.failed = clock.failed, None
    if failed is None or ":" not in address or " " in address:
        return ()
    return (Fact("pull_refused", failed.at_ms, {"address": address}, source),)


def _no_broker(message: str) -> LineFields:
    """Read a Go client's line about a missing broker, as `Translator` writes it."""
    queues = java_text.message_queues(message)
    if len(queues) != 1:
        return None
    topic, broker, queue_id = queues[0]
    return {"topic": topic, "broker_name": broker, "queue_id": queue_id}


def _no_offset(message: str) -> LineFields:
    """Read a Go client's line, as `Translator` writes it."""
    group = message.removeprefix(NO_OFFSET).partition(" MessageQueue [")[0]
    fields = _no_broker(message)
    return None if fields is None or not group else {"group": group, **fields}


TROUBLE_TEMPLATES: tuple[Template, ...] = (
    ("no_broker", NO_BROKER, _no_broker),
    ("request_failed", failed_requests.FAILED, failed_requests.request_failed),
    ("nothing_committed", NO_OFFSET, _no_offset),
    ("not_in_member_list", _NOT_LISTED, _not_listed),
    ("pull_expired", _EXPIRED, _pull_expired),
    ("allocation_failed", _THREW, _threw),
    ("allocation_failed", _THREW_4_9, _threw_4_9),
    *(("heartbeat_failed", words, _failed_heartbeat) for words in failed_requests.HEARTBEATS),
)
TROUBLE_WORDS = (
    *(words for _, words, _ in TROUBLE_TEMPLATES),
    NO_LIST,
    *PULL_FAILED,
    LIST_FAILED,
    BROADCAST,
    REJECTED,
)


# rocketmq_client.log: strategies, commits, suspensions; the identity of a process
# (rocketmq.md §10.5).
_QUEUES_TELL = ("CONFIG", "MACHINE_ROOM")
_ALLOCATED = "rebalanced result changed. allocateMessageQueueStrategyName="
_UPDATE = " updateConsumeOffsetToBroker "
_PAUSE = "consumer was paused, execute pull request later. instanceName="
_NOTICE = "receive broker's notification["
_NOTIFIED = marked(
    ("address", "group"), _NOTICE, "], the consumer group: ", " changed, rebalance immediately"
)
# A line from a Go or C++ client, as `Translator` writes it.
_LANGUAGE = marked(("language", "client_id", "group"), LANGUAGE, ", clientId=", ", group=", "")
_MOVES = {"queue_taken": ", add a new mq, ", "queue_given_up": ", remove unnecessary mq, "}
_TRUNCATED = ", truncateMessageQueueNotMyTopic remove unnecessary mq, "


def _allocated(message: str) -> LineFields:
    pieces = java_text.between(
        message.removeprefix("client "),
        _ALLOCATED,
        ", group=",
        ", topic=",
        ", clientId=",
        ", mqAllSize=",
        "rebalanceResultSet=[",
        "",
    )
    fields = log_lines.named(("strategy", "group", "topic", "client_id"), pieces)
    if fields is None or pieces is None:
        return None
    if fields["strategy"].startswith(_QUEUES_TELL):
        return {**fields, "queues": [list(queue) for queue in java_text.message_queues(pieces[5])]}
    return fields


def _broker_allocated(message: str) -> LineFields:
    pieces = java_text.between(
        message,
        "broker " + _ALLOCATED,
        ", group=",
        ", topic=",
        ", clientId=",
        ", assignmentSet=",
        "",
    )
    fields = log_lines.named(("strategy", "group", "topic", "client_id"), pieces)
    if fields is None or pieces is None:
        return None
    modes = [mode for mode in ("POP", "PULL") if f"], Mode={mode}]" in pieces[4]]
    whole = bool(modes) and ", queueId=-1]" in pieces[4]
    return fields | {"mode": modes[0] if modes else None, "whole_brokers": whole}


def _committed(message: str) -> LineFields:
    """Read ``[persistAll] Group: … ClientId: … updateConsumeOffsetToBroker …``; 3.x has no tag."""
    statement = message[message.find("Group: ") :]
    pieces = java_text.between(statement, "Group: ", " ClientId: ", _UPDATE, "")
    if pieces is None:
        return None
    queues = java_text.message_queues(pieces[2])
    text = pieces[2].rpartition("] ")[2]
    offset = -1 if text == "-1" else whole(text, java_numbers.LONG_MAX)  # -1: nothing to commit yet
    if len(queues) != 1 or offset is None or not pieces[0]:
        return None
    topic, broker, queue_id = queues[0]
    return {
        "group": pieces[0],
        "client_id": pieces[1] or None,
        "topic": topic,
        "broker": broker,
        "queue_id": queue_id,
        "offset": offset,
    }


def _last_word(name: str) -> Callable[[str], LineFields]:
    def read(message: str) -> LineFields:
        return log_lines.named((name,), [message.rpartition(", ")[2].strip()])

    return read


def _left_broker(message: str) -> LineFields:
    pieces = java_text.between(
        message, "unregister client[Producer: ", " Consumer: ", "] from broker["
    )
    return None if pieces is None else {"group": pieces[1]}


def _order_lock(message: str) -> LineFields:
    group = message.partition(" MessageQueue [")[0].rpartition(" ")[2]
    return {"group": group} if group else None


def _created(message: str) -> LineFields:
    """``…, ClientID:{}, ClientConfig:ClientConfig{…}``; in 4.9, ``ClientConfig […]``. Default
    intervals are left out.
    """
    pieces = java_text.between(
        message[message.find(_CLIENT_ID) :], _CLIENT_ID, ", ClientConfig:", ""
    )
    if pieces is None or not pieces[0]:
        return None
    after = {name: pieces[1].partition(f" {name}=")[2] for name in _INTERVALS}
    intervals = {
        name: text[: text.find(",")] if "," in text else "" for name, text in after.items()
    }
    if all(intervals[name] in ("", str(usual)) for name, usual in _INTERVALS.items()):
        intervals = {}
    return {"client_id": pieces[0], **intervals}


_CREATED, _CLIENT_ID = "Created a new client Instance, ", "ClientID:"
_INTERVALS = {
    "pollNameServerInterval": ROUTE_POLL_MS,
    "heartbeatBrokerInterval": HEARTBEAT_MS,
    "persistConsumerOffsetInterval": OFFSET_PERSIST_MS,
}

TEMPLATES = Templates(
    (
        ("client_created", _CREATED, _created),
        ("committed", "[persistAll] Group: ", _committed),
        ("committed", "[persist] Group: ", _committed),
        ("committed", "Group: ", _committed),
        ("allocated", "client " + _ALLOCATED, _allocated),
        ("allocated", _ALLOCATED, _allocated),
        ("broker_allocated", "broker " + _ALLOCATED, _broker_allocated),
        ("client_language", LANGUAGE, _LANGUAGE),
        ("paused", _PAUSE, marked(("instance", "group"), _PAUSE, ", group=", "")),
        ("suspended", "suspend this consumer, ", _last_word("group")),
        ("resumed", "resume this consumer, ", _last_word("group")),
        ("notified", _NOTICE, _NOTIFIED),
        ("left_broker", "unregister client[Producer: ", _left_broker),
        ("order_lock", "message queue lock ", _order_lock),
        ("order_lock", "the message queue lock ", _order_lock),
        *TROUBLE_TEMPLATES,
        *pull_logs.PULL_TEMPLATES,
        *lock_and_pop_logs.CLIENT_TEMPLATES,
    )
)
HEARTBEAT = "HeartbeatData [clientID="
_HEADLESS_WORDS = (
    *TEMPLATES.words,
    HEARTBEAT,
    pull_logs.EXPIRED,
    _TRUNCATED,
    *TROUBLE_WORDS,
    *lock_and_pop_logs.CLIENT_WORDS,
)
WORDS = (*_HEADLESS_WORDS, *_MOVES.values(), *pull_logs.PASS_WORDS)
"""Every line with a fact contains one of these words; any application's log may contain
`EXCEPTIONS`.
"""


def parse_client_line(text: str, source: str, clock: ClientClock) -> tuple[Fact | Unread, ...]:
    """Read a line of a client's log; a heartbeat yields one fact per group."""
    line = log_lines.client_line(text, clock)
    if line is None:
        if BROADCAST in text:
            return broadcast_refused(text, source, clock)
        if REJECTED in text:
            return pull_refused(text, source, clock)
        if FORBIDDEN in text:
            return pop_forbidden(text, source, clock)
        if text.startswith(EXCEPTIONS):
            return failed_requests.exception_below(text, source, clock)
        return log_lines.headless(_HEADLESS_WORDS, text, source)
    message = line.message
    if message.startswith(PULL_FAILED) or failed_requests.may_have_a_reason(message):
        clock.failed = line
    if message.startswith(HEARTBEAT):
        facts = _heartbeat(line, text, source)
    elif message.startswith(REBALANCE):
        facts = _rebalance(line, text, source)
    elif message.startswith(pull_logs.EXPIRED):
        facts = (pull_logs.message_expired(line, text, source),)
    else:
        facts = TEMPLATES.read(line, text, source)
    if line.pid is None:
        return facts
    return tuple(_with_pid(fact, line.pid) for fact in facts)


def _with_pid(fact: Fact | Unread, pid: str) -> Fact | Unread:
    """Add the process, which shows whose fact it is, because all runs of a client append to one
    file.
    """
    if isinstance(fact, Unread) or not LOG_FACTS[fact.kind].with_pid:
        return fact
    return Fact(fact.kind, fact.at_ms, {**fact.values, PROCESS_ID: pid}, fact.source)


def _heartbeat(line: LogLine, text: str, source: str) -> tuple[Fact | Unread, ...]:
    pieces = java_text.between(
        line.message, HEARTBEAT, ", producerDataSet=", "consumerDataSet=[", ""
    )
    if pieces is None:
        return (log_lines.not_read(text, source, HEARTBEAT),)
    facts: list[Fact | Unread] = []
    for part in pieces[2].split("ConsumerData [")[1:]:
        fields = log_lines.with_fields(
            java_text.consumer_data("ConsumerData [" + part), client_id=pieces[0]
        )
        if fields is None:
            return (log_lines.not_read(text, source, HEARTBEAT),)
        facts.append(Fact("heartbeat", line.at_ms, fields, source))
    return tuple(facts)


def _rebalance(line: LogLine, text: str, source: str) -> tuple[Fact | Unread, ...]:
    if line.message.endswith(NO_LIST):
        fields = no_member_list(line.message)
        if fields is None:
            return (log_lines.not_read(text, source, NO_LIST),)
        return (Fact("no_member_list", line.at_ms, fields, source),)
    refused = pull_logs.start_refused(line.message)
    if refused is not None and refused is not log_lines.NOTHING:
        return (Fact("start_refused", line.at_ms, refused, source),)
    missing = pull_logs.topic_missing(line.message)
    if missing is not None and missing is not log_lines.NOTHING:
        return (Fact("topic_missing", line.at_ms, missing, source),)
    for kind, words in _MOVES.items():
        moved = java_text.between(line.message, REBALANCE, words, "")
        if moved is not None:
            queues = java_text.message_queues(moved[1])
            if len(queues) != 1 or not moved[0]:
                return ()  # torn: one sample is lost
            ((topic, broker, queue_id),) = queues
            values = {
                "group": moved[0],
                "topic": topic,
                "broker_name": broker,
                "queue_id": queue_id,
            }
            return (Fact(kind, line.at_ms, values, source),)
    pieces = java_text.between(line.message, REBALANCE, _TRUNCATED, "")
    if pieces is None:
        return ()
    queues = java_text.message_queues(pieces[1])
    if not queues or not pieces[0]:
        return (log_lines.not_read(text, source, REBALANCE),)
    fields = {"group": pieces[0], "topic": queues[0][0]}
    return (Fact("unsubscribed", line.at_ms, fields, source),)

"""RocketMQ's dashboard answers in JSON, as the mqadmin dump with the same content.

``consumer/consumerConnection.query`` and ``consumer/queryTopicByConsumer.query`` return in ``data``
the tables of consumerConnection and ``consumerProgress -s true``;
``consumer/consumerRunningInfo.query`` returns the file that consumerStatus writes for one client.
``errMsg`` with ``CODE: 206`` means that no member is online. Times are epoch milliseconds, so no
zone is needed.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rebalance_core.ingest.fact import (
    BAD_ENTRY,
    UNPARSABLE_LINE,
    Fact,
    Unread,
    Unreadable,
    shown,
    unread,
)
from rebalance_core.ingest.parse.client_properties import client_values
from rebalance_core.ingest.parse.command_output import NOT_ONLINE
from rebalance_core.ingest.parse.java_numbers import count_of, long_of, offset_of
from rebalance_core.ingest.parse.json_tables import (
    Entry,
    Results,
    entries,
    name_of,
    object_of,
    read_document,
)
from rebalance_core.ingest.parse.process_queues import QUEUE_LONGS, TIMES

NOT_A_ROW = Unreadable(UNPARSABLE_LINE, "is not a row of the table around it")
"""For a line of a table that was copied from the dashboard's page (`console_tables`)."""
_CODE = re.compile(r"\bCODE: *(\d+)")


def dashboard_answer(command: str, text: str, source: str) -> list[Fact | Unread] | None:
    """Return the facts in the command's dump, or None if the text is not such an answer.

    Args:
        command: the mqadmin command, from the file's name.
        text: the text of the file.
        source: its name.
    """
    read = _READERS.get(command)
    begins = text.lstrip("\ufeff \t\r\n")
    if read is None or not begins.startswith("{"):
        return None
    stated: list[bool] = []

    def parse(document: Mapping[str, object], name: str) -> Results:
        data = document.get("data") if "status" in document else document
        code = _CODE.search(str(document.get("errMsg") or ""))
        if command == "consumerConnection" and code and int(code[1]) == NOT_ONLINE:
            stated.append(True)
            yield Fact("no_members", None, {"code": NOT_ONLINE}, name)
        elif data:
            for piece in read(data, name):
                stated.append(True)
                yield piece

    results = read_document(text, source, parse)
    return results if stated else None


def _connection(data: Any, source: str) -> Results:
    """Read ``ConsumerConnection`` as JSON."""
    table = Entry(data, "data")
    if "connectionSet" not in data:
        return
    topics = table.mapping("subscriptionTable")
    group: dict[str, object] = {
        "subscriptions": tuple(
            (name_of(topic, "topic"), Entry(subscription, "subscription").text("subString") or "")
            for topic, subscription in topics.items()
        ),
        "consume_type": table.text("consumeType"),
        "message_model": table.text("messageModel"),
        "consume_from_where": table.text("consumeFromWhere"),
    }
    members = table.items("connectionSet")
    for member in members:
        if isinstance(member, str):
            yield unread(source, member, NOT_A_ROW)
            continue
        connection = Entry(member, "connection")
        values = {
            "client_id": name_of(connection.text("clientId"), "clientId"),
            "client_addr": name_of(connection.text("clientAddr"), "clientAddr").removeprefix("/"),
            "language": connection.text("language"),
            "version": connection.text("versionDesc") or _number(connection, "version"),
        }
        yield Fact("member", None, values | group, source)
    yield Fact("group_connection", None, {"members": len(members)} | group, source)


def _number(entry: Entry, name: str) -> str:
    number = entry.optional_count(name)
    return "" if number is None else str(number)


def _progress(data: Any, source: str) -> Results:
    """Read each topic's ``TopicConsumerInfo``, with its queues and their holders."""
    if not isinstance(data, list):
        raise Unreadable(BAD_ENTRY, f"data is {shown(data)}, not a list of topics")
    total, whole = 0, True
    for topic in data:
        info = Entry(topic, "topic")
        name = name_of(info.text("topic"), "topic")
        for queue in info.items("queueStatInfoList"):
            if isinstance(queue, str):
                yield unread(source, queue, NOT_A_ROW)
                whole = False
                continue
            entry = Entry(queue, f"queue of {name}")
            queue_id = entry.count("queueId")
            try:
                end, committed = (
                    offset_of(_long(queue, what), f"{what} of {name}, queue {queue_id}")
                    for what in ("brokerOffset", "consumerOffset")
                )
            except Unreadable as refusal:
                yield unread(source, shown(queue), refusal)
                whole = False
                continue
            holder = entry.text("clientInfo") or ""
            total += end - committed
            values = {
                "topic": name,
                "topic_truncated": False,
                "broker_name": name_of(entry.text("brokerName"), "brokerName"),
                "broker_name_truncated": False,
                "queue_id": queue_id,
                "broker_offset": end,
                "consumer_offset": committed,
                "diff": end - committed,
                "inflight": None,
                "last_time_ms": entry.optional_long("lastTimestamp") or None,
                "with_clients": "clientInfo" in queue,
                "client_ip": holder.partition("@")[0] or None,
                "client_id": holder if "@" in holder else None,
            }
            yield Fact("queue_progress", None, values, source)
    if whole:
        yield Fact("progress_total", None, {"name": "diff", "total": float(total)}, source)


def _long(queue: Any, name: str) -> int:
    return long_of(object_of(queue, "queue").get(name), name)


def _running(data: Any, source: str) -> Results:
    """Read ``ConsumerRunningInfo``, whose tables have queues as keys."""
    info = Entry(data, "data")
    if "properties" not in data:
        return
    properties = {str(key): str(value) for key, value in info.mapping("properties").items()}
    queues_told = {"queues_told": False}  # as for any manually copied answer
    yield Fact("client", None, client_values(properties) | queues_told, source)
    for subscription in info.items("subscriptionSet"):
        topic = Entry(subscription, "subscription")
        values = {
            "topic": name_of(topic.text("topic"), "topic"),
            "expression": topic.text("subString") or "",
            "class_filter": bool(topic.flag("classFilterMode")),
        }
        yield Fact("client_subscription", None, values, source)
    yield from entries(info.mapping("mqTable"), source, _of_queue(source, _pulled))
    yield from entries(info.mapping("mqPopTable"), source, _of_queue(source, _popped))


def _of_queue(
    source: str, read: Callable[[Any], tuple[str, dict[str, object]]]
) -> Callable[[Any, Any], Iterator[Fact]]:
    def fact(key: Any, value: Any) -> Iterator[Fact]:
        queue = Entry(dict(key) if isinstance(key, tuple) else key, "queue")
        kind, fields = read(value)
        number = queue.optional_long("queueId")
        any_queue = kind == "client_pop_queue" and number == -1
        values = {
            "topic": name_of(queue.text("topic"), "topic"),
            "broker_name": name_of(queue.text("brokerName"), "brokerName"),
            "queue_id": -1 if any_queue else count_of(number, "queueId"),
        }
        yield Fact(kind, None, values | fields, source)

    return fact


def _pulled(value: Any) -> tuple[str, dict[str, object]]:
    info = Entry(value, "mqTable")
    return "client_queue", {
        **{name: _long(value, key) for name, key in (QUEUE_LONGS | TIMES).items()},
        "cached_mib": info.optional_long("cachedMsgSizeInMiB"),
        "locked": bool(info.flag("locked")),
        "dropped": bool(info.flag("droped")),
    }


def _popped(value: Any) -> tuple[str, dict[str, object]]:
    info = Entry(value, "mqPopTable")
    return "client_pop_queue", {
        "wait_ack_count": _long(value, "waitAckCount"),
        "dropped": bool(info.flag("droped")),
        "last_pop_ms": _long(value, "lastPopTimestamp"),
    }


_READERS: dict[str, Callable[[Any, str], Results]] = {
    "consumerConnection": _connection,
    "consumerProgress": _progress,
    "consumerStatus": _running,
}

"""What one client says of itself: the file that ``mqadmin consumerStatus`` writes for each."""

import re
from collections.abc import Callable, Mapping
from datetime import tzinfo
from typing import Any

from rebalance_core.ingest.fact import UNPARSABLE_LINE, Fact, Unread, Unreadable, shown, unread
from rebalance_core.ingest.parse.command_output import (
    Line,
    cut_off,
    filled,
    foreign,
    packed_ms,
    read_lines,
    token_of,
    whole,
)
from rebalance_core.ingest.parse.java_text import PrintfRow, count_of, decimal_of, long_of
from rebalance_core.strategies import name_of_class

# ``ProcessQueueInfo [commitOffset=…, …]``: one queue in the process queue table of a client.

QUEUE_LONGS = {
    "commit_offset": "commitOffset",
    "cached_messages": "cachedMsgCount",
    "cached_min_offset": "cachedMsgMinOffset",
    "cached_max_offset": "cachedMsgMaxOffset",
    "try_unlock_times": "tryUnlockTimes",
}
_SIZE = "cachedMsgSizeInMiB"
TIMES = {
    "last_lock_ms": "lastLockTimestamp",
    "last_pull_ms": "lastPullTimestamp",
    "last_consume_ms": "lastConsumeTimestamp",
}


def queue_values(text: str, time_zone: tzinfo) -> dict[str, Any]:
    """Read ``ProcessQueueInfo.toString()``: see ``client_queue`` of `parse_running_info`.

    Times are printed by mqadmin, so in the local time of its machine, not of the client's.

    Raises:
        Unreadable: it is written otherwise.
    """
    fields = _fields(text, "ProcessQueueInfo [", "=")
    return {
        **{name: long_of(_field(fields, key), key) for name, key in QUEUE_LONGS.items()},
        "cached_mib": long_of(fields[_SIZE], _SIZE) if _SIZE in fields else None,
        **{name: packed_ms(_field(fields, key), time_zone) for name, key in TIMES.items()},
        "locked": _queue_flag(fields, "locked"),
        "dropped": _queue_flag(fields, "droped"),
    }


def pop_queue_values(text: str) -> dict[str, Any]:
    """Read ``PopProcessQueueInfo.toString()`` (5.x): see ``client_pop_queue``.

    Raises:
        Unreadable: it is written otherwise.
    """
    fields = _fields(text, "PopProcessQueueInfo [", ":")
    return {
        "wait_ack_count": long_of(_field(fields, "waitAckCount"), "waitAckCount"),
        "dropped": _queue_flag(fields, "droped"),
        "last_pop_ms": long_of(_field(fields, "lastPopTimestamp"), "lastPopTimestamp"),
    }


def _fields(text: str, prefix: str, separator: str) -> dict[str, str]:
    if not text.startswith(prefix) or not text.endswith("]"):
        raise Unreadable(UNPARSABLE_LINE, f"{shown(text)} is not {prefix}…]")
    parts = (part.partition(separator) for part in text[len(prefix) : -1].split(", "))
    return {name: value for name, _, value in parts}


def _field(fields: dict[str, str], name: str) -> str:
    if name not in fields:
        raise Unreadable(UNPARSABLE_LINE, f"{name} is missing")
    return fields[name]


def _queue_flag(fields: dict[str, str], name: str) -> bool:
    value = _field(fields, name)
    if value not in ("true", "false"):
        raise Unreadable(UNPARSABLE_LINE, f"{name} is {shown(value)}, not true or false")
    return value == "true"


# The properties of a running consumer, as ``consumerStatus`` prints them, in typed fields.
#
# Every bean field of the consumer is there under its Java name as its ``toString()``
# (``MixAll.object2Properties``), and a few more that start with ``PROP_``
# (``ConsumerRunningInfo``).

_TEXTS = {
    "consumer_group": "consumerGroup",
    "message_model": "messageModel",
    "consume_from_where": "consumeFromWhere",
    "consume_timestamp": "consumeTimestamp",
    "version": "PROP_CLIENT_VERSION",
    "client_ip": "clientIP",
    "instance_name": "instanceName",
    "namesrv_addr": "PROP_NAMESERVER_ADDR",
}
_LONGS = {
    "start_ms": "PROP_CONSUMER_START_TIMESTAMP",
    "pull_threshold_for_queue": "pullThresholdForQueue",
    "pull_threshold_size_for_queue": "pullThresholdSizeForQueue",
    "pull_threshold_for_topic": "pullThresholdForTopic",
    "pull_threshold_size_for_topic": "pullThresholdSizeForTopic",
}


def client_values(properties: Mapping[str, str]) -> dict[str, Any]:
    """Read the properties of a client; None for what this version or type does not print.

    Raises:
        Unreadable: a number is none.
    """
    texts = {name: properties.get(key) for name, key in _TEXTS.items()}
    longs = {
        name: long_of(properties[key], key) if key in properties else None
        for name, key in _LONGS.items()
    }
    return {
        **texts,
        **longs,
        "consumer_type": _consumer_type(properties),
        "strategy": _strategy(properties.get("allocateMessageQueueStrategy")),
        "ordered": _flag(properties.get("PROP_CONSUMEORDERLY")),
        "client_rebalance": _flag(properties.get("clientRebalance")),
        "properties": dict(properties),
    }


def _consumer_type(properties: Mapping[str, str]) -> str | None:
    if properties.get("PROP_CONSUME_TYPE") == "CONSUME_PASSIVELY":
        return "PUSH"
    if "defaultLitePullConsumerImpl" in properties:
        return "LITE_PULL"
    return "PULL" if properties.get("PROP_CONSUME_TYPE") == "CONSUME_ACTIVELY" else None


def _strategy(text: str | None) -> str | None:
    """``AVG`` for ``org.….AllocateMessageQueueAveragely@4659aa62``; parameters are not shown."""
    if text is None:
        return None
    java_class = text.partition("@")[0]
    return name_of_class(java_class) or java_class


def _flag(text: str | None) -> bool | None:
    return {"true": True, "false": False}.get(text or "")


# What one client says of itself: the file that ``mqadmin consumerStatus`` writes per client.
#
# Written by ``ConsumerRunningInfo.formatString``. The rows under ``#Consumer MQ Detail#`` are the
# process queue table: what the client owns at that moment, dropped queues and zombies included.

ANY_QUEUE = -1  # what a member pops where every queue of a broker is everybody's (rocketmq.md §2.8)
PROPERTIES = "#Consumer Properties#"
JSTACK = "#Consumer jstack#"

# Upstream's headers of other tables are 64 wide where their rows are 32 wide.
_QUEUE_ROW = PrintfRow("%-32s  %-32s  %-4s  %s")
_DETAIL = "#Consumer MQ Detail#"
_POP_DETAIL, _RATES_TITLE = "#Consumer Pop Detail#", "#Consumer RT&TPS#"
_USER_INFO = "#User Consume Info#"
_FIRST_PROPERTY = "consumeTimestamp"
"""Java prints it first: properties without it, and nothing else, were copied line by line."""
_SUBSCRIPTION = re.compile(r"[0-9]+ Topic: (\S+) +ClassFilter: (true|false) +SubExpression: ?(.*)")
_KEY_WIDTH = 40
_RATES = ("pull_rt", "pull_tps", "consume_rt", "consume_ok_tps", "consume_failed_tps")


def parse_running_info(lines: list[Line], source: str, time_zone: tzinfo) -> list[Fact | Unread]:
    """Read the lines of one client's file; one that is cut off is refused.

    The stacks at the end of a run with ``-s`` make no facts.

    Facts:
        client: the consumer, its properties: consumer_group, consumer_type (PUSH, LITE_PULL, PULL),
            strategy (name as getName() prints it; its own class when it is no strategy of
            RocketMQ), message_model, consume_from_where, consume_timestamp (yyyyMMddHHmmss in the
            client's local time), ordered, client_rebalance (False: the broker assigns), version,
            start_ms, client_ip and instance_name (5.x), namesrv_addr, pull_threshold_for_queue,
            pull_threshold_size_for_queue, pull_threshold_for_topic, pull_threshold_size_for_topic,
            properties (all, name to text), queues_told (the table of its queues is there as a
            whole: another follows it)
        client_subscription: a topic the client subscribes: topic, expression, class_filter
        client_offset: the commit offset once more: topic, broker_name, queue_id, commit_offset
        client_queue: a queue the client holds: topic, broker_name, queue_id, commit_offset,
            cached_messages, cached_min_offset, cached_max_offset, cached_mib (None: its version,
            3.x or an early 4.x, does not print it), locked (an order lock; 4.9 and broadcasting
            print it too), try_unlock_times, dropped, last_lock_ms, last_pull_ms, last_consume_ms
        client_pop_queue: a queue it pops (5.x): topic, broker_name, queue_id (-1: any of the
            broker's), wait_ack_count, dropped, last_pop_ms
        client_rates: speeds of one topic: topic, pull_rt, pull_tps, consume_rt, consume_ok_tps,
            consume_failed_tps, consume_failed_msgs (of the last hour)
        user_info: what the application lets the client say: key, value
    """
    client = _Client(time_zone)
    facts = read_lines(lines, client.read)
    return [*client.properties_fact(source), *facts, *client.cut(source, lines)]


class _Client:
    """The lines after a title are read as that title says."""

    def __init__(self, time_zone: tzinfo) -> None:
        self._time_zone = time_zone
        self._properties: dict[str, str] = {}
        self._titles: dict[str, Callable[[Line], Fact | None]] = {
            PROPERTIES: self._property,
            "#Consumer Subscription#": _subscription,
            "#Consumer Offset#": _offset,
            _DETAIL: self._queue,
            _POP_DETAIL: _pop_queue,
            _RATES_TITLE: _rates,
            _USER_INFO: _user_info,
            JSTACK: lambda line: None,
        }
        self._section: Callable[[Line], Fact | None] | None = None
        self._detail_row = _QUEUE_ROW
        self._queues_told = False
        self._read: list[str] = []

    def properties_fact(self, source: str) -> list[Fact | Unread]:
        """The `client` fact, if there were properties."""
        if not self._properties:
            return []
        try:
            values = client_values(self._properties) | {"queues_told": self._queues_told}
            return [Fact("client", None, values, source)]
        except Unreadable as refusal:
            return [unread(source, repr(self._properties), refusal)]

    def cut(self, source: str, lines: list[Line]) -> list[Unread]:
        """The refusal of an answer that ends before its last section: 4.x has no section on POP and
        ends with the rates, 5.x with what the application says.
        """
        last = _USER_INFO if _POP_DETAIL in self._read else _RATES_TITLE
        copied = self._read == [PROPERTIES] and self._properties
        if last in self._read or (copied and _FIRST_PROPERTY not in self._properties):
            return []
        return [cut_off(source, lines, last)]

    def read(self, line: Line) -> Fact | None:
        title = line.text.rstrip()
        if title in self._titles:
            self._read.append(title)
            self._queues_told |= self._section == self._titles[_DETAIL]
            self._section = self._titles[title]
            return None
        if self._section is None:
            raise foreign(line, "consumerStatus")
        # The header of a table; a key or a topic cannot start with '#'.
        if not title.startswith("#Topic "):
            return self._section(line)
        if self._section == self._titles[_DETAIL]:
            # 64 wide since 4.9.3, 32 before, and so are its rows.
            width = max(0, title.find("#Broker Name") - len("  "))
            self._detail_row = PrintfRow(f"%-{width}s  %-32s  %-4s  %s")
        return None

    def _property(self, line: Line) -> None:
        key, value = _pair(whole(line))
        self._properties[key] = value

    def _queue(self, line: Line) -> Fact:
        queue, info = _queue_of(self._detail_row, line)
        return Fact("client_queue", None, queue | queue_values(info, self._time_zone), line.source)


def _pair(text: str) -> tuple[str, str]:
    """Key and value of ``"%-40s: %s"``."""
    end = text.find(":", _KEY_WIDTH)
    if end < 0 or text[end + 1 : end + 2].strip(" "):
        raise Unreadable(UNPARSABLE_LINE, "it is not a key, filled up to 40, ': ' and a value")
    return filled(text[:end].strip(), "key"), text[end + 2 :]


def _subscription(line: Line) -> Fact:
    match = _SUBSCRIPTION.fullmatch(whole(line))
    if match is None:
        raise foreign(line, "a subscription")
    values = {"topic": match[1], "expression": match[3], "class_filter": match[2] == "true"}
    return Fact("client_subscription", None, values, line.source)


def _offset(line: Line) -> Fact:
    queue, offset = _queue_of(_QUEUE_ROW, line)
    values = queue | {"commit_offset": long_of(offset, "commit offset")}
    return Fact("client_offset", None, values, line.source)


def _pop_queue(line: Line) -> Fact:
    queue, info = _queue_of(_QUEUE_ROW, line, any_queue=True)
    return Fact("client_pop_queue", None, queue | pop_queue_values(info), line.source)


def _queue_of(row: PrintfRow, line: Line, *, any_queue: bool = False) -> tuple[dict[str, Any], str]:
    topic, broker_name, queue_id, rest = row.read(whole(line))
    every = any_queue and queue_id == str(ANY_QUEUE)
    queue = {
        "topic": token_of(topic, "topic"),
        "broker_name": filled(broker_name, "broker name"),
        "queue_id": ANY_QUEUE if every else count_of(queue_id, "queue id"),
    }
    return queue, rest


def _rates(line: Line) -> Fact:
    parts = whole(line).rsplit(None, 6)
    if len(parts) != 7:
        raise foreign(line, "#Consumer RT&TPS#")
    rates = {name: decimal_of(text, name) for name, text in zip(_RATES, parts[1:6], strict=True)}
    failed = {"consume_failed_msgs": long_of(parts[6], "failed messages")}
    topic = {"topic": token_of(parts[0].strip(), "topic")}
    return Fact("client_rates", None, topic | rates | failed, line.source)


def _user_info(line: Line) -> Fact:
    key, value = _pair(whole(line))
    return Fact("user_info", None, {"key": key, "value": value}, line.source)

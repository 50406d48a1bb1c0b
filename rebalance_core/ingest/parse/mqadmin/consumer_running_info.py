"""What one client says of itself: the file that ``mqadmin consumerStatus`` writes per client.

Written by ``ConsumerRunningInfo.formatString``. The rows under ``#Consumer MQ Detail#`` are the
process queue table: what the client owns at that moment, dropped queues and zombies included.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import tzinfo
from typing import Any

from rebalance_core.ingest.fact import Fact, Unread
from rebalance_core.ingest.parse.mqadmin.command_output import Line, foreign, read_lines, whole
from rebalance_core.ingest.parse.mqadmin.running_info.consumer_properties import (
    CLIENT_FIELDS,
    client_values,
)
from rebalance_core.ingest.parse.mqadmin.running_info.process_queue_info import (
    POP_FIELDS,
    QUEUE_FIELDS,
    pop_queue_values,
    queue_values,
)
from rebalance_core.ingest.parse.text.java_numbers import count_of, decimal_of, long_of
from rebalance_core.ingest.parse.text.printf_rows import PrintfRow
from rebalance_core.ingest.parse.text.table_names import filled, token_of
from rebalance_core.ingest.refusal import UNPARSABLE_LINE, Unreadable, unread

KINDS = {
    "client": (
        f"the consumer, its properties: {CLIENT_FIELDS}, queues_told (the table of its queues is "
        "there as a whole: another follows it)"
    ),
    "client_subscription": "a topic the client subscribes: topic, expression, class_filter",
    "client_offset": "the commit offset once more: topic, broker_name, queue_id, commit_offset",
    "client_queue": f"a queue the client holds: topic, broker_name, queue_id, {QUEUE_FIELDS}",
    "client_pop_queue": (
        "a queue it pops (5.x): topic, broker_name, queue_id (-1: any of the broker's), "
        f"{POP_FIELDS}"
    ),
    "client_rates": (
        "speeds of one topic: topic, pull_rt, pull_tps, consume_rt, consume_ok_tps, "
        "consume_failed_tps, consume_failed_msgs (of the last hour)"
    ),
    "user_info": "what the application lets the client say: key, value",
}

ANY_QUEUE = -1  # what a member pops where every queue of a broker is everybody's (rocketmq.md §2.8)
PROPERTIES = "#Consumer Properties#"
JSTACK = "#Consumer jstack#"

# Upstream's headers of other tables are 64 wide where their rows are 32 wide.
_QUEUE_ROW = PrintfRow("%-32s  %-32s  %-4s  %s")
_DETAIL = "#Consumer MQ Detail#"
_SUBSCRIPTION = re.compile(r"[0-9]+ Topic: (\S+) +ClassFilter: (true|false) +SubExpression: ?(.*)")
_KEY_WIDTH = 40
_RATES = ("pull_rt", "pull_tps", "consume_rt", "consume_ok_tps", "consume_failed_tps")


def parse_running_info(lines: list[Line], source: str, time_zone: tzinfo) -> list[Fact | Unread]:
    """The facts of `KINDS` from the lines of one client's file.

    The stacks at the end of a run with ``-s`` make no facts.
    """
    client = _Client(time_zone)
    facts = read_lines(lines, client.read)
    return [*client.properties_fact(source), *facts]


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
            "#Consumer Pop Detail#": _pop_queue,
            "#Consumer RT&TPS#": _rates,
            "#User Consume Info#": _user_info,
            JSTACK: lambda line: None,
        }
        self._section: Callable[[Line], Fact | None] | None = None
        self._detail_row = _QUEUE_ROW
        self._queues_told = False

    def properties_fact(self, source: str) -> list[Fact | Unread]:
        """The `client` fact, if there were properties."""
        if not self._properties:
            return []
        try:
            values = client_values(self._properties) | {"queues_told": self._queues_told}
            return [Fact("client", None, values, source)]
        except Unreadable as refusal:
            return [unread(source, repr(self._properties), refusal)]

    def read(self, line: Line) -> Fact | None:
        title = line.text.rstrip()
        if title in self._titles:
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

"""``mqadmin topicRoute``: where the queues of a topic are, as one name server knows it.

Printed by ``TopicRouteSubCommand``: fastjson of a ``TopicRouteData``, or a table with ``-l``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rebalance_core.ingest.fact import Fact, Unread
from rebalance_core.ingest.parse.mqadmin import command_output
from rebalance_core.ingest.parse.mqadmin.command_output import (
    Line,
    foreign,
    read_lines,
    read_output,
    whole,
)
from rebalance_core.ingest.parse.text.java_numbers import count_of
from rebalance_core.ingest.parse.text.json_tables import (
    Entry,
    Results,
    entries,
    name_of,
    read_document,
)
from rebalance_core.ingest.parse.text.printf_rows import PrintfRow
from rebalance_core.ingest.parse.text.table_names import filled
from rebalance_core.ingest.refusal import BAD_ENTRY, UNPARSABLE_LINE, WRONG_FILE, Unreadable, shown

KINDS = {
    "route_queues": (
        "queues of the topic asked for on one broker: broker_name, read_queue_nums, "
        "write_queue_nums, perm"
    ),
    "route_broker": (
        "a broker that has the topic: cluster, broker_name, addresses (broker id to address; id 0 "
        "is the master), acting (5.x: its slaves may act as master)"
    ),
    "order_topic_conf": "the queues of an ordered topic, from the name server: conf",
    "queue_mapping": "a static topic (5.x): broker_name, mapping (as printed)",
    **command_output.KINDS,
}

_NAMES = PrintfRow("%-45s %-32s %s")


def parse_topic_route(text: str, source: str) -> list[Fact | Unread]:
    """The facts of `KINDS` from the output of one run, of either form."""
    output = read_output(text, source)
    lines = output.lines
    if lines and not lines[0].text.lstrip().startswith("{"):
        return [*read_lines(lines, _Table().read), *output.others]
    document = "\n".join(line.text for line in lines)
    facts = read_document(document, source, _parse) if lines else []
    return [*facts, *output.others]


def _parse(document: Mapping[str, Any], source: str) -> Results:
    route = Entry(document, "the route")
    if "queueDatas" not in document or "brokerDatas" not in document:
        raise Unreadable(WRONG_FILE, f"{shown(document)} is no TopicRouteData")

    def queues(_: int, value: Any) -> Iterator[Fact]:
        entry = Entry(value, "an entry of queueDatas")
        values = {
            "broker_name": name_of(entry.text("brokerName"), "brokerName"),
            "read_queue_nums": entry.count("readQueueNums"),
            "write_queue_nums": entry.count("writeQueueNums"),
            "perm": entry.count("perm"),
        }
        yield Fact("route_queues", None, values, source)

    def broker(_: int, value: Any) -> Iterator[Fact]:
        entry = Entry(value, "an entry of brokerDatas")
        values: dict[str, Any] = {
            "cluster": entry.text("cluster"),
            "broker_name": name_of(entry.text("brokerName"), "brokerName"),
            "addresses": dict(map(_address, entry.mapping("brokerAddrs").items())),
        }
        if (acting := entry.flag("enableActingMaster")) is not None:
            values["acting"] = acting
        yield Fact("route_broker", None, values, source)

    def mapping(broker_name: str, value: Any) -> Iterator[Fact]:
        values = {"broker_name": name_of(broker_name, "a broker name"), "mapping": value}
        yield Fact("queue_mapping", None, values, source)

    yield from entries(dict(enumerate(route.items("queueDatas"))), source, queues)
    yield from entries(dict(enumerate(route.items("brokerDatas"))), source, broker)
    yield from entries(route.mapping("topicQueueMappingByBroker"), source, mapping)
    if (conf := route.text("orderTopicConf")) is not None:
        yield Fact("order_topic_conf", None, {"conf": conf}, source)


def _address(item: tuple[Any, Any]) -> tuple[int, str]:
    broker_id, address = item
    if not isinstance(address, str):
        raise Unreadable(BAD_ENTRY, f"the address {shown(address)} is no text")
    return count_of(broker_id, "broker id"), address


class _Table:
    """``"%-45s %-32s %-50s %-10s %-11s %-5s"``; the addresses are a Java map with spaces in it."""

    def __init__(self) -> None:
        self._headed = False
        self._row: dict[str, Any] = {}

    def read(self, line: Line) -> Fact | None:
        text = line.text
        if text.startswith("#ClusterName") and "#ReadQueue" in text:
            self._headed = True
            return None
        if not self._headed or text.startswith("#"):
            raise foreign(line, "topicRoute")
        if text.startswith("Total:") or not text.strip("- "):
            return None
        return _row(line)


def _row(line: Line) -> Fact:
    names, brace, rest = whole(line).partition("{")
    parts = rest.rsplit(None, 3)
    if not brace or len(parts) != 4 or not parts[0].rstrip().endswith("}"):
        raise Unreadable(UNPARSABLE_LINE, "it is not cluster, broker, {addresses}, queues, perm")
    _, broker_name, _ = _NAMES.read(names)
    values = {
        "broker_name": filled(broker_name, "broker name"),
        "read_queue_nums": count_of(parts[1], "read queues"),
        "write_queue_nums": count_of(parts[2], "write queues"),
        "perm": count_of(parts[3], "perm"),
    }
    return Fact("route_queues", None, values, line.source)

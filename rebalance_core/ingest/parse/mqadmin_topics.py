"""``mqadmin`` on brokers, their settings, topics, where their queues are, and their offsets."""

from collections.abc import Iterator, Mapping
from datetime import UTC, tzinfo
from typing import Any

from rebalance_core.ingest import fact
from rebalance_core.ingest.fact import Fact, Unread, Unreadable
from rebalance_core.ingest.parse.command_output import (
    Line,
    dashed_ms,
    filled,
    foreign,
    is_truncated,
    read_lines,
    read_output,
    token_of,
    whole,
)
from rebalance_core.ingest.parse.java_text import PrintfRow, count_of, decimal_of, long_of
from rebalance_core.ingest.parse.json_tables import Entry, Results, entries, name_of, read_document

# ``mqadmin clusterList``: the brokers that the name server knows.
#
# Printed by ``ClusterListSubCommand``. Each release moves its load columns; only the first five
# and the last are read.

_TOTALS_ROW = PrintfRow("%-16s  %-32s %14s %14s %14s %s")


def parse_cluster_list(text: str, source: str) -> list[Fact | Unread]:
    """Read the output of one run, with or without ``-m``.

    Facts:
        broker: a broker process that the name server knows: cluster, broker_name, broker_id (0 is
            the master), addr, version (None: it did not answer), activated (5.x)
        broker_totals: messages of a broker (-m): cluster, broker_name, in_yesterday, out_yesterday,
            in_today, out_today
    """
    output = read_output(text, source)
    return [*read_lines(output.lines, _BrokerTable().read), *output.others]


class _BrokerTable:
    """The rows after a header are read as that header says."""

    def __init__(self) -> None:
        self._brokers: PrintfRow | None = None
        self._has_activated = False
        self._totals = False

    def read(self, line: Line) -> Fact | None:
        text = line.text
        if text.startswith("#Cluster Name") and "#Broker Name" in text:
            self._head(text)
            return None
        if text.startswith("#") or not (self._brokers or self._totals):
            raise foreign(line, "clusterList")
        return _totals(line) if self._brokers is None else self._broker(line, self._brokers)

    def _head(self, text: str) -> None:
        # 4.9 gives the cluster 16 columns and 5.x 22; the header is padded like the rows.
        width = text.index("#Broker Name") - len("  ")
        self._totals = "#InTotalYest" in text
        self._has_activated = "#ACTIVATED" in text
        row = PrintfRow(f"%-{width}s  %-22s  %-4s  %-22s %-16s %s")
        self._brokers = None if self._totals else row

    def _broker(self, line: Line, row: PrintfRow) -> Fact:
        cluster, broker_name, broker_id, addr, version, load = row.read(whole(line))
        values = {
            "cluster": filled(cluster, "cluster"),
            "broker_name": filled(broker_name, "broker name"),
            "broker_id": count_of(broker_id, "#BID"),
            "addr": token_of(addr, "address"),
            "version": token_of(version, "version") if version else None,
            "activated": _activated(load) if self._has_activated else None,
        }
        return Fact("broker", None, values, line.source)


def _activated(load: str) -> bool:
    word = load.rpartition(" ")[2]
    if word not in ("true", "false"):
        raise Unreadable(
            fact.UNPARSABLE_LINE, f"#ACTIVATED is {fact.shown(word)}, not true or false"
        )
    return word == "true"


def _totals(line: Line) -> Fact:
    cluster, broker_name, *counts = _TOTALS_ROW.read(whole(line))
    names = ("in_yesterday", "out_yesterday", "in_today", "out_today")
    values = {"cluster": filled(cluster, "cluster"), "broker_name": filled(broker_name, "broker")}
    numbers = {name: long_of(text, name) for name, text in zip(names, counts, strict=True)}
    return Fact("broker_totals", None, values | numbers, line.source)


# ``mqadmin getBrokerConfig`` and ``getNamesrvConfig``: the settings of servers that run.
#
# Both print ``============<address>============`` and a line ``%-50s= %s`` for each property, of
# a whole cluster (-c) ``Master: <address>`` and ``My Master: <address>=====Slave: <address>``.

SETTINGS = (
    "brokerName", "brokerId", "slaveReadEnable", "enableSlaveActingMaster", "supportActingMaster",
    "notifyConsumerIdsChangedEnable", "realTimeNotifyConsumerChange",
)  # fmt: skip
"""What is taken of several hundred properties."""

_RULE = "============"
_SLAVE = "=====Slave: "
_NO_MASTER = "NO_MASTER"
"""CommandUtil.NO_MASTER_PLACEHOLDER: stands for the address of a master that is not there."""


def parse_server_config(text: str, source: str) -> list[Fact | Unread]:
    """Read the output of one run.

    Facts:
        server_settings: a broker or name server that answered: address, and settings, those of
            SETTINGS that it has, by name
    """
    output = read_output(text, source)
    results: list[Fact | Unread] = []
    settings: dict[str, str] | None = None
    for line in output.lines:
        try:
            if line.text.startswith(_RULE):
                settings = {}
                address = _broker_address(line)
                if address != _NO_MASTER:
                    values = {"address": address, "settings": settings}
                    results.append(Fact("server_settings", None, values, line.source))
            elif settings is None or "=" not in line.text:
                if not line.text.endswith("has no config property!"):
                    raise foreign(line, "getBrokerConfig")
            else:
                name, _, value = whole(line).partition("=")
                if name.strip() in SETTINGS:
                    settings[name.strip()] = value.strip()
        except Unreadable as refusal:
            results.append(fact.unread(line.source, line.text, refusal))
    return [*results, *output.others]


def _broker_address(line: Line) -> str:
    head = whole(line).strip().removeprefix(_RULE).removesuffix(_RULE)
    return token_of(head.partition(_SLAVE)[2] or head.removeprefix("Master: "), "address")


# ``mqadmin topicList``: the topics of all clusters, with ``-c`` also who consumes them.
#
# Printed by ``TopicListSubCommand``. The groups are those with an offset or a subscription; 5.3.3
# answers with names of topics among them (``ConsumerManager.queryTopicConsumeByWho``), so a group
# here is a hint, never a member.

_LISTED_TOPIC = PrintfRow("%-20s  %-64s  %s")
_NAME_WIDTH = 64


def parse_topic_list(text: str, source: str) -> list[Fact | Unread]:
    """Read the output of one run, with or without ``-c``.

    Facts:
        topic: a topic: cluster (None without -c, or unknown), topic, topic_truncated (the name
            fills its column and may have been truncated), consumer_group (None without -c, or
            none), consumer_group_truncated
    """
    output = read_output(text, source)
    headed = False

    def read(line: Line) -> Fact | None:
        nonlocal headed
        if line.text.startswith("#Cluster Name") and "#Consumer Group" in line.text:
            headed = True
            return None
        if line.text.startswith("#"):
            raise foreign(line, "topicList")
        cluster, topic, group = (
            _LISTED_TOPIC.read(whole(line)) if headed else ("", whole(line).strip(), "")
        )
        values = {
            "cluster": cluster or None,
            "topic": token_of(topic, "topic"),
            "topic_truncated": headed and is_truncated(topic, _NAME_WIDTH),
            "consumer_group": token_of(group, "group") if group else None,
            "consumer_group_truncated": is_truncated(group, _NAME_WIDTH),
        }
        return Fact("topic", None, values, line.source)

    return [*read_lines(output.lines, read), *output.others]


# ``mqadmin topicRoute``: where the queues of a topic are, as one name server knows it.
#
# Printed by ``TopicRouteSubCommand``: fastjson of a ``TopicRouteData``, or a table with ``-l``.

_NAMES = PrintfRow("%-45s %-32s %s")


def parse_topic_route(text: str, source: str) -> list[Fact | Unread]:
    """Read the output of one run, of either form.

    Facts:
        route_queues: queues of the topic asked for on one broker: broker_name, read_queue_nums,
            write_queue_nums, perm
        route_broker: a broker that has the topic: cluster, broker_name, addresses (broker id to
            address; id 0 is the master), acting (5.x: its slaves may act as master)
        order_topic_conf: the queues of an ordered topic, from the name server: conf
        queue_mapping: a static topic (5.x): broker_name, mapping (as printed)
    """
    output = read_output(text, source)
    lines = output.lines
    if lines and not lines[0].text.lstrip().startswith("{"):
        return [*read_lines(lines, _RouteTable().read), *output.others]
    document = "\n".join(line.text for line in lines)
    facts = read_document(document, source, _parse) if lines else []
    return [*facts, *output.others]


def _parse(document: Mapping[str, Any], source: str) -> Results:
    route = Entry(document, "the route")
    if "queueDatas" not in document or "brokerDatas" not in document:
        raise Unreadable(fact.WRONG_FILE, f"{fact.shown(document)} is no TopicRouteData")

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
        raise Unreadable(fact.BAD_ENTRY, f"the address {fact.shown(address)} is no text")
    return count_of(broker_id, "broker id"), address


class _RouteTable:
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
        raise Unreadable(
            fact.UNPARSABLE_LINE, "it is not cluster, broker, {addresses}, queues, perm"
        )
    _, broker_name, _ = _NAMES.read(names)
    values = {
        "broker_name": filled(broker_name, "broker name"),
        "read_queue_nums": count_of(parts[1], "read queues"),
        "write_queue_nums": count_of(parts[2], "write queues"),
        "perm": count_of(parts[3], "perm"),
    }
    return Fact("route_queues", None, values, line.source)


# ``mqadmin topicStatus``: the lowest and highest offset of every queue of a topic.
#
# Printed by ``TopicStatusSubCommand``; queues 0 to the larger of read and write queue number.

_QUEUE_STATUS = PrintfRow("%-32s  %-4s  %-20s  %-20s    %s")
_BROKER_WIDTH = 32
_TPS = "Topic Put TPS: "


def parse_topic_status(text: str, source: str, *, time_zone: tzinfo = UTC) -> list[Fact | Unread]:
    """Read the output of one run.

    Facts:
        queue_offsets: a queue of the topic asked for: broker_name, broker_name_truncated (the name
            fills its column and may have been truncated), queue_id, min_offset, max_offset,
            last_updated_ms (None: never written, or its last message is gone)
        topic_put_tps: messages per second put into the topic (5.x): tps

    Args:
        text: the output.
        source: the name of its file.
        time_zone: of the machine that ran mqadmin; the last column is in its local time.
    """
    output = read_output(text, source)
    headed = False

    def read(line: Line) -> Fact | None:
        nonlocal headed
        if line.text.startswith("#Broker Name") and "#Min Offset" in line.text:
            headed = True
            return None
        if line.text.startswith(_TPS):
            tps = decimal_of(whole(line)[len(_TPS) :].strip(), "Topic Put TPS")
            return Fact("topic_put_tps", None, {"tps": tps}, line.source)
        if not headed or line.text.startswith("#"):
            raise foreign(line, "topicStatus")
        return _queue(line, time_zone)

    return [*read_lines(output.lines, read), *output.others]


def _queue(line: Line, time_zone: tzinfo) -> Fact:
    broker_name, queue_id, min_offset, max_offset, updated = _QUEUE_STATUS.read(whole(line))
    values = {
        "broker_name": filled(broker_name, "broker name"),
        "broker_name_truncated": is_truncated(broker_name, _BROKER_WIDTH),
        "queue_id": count_of(queue_id, "queue id"),
        "min_offset": long_of(min_offset, "min offset"),
        "max_offset": long_of(max_offset, "max offset"),
        "last_updated_ms": dashed_ms(updated, time_zone) if updated else None,
    }
    return Fact("queue_offsets", None, values, line.source)

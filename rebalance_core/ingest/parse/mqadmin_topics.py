"""``mqadmin`` on brokers, their settings, topics, where their queues are, and their offsets."""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, tzinfo
from typing import Any

from rebalance_core.ingest import fact
from rebalance_core.ingest.fact import Fact, Unread, Unreadable, unread
from rebalance_core.ingest.parse.broker_log import RETENTION
from rebalance_core.ingest.parse.command_output import (
    Line,
    dashed_ms,
    filled,
    foreign,
    is_truncated,
    marked,
    read_lines,
    read_output,
    stray,
    token_of,
    unheaded,
    whole,
)
from rebalance_core.ingest.parse.headed_tables import BROKER, WORD, WORDS, Column, HeadedTable
from rebalance_core.ingest.parse.java_text import INT_MAX, PrintfRow, count_of, decimal_of, long_of
from rebalance_core.ingest.parse.java_text import whole as whole_number
from rebalance_core.ingest.parse.json_tables import Entry, Results, entries, name_of, read_document
from rebalance_core.ingest.parse.torn_rows import refused_rows

# ``mqadmin clusterList``: the brokers that the name server knows.
#
# Printed by ``ClusterListSubCommand``. Each release moves its load columns; only the first five
# and the last are read.

_TOTALS_ROW = PrintfRow("%-16s  %-32s %14s %14s %14s %s")
_TOTALS = dict.fromkeys(
    (
        "Cluster Name",
        "Broker Name",
        "InTotalYest",
        "OutTotalYest",
        "InTotalToday",
        "OutTotalToday",
    ),
    Column(WORDS),
)


VERSION = r"(?:V\d+_\d+_\d+\w*|(?!V)[A-Za-z]\w*)?"
"""As in consumerConnection; empty of a broker that did not answer."""
_BROKERS = {
    "Cluster Name": Column(WORDS, what="a cluster"),
    "Broker Name": Column(WORDS, what="the name of a broker"),
    "BID": Column(r"\d{1,19}", code=fact.BAD_NUMBER, what="the id of a broker"),
    "Addr": Column(WORD, 1, what="an address"),
    "Version": Column(VERSION, 1, what="a version"),
}
_ACTIVATED = "ACTIVATED"
_ADDRESS = re.compile(r"\S:\d{1,5}(?=\s)")


def parse_cluster_list(text: str, source: str) -> list[Fact | Unread]:
    """Read the output of one run, with or without ``-m``.

    Facts:
        broker: a broker process that the name server knows: cluster, broker_name, broker_id (0 is
            the master), addr, version (None: it did not answer), activated (5.x), partial (only
            there, and true, where other rows could not be read)
        broker_totals: messages of a broker (-m): cluster, broker_name, in_yesterday, out_yesterday,
            in_today, out_today
    """
    output = read_output(text, source)
    table = _BrokerTable()
    results = read_lines(output.lines, table.read)
    if not table.headed:
        results = list(unheaded(results, output.others))
    return marked([*results, *output.others])


class _BrokerTable:
    """Reads the rows after a header by the columns of that header."""

    def __init__(self) -> None:
        self._brokers: HeadedTable | None = None
        self._totals = False

    @property
    def headed(self) -> bool:
        """True if the output has a header."""
        return self._totals or self._brokers is not None

    def read(self, line: Line) -> Fact | None:
        if line.text.lstrip().startswith("#"):
            self._head(line)
            return None
        if not self.headed:
            raise stray(line)
        return _totals(line) if self._brokers is None else self._broker(line, self._brokers)

    def _head(self, line: Line) -> None:
        totals = HeadedTable(line.text, _TOTALS).has(*_TOTALS)
        brokers = HeadedTable(line.text, _BROKERS)
        if not totals and not brokers.has(*_BROKERS):
            raise foreign(line, "clusterList")
        self._totals, self._brokers = totals, None if totals else brokers

    def _broker(self, line: Line, table: HeadedTable) -> Fact:
        cells = table.read(whole(line))
        if len(_ADDRESS.findall(line.text)) > 1:
            table.refuse()
            raise Unreadable(fact.UNPARSABLE_LINE, "it holds two rows")
        try:
            activated = _activated(line.text) if table.titles[-1] == _ACTIVATED else None
        except Unreadable:
            table.refuse()
            raise
        values = {
            "cluster": cells["Cluster Name"],
            "broker_name": cells["Broker Name"],
            "broker_id": count_of(cells["BID"], "#BID"),
            "addr": cells["Addr"],
            "version": cells["Version"] or None,
            "activated": activated,
        }
        return Fact("broker", None, values, line.source)


def _activated(load: str) -> bool:
    word = load.split()[-1]
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
    return Fact("broker_totals", None, {**values, **numbers}, line.source)


# ``mqadmin getBrokerConfig`` and ``getNamesrvConfig``: the settings of servers that run.
#
# Both print ``============<address>============`` and a line ``%-50s= %s`` for each property, of
# a whole cluster (-c) ``Master: <address>`` and ``My Master: <address>=====Slave: <address>``.

SETTINGS = (
    "brokerName", "brokerId", "slaveReadEnable", "enableSlaveActingMaster", "supportActingMaster",
    "notifyConsumerIdsChangedEnable", "realTimeNotifyConsumerChange", RETENTION,
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
    for line in output.readable:
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
                    settings[name.strip()] = _setting(name.strip(), value.strip())
        except Unreadable as refusal:
            results.append(fact.unread(line.source, line.text, refusal))
    return [*results, *output.others]


def _setting(name: str, value: str) -> str:
    """Return the value of a broker setting, once checked.

    Raises:
        Unreadable: it was cut: a switch is neither true nor false, or a number has no digits.
    """
    if name == RETENTION and whole_number(value, INT_MAX) is None:
        raise Unreadable(fact.BAD_NUMBER, f"{name} is {fact.shown(value)}, not a number of hours")
    if name.endswith(("Enable", "Master", "Change")) and value not in ("true", "false"):
        raise Unreadable(fact.UNPARSABLE_LINE, f"{name} is {fact.shown(value)}, not true or false")
    return value


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


def _number(gap: int = 2) -> Column:
    return Column(r"-?[0-9]{1,19}", gap, fact.BAD_NUMBER, "a whole number of 64 bits")


_QUEUES = {
    "ClusterName": Column(r".*?", 1, what="a cluster"),
    "BrokerName": Column(WORDS, 1, what="the name of a broker"),
    "BrokerAddrs": Column(r"\{[^{}]*\}", 1, what="addresses by broker id"),
    "ReadQueue": Column(r"[0-9]+", 1, what="a number of queues"),
    "WriteQueue": Column(r"[0-9]+", 1, what="a number of queues"),
    "Perm": Column(r"[0-9]+", 1, what="a perm"),
}


def parse_topic_route(text: str, source: str) -> list[Fact | Unread]:
    """Read the output of one run, of either form.

    Facts:
        route_queues: queues of the topic asked for on one broker: broker_name, read_queue_nums,
            write_queue_nums, perm; as all facts of the route with partial (true) if others could
            not be read
        route_broker: a broker that has the topic: cluster, broker_name, addresses (broker id to
            address; id 0 is the master), acting (5.x: its slaves may act as master)
        order_topic_conf: the queues of an ordered topic, from the name server: conf
        queue_mapping: a static topic (5.x): broker_name, mapping (as printed)
    """
    output = read_output(text, source)
    begin = next((n for n, line in enumerate(output.readable) if line.text.lstrip()[:1] in "{#"), 0)
    lines = output.readable[begin:]
    before = [unread(line.source, line.text, stray(line)) for line in output.readable[:begin]]
    if lines and not lines[0].text.lstrip().startswith("{"):
        table = _RouteTable()
        results = read_lines(lines, table.read)
        facts = results if table.headed else list(unheaded(results, output.others))
        return marked([*before, *facts, *output.others])
    document = "\n".join(line.text for line in lines)
    facts = read_document(document, source, _parse) if lines else []
    return marked([*before, *facts, *output.others])


def _parse(document: Mapping[str, object], source: str) -> Results:
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
        values: dict[str, object] = {
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


def _address(item: tuple[Any, Any]) -> tuple[str, str]:
    broker_id, address = item
    if not isinstance(address, str):
        raise Unreadable(fact.BAD_ENTRY, f"the address {fact.shown(address)} is no text")
    return str(count_of(broker_id, "broker id")), address


class _RouteTable:
    """``-l``: a row a broker; the addresses are a Java map with spaces in it."""

    def __init__(self) -> None:
        self._table: HeadedTable | None = None
        self._ended = False

    @property
    def headed(self) -> bool:
        """True if the header was there."""
        return self._table is not None

    def read(self, line: Line) -> Fact | None:
        text = line.text.strip()
        if text.startswith("#"):
            table = HeadedTable(line.text, _QUEUES)
            if not table.has(*_QUEUES):
                raise foreign(line, "topicRoute")
            self._table = table
            return None
        if self._table is None or self._ended:
            raise stray(line)
        if text.startswith("Total:") or not text.strip("-"):
            self._ended = text.startswith("Total:")
            return None
        cells = self._table.read(whole(line))
        values = {
            "broker_name": cells["BrokerName"],
            "read_queue_nums": count_of(cells["ReadQueue"], "read queues"),
            "write_queue_nums": count_of(cells["WriteQueue"], "write queues"),
            "perm": count_of(cells["Perm"], "perm"),
        }
        return Fact("route_queues", None, values, line.source)


# ``mqadmin topicStatus``: the lowest and highest offset of every queue of a topic.
#
# Printed by ``TopicStatusSubCommand``; queues 0 to the larger of read and write queue number.

_STATUS = {
    "Broker Name": Column(BROKER, what="the name of a broker"),
    "QID": _number(),
    "Min Offset": _number(),
    "Max Offset": _number(4),
}
_UPDATED = "Last Updated"
_TIME = Column(
    r"(?:[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(?:,[0-9]{3})?)?",
    1,
    fact.BAD_TIME,
    "a time as mqadmin prints it",
)
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
    table: HeadedTable | None = None

    def read(line: Line) -> Fact | None:
        nonlocal table
        if line.text.lstrip().startswith("#"):
            headed = HeadedTable(line.text, _STATUS | {_UPDATED: _TIME})
            if not headed.has(*_STATUS):
                raise foreign(line, "topicStatus")
            table = headed
            return None
        if line.text.startswith(_TPS):
            tps = decimal_of(whole(line)[len(_TPS) :].strip(), "Topic Put TPS")
            return Fact("topic_put_tps", None, {"tps": tps}, line.source)
        if table is None:
            raise stray(line)
        return _queue(line, table, time_zone)

    results = read_lines(output.lines, read)
    if table is not None and not table.padded:
        results = refused_rows(results, "queue_offsets", ("broker_name",), output.lines)
    return marked([*(results if table else unheaded(results, output.others)), *output.others])


def _queue(line: Line, table: HeadedTable, time_zone: tzinfo) -> Fact:
    cells = table.read(whole(line))
    updated = cells.get(_UPDATED, "")
    lowest, highest = cells["Min Offset"], cells["Max Offset"]
    if not (updated or lowest == highest or line.text.endswith(" ") or not table.has(_UPDATED)):
        table.refuse()
        raise Unreadable(fact.UNPARSABLE_LINE, "the row may end inside its offsets")
    values = {
        "broker_name": cells["Broker Name"],
        "broker_name_truncated": is_truncated(cells["Broker Name"], _BROKER_WIDTH),
        "queue_id": count_of(cells["QID"], "queue id"),
        "min_offset": long_of(lowest, "min offset"),
        "max_offset": long_of(highest, "max offset"),
        "last_updated_ms": dashed_ms(updated, time_zone) if updated else None,
    }
    return Fact("queue_offsets", None, values, line.source)

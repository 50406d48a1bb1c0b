"""``mqadmin topicRoute``: the locations of a topic's queues, as known to one name server."""

from collections.abc import Iterator, Mapping
from typing import Any

from rebalance_core.ingest import fact
from rebalance_core.ingest.fact import Fact, Unread, Unreadable, unread
from rebalance_core.ingest.parse.command_output import (
    Line,
    foreign,
    marked,
    read_lines,
    read_output,
    stray,
    unheaded,
    whole,
)
from rebalance_core.ingest.parse.headed_tables import WORDS, Column, HeadedTable
from rebalance_core.ingest.parse.java_numbers import count_of
from rebalance_core.ingest.parse.json_tables import Entry, Results, entries, name_of, read_document


def number_column(gap: int = 2) -> Column:
    """Return a column of whole numbers, preceded by at least `gap` blanks."""
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
    """Read the output of one run, in either form.

    Facts:
        route_queues: queues of the queried topic on one broker: broker_name, read_queue_nums,
            write_queue_nums, perm; like all facts of the route, with partial (true) if others could
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
    """``-l``: one row per broker; the addresses are a Java map that contains spaces."""

    def __init__(self) -> None:
        self._table: HeadedTable | None = None
        self._ended = False

    @property
    def headed(self) -> bool:
        """True if the header was present."""
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

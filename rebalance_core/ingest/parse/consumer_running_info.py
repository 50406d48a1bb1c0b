"""A client's own description: the file that ``mqadmin consumerStatus`` writes for each client."""

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import tzinfo

from rebalance_core.ingest.fact import (
    BAD_NUMBER,
    UNPARSABLE_LINE,
    Fact,
    Unread,
    Unreadable,
    unread,
)
from rebalance_core.ingest.parse.client_properties import client_values
from rebalance_core.ingest.parse.column_names import filled, token_of
from rebalance_core.ingest.parse.command_output import (
    PARTIAL,
    Line,
    cut_off,
    foreign,
    read_lines,
    stray,
    whole,
)
from rebalance_core.ingest.parse.headed_tables import BROKER, WORD, Column, HeadedTable
from rebalance_core.ingest.parse.java_numbers import count_of, decimal_of, long_of
from rebalance_core.ingest.parse.process_queues import pop_queue_values, queue_values

ANY_QUEUE = -1  # a member pops this if all queues of a broker are shared (rocketmq.md §2.8)
PROPERTIES = "#Consumer Properties#"
JSTACK = "#Consumer jstack#"

# Upstream's headers for other tables are 64 wide although their rows are 32 wide.
_QUEUE = {
    "Topic": Column(WORD, what="a topic"),
    "Broker Name": Column(BROKER, what="the name of a broker"),
    "QID": Column(r"-?[0-9]{1,10}", code=BAD_NUMBER, what="the id of a queue"),
}
_INFO = {
    "ProcessQueueInfo": Column(r"(?:Pop)?ProcessQueueInfo \[[^\[\]]*\]", what="all of its fields")
}
_OFFSET = {"Consumer Offset": Column(r"-?[0-9]{1,19}", code=BAD_NUMBER, what="an offset")}


def _queues(what: str) -> str:
    """Return a header, padded like the rows, for a table of queues that has none."""
    return f"{'#Topic':<32}  {'#Broker Name':<32}  {'#QID':<4}  #{what}"


_DETAIL = "#Consumer MQ Detail#"
_POP_DETAIL, _RATES_TITLE = "#Consumer Pop Detail#", "#Consumer RT&TPS#"
_USER_INFO = "#User Consume Info#"
_FIRST_PROPERTY = "consumeTimestamp"
"""Java prints this line first, so properties without it were copied line by line."""
_SUBSCRIPTION = re.compile(
    r"[0-9]+ +Topic: +(\S+) +ClassFilter: +(true|false) +SubExpression: ?(.*)"
)
_KEY_WIDTH = 40
_KEY = re.compile(r"\s*([\w.$-]+)\s*:(?: (.*))?")
"""A key and its value with collapsed padding; no Java key contains a space or colon."""
_RATES = ("pull_rt", "pull_tps", "consume_rt", "consume_ok_tps", "consume_failed_tps")


def parse_running_info(lines: list[Line], source: str, time_zone: tzinfo) -> list[Fact | Unread]:
    """Read the lines of one client's file; a truncated file is refused.

    The stacks at the end of a run with ``-s`` yield no facts.

    Facts:
        client: the consumer's properties: consumer_group, consumer_type (PUSH, LITE_PULL, PULL),
            strategy (its name from getName(), or its class if it is not one of RocketMQ's),
            message_model, consume_from_where, consume_timestamp (yyyyMMddHHmmss in the client's
            local time), ordered, client_rebalance (False: the broker assigns), version, start_ms,
            client_ip and instance_name (5.x), namesrv_addr, pull_threshold_for_queue,
            pull_threshold_size_for_queue, pull_threshold_for_topic, pull_threshold_size_for_topic,
            properties (all, name to text), queues_told (the table of its queues is complete:
            another follows it, and all its rows were read), partial (present, and true, only if
            topics may be missing)
        client_subscription: a topic the client subscribes to: topic, expression, class_filter,
            partial (present, and true, only if others may be missing)
        client_offset: the commit offset again: topic, broker_name, queue_id, commit_offset
        client_queue: a queue the client holds: topic, broker_name, queue_id, commit_offset,
            cached_messages, cached_min_offset, cached_max_offset, cached_mib (None if its version,
            3.x or an early 4.x, does not print it), locked (an order lock; 4.9 and broadcasting
            print it too), try_unlock_times, dropped, last_lock_ms, last_pull_ms, last_consume_ms
        client_pop_queue: a queue it pops (5.x): topic, broker_name, queue_id (-1: any of the
            broker's), wait_ack_count, dropped, last_pop_ms
        client_rates: rates for one topic: topic, pull_rt, pull_tps, consume_rt, consume_ok_tps,
            consume_failed_tps, consume_failed_msgs (of the last hour)
        user_info: values provided by the application: key, value
    """
    client = _Client(time_zone)
    facts = read_lines(lines, client.read)
    if client.torn_subscriptions:
        facts = [_others_missing(piece) for piece in facts]
    return [*client.properties_fact(source), *facts, *client.cut(source, lines)]


def _others_missing(piece: Fact | Unread) -> Fact | Unread:
    if isinstance(piece, Unread) or piece.kind != "client_subscription":
        return piece
    return replace(piece, values={**piece.values, PARTIAL: True})


_PADDING = re.compile(r"\S {3,}\S")
_SUBSCRIPTIONS = "#Consumer Subscription#"
_OFFSETS = "#Consumer Offset#"


class _Client:
    """The lines after a title are read as that title requires."""

    def __init__(self, time_zone: tzinfo) -> None:
        self._time_zone = time_zone
        self._properties: dict[str, str] = {}
        self._readers: dict[str, Callable[[Line], Fact | None]] = {
            PROPERTIES: self._property,
            _SUBSCRIPTIONS: _subscription,
            _OFFSETS: self._offset,
            _DETAIL: self._queue,
            _POP_DETAIL: self._pop_queue,
            _RATES_TITLE: _rates,
            _USER_INFO: _user_info,
            JSTACK: lambda line: None,
        }
        self._narrow = self._table = HeadedTable(_queues("ProcessQueueInfo"), _QUEUE | _INFO)
        self._read: list[str] = []
        self._torn: set[str] = set()

    @property
    def torn_subscriptions(self) -> bool:
        """True if the client may have more subscriptions than were read."""
        return not self._whole(_SUBSCRIPTIONS)

    def _whole(self, title: str) -> bool:
        """Return True if another section follows this one and all its lines were read."""
        return title in self._read[:-1] and title not in self._torn

    @property
    def _shows_queues(self) -> bool:
        """True if all the queues that the client pulls and pops were read; 4.x prints none of the
        latter.
        """
        return self._whole(_DETAIL) and (_POP_DETAIL not in self._read or self._whole(_POP_DETAIL))

    def properties_fact(self, source: str) -> list[Fact | Unread]:
        """Return the `client` fact if there were properties."""
        if not self._properties:
            return []
        try:
            values = client_values(self._properties) | {"queues_told": self._shows_queues}
            if self.torn_subscriptions:
                values[PARTIAL] = True
            return [Fact("client", None, values, source)]
        except Unreadable as refusal:
            return [unread(source, repr(self._properties), refusal)]

    def cut(self, source: str, lines: list[Line]) -> list[Unread]:
        """Return the refusal of an answer that ends before its last section: 4.x has no section for
        POP and ends with the rates, 5.x ends with the application's own text.
        """
        last = _USER_INFO if _POP_DETAIL in self._read else _RATES_TITLE
        copied = self._read == [PROPERTIES] and self._properties
        if last in self._read or (copied and _FIRST_PROPERTY not in self._properties):
            return []
        return [cut_off(source, lines, last)]

    def read(self, line: Line) -> Fact | None:
        title = line.text.strip()
        if title in self._readers:
            what = _OFFSET if title == _OFFSETS else _INFO
            self._narrow = self._table = HeadedTable(_queues(next(iter(what))), _QUEUE | what)
            self._enter(title)
            return None
        if not self._read:
            raise stray(line)
        try:
            # The header of a table; a key or a topic cannot start with '#'.
            if title.startswith("#Topic"):
                self._head(line)
                return None
            return self._readers[self._read[-1]](line)
        except Unreadable:
            self._torn.add(self._read[-1])
            raise

    def _enter(self, title: str) -> None:
        """Begin a section.

        Raises:
            Unreadable: Upstream prints it before one already read, so lines were sorted or mixed,
                and it is unknown whether rows belong to the title above them.
        """
        order = [*self._readers]
        is_behind = any(order.index(other) >= order.index(title) for other in self._read)
        self._read.append(title)
        if is_behind:
            self._torn |= self._readers.keys()
            why = "the sections are not in the order in which mqadmin prints them"
            raise Unreadable(UNPARSABLE_LINE, why)

    def _head(self, line: Line) -> None:
        columns = _QUEUE | (_OFFSET if self._read[-1] == _OFFSETS else _INFO)
        table = HeadedTable(whole(line), columns)
        if any(map(_PADDING.search, table.titles)):
            raise Unreadable(UNPARSABLE_LINE, "rows follow the header on its line")
        if table.has(*columns):
            self._table = table

    def _property(self, line: Line) -> None:
        key, value = _pair(whole(line))
        self._properties[key] = value

    def _queue(self, line: Line) -> Fact:
        queue, info = self._queue_of(line, "ProcessQueueInfo")
        return Fact("client_queue", None, queue | queue_values(info, self._time_zone), line.source)

    def _pop_queue(self, line: Line) -> Fact:
        queue, info = self._queue_of(line, "ProcessQueueInfo", any_queue=True)
        return Fact("client_pop_queue", None, queue | pop_queue_values(info), line.source)

    def _offset(self, line: Line) -> Fact:
        queue, offset = self._queue_of(line, "Consumer Offset")
        values = queue | {"commit_offset": long_of(offset, "commit offset")}
        return Fact("client_offset", None, values, line.source)

    def _cells(self, text: str) -> dict[str, str]:
        """Return the values of a row, which in some tables are not as wide as the header's
        titles.
        """
        try:
            return self._table.read(text)
        except Unreadable:
            if self._narrow is self._table:
                raise
        return self._narrow.read(text)

    def _queue_of(
        self, line: Line, what: str, *, any_queue: bool = False
    ) -> tuple[dict[str, object], str]:
        cells = self._cells(whole(line))
        every = any_queue and cells["QID"] == str(ANY_QUEUE)
        queue = {
            "topic": cells["Topic"],
            "broker_name": cells["Broker Name"],
            "queue_id": ANY_QUEUE if every else count_of(cells["QID"], "queue id"),
        }
        return queue, cells[what]


def _pair(text: str) -> tuple[str, str]:
    """Return the key and value of ``"%-40s: %s"``."""
    end = text.find(":", _KEY_WIDTH)
    if end >= 0 and not text[end + 1 : end + 2].strip(" "):
        return filled(text[:end].strip(), "key"), text[end + 2 :]
    if match := _KEY.fullmatch(text):
        return match[1], match[2] or ""
    raise Unreadable(UNPARSABLE_LINE, "it is not a key padded to 40 characters, ': ' and a value")


def _subscription(line: Line) -> Fact:
    match = _SUBSCRIPTION.fullmatch(whole(line).strip())
    if match is None or " Topic: " in match[3]:
        raise foreign(line, "a subscription")
    values = {"topic": match[1], "expression": match[3], "class_filter": match[2] == "true"}
    return Fact("client_subscription", None, values, line.source)


def _rates(line: Line) -> Fact:
    parts = whole(line).rsplit(None, 6)
    if len(parts) != 7:
        raise foreign(line, "#Consumer RT&TPS#")
    rates = {name: decimal_of(text, name) for name, text in zip(_RATES, parts[1:6], strict=True)}
    failed = {"consume_failed_msgs": long_of(parts[6], "failed messages")}
    topic = {"topic": token_of(parts[0].strip(), "topic")}
    return Fact("client_rates", None, {**topic, **rates, **failed}, line.source)


def _user_info(line: Line) -> Fact:
    key, value = _pair(whole(line))
    return Fact("user_info", None, {"key": key, "value": value}, line.source)

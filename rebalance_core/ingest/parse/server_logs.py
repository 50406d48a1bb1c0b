"""Logs of name servers and proxies."""

from dataclasses import replace

from rebalance_core.ingest.fact import Fact, Stated, Unread
from rebalance_core.ingest.parse import broker_log, log_lines
from rebalance_core.ingest.parse.broker_log import GROUP_TEMPLATES
from rebalance_core.ingest.parse.java_text import between, queue_data
from rebalance_core.ingest.parse.log_lines import (
    Clock,
    LineFields,
    LineParser,
    LogLine,
    ServerClock,
    Templates,
    marked,
)
from rebalance_core.model.times import MINUTE_MS

# namesrv.log: brokers that register, leave, are disconnected or expire (rocketmq.md §10.4).
_REMOVED = "unregisterBroker, remove name from brokerAddrTable OK, "
_REMOVED_TOO = "unregisterBroker, remove name from clusterAddrTable OK, "
_REPLICA_REMOVED = "unregisterBroker, remove addr from brokerAddrTable OK, "


def _registered(message: str) -> LineFields:
    """4.9 prints the address, 5.0 ``BrokerAddrInfo [clusterName=…, brokerAddr=…]``, 5.1 and later
    the same as ``BrokerIdentityInfo […]``. With braces, an embedded controller assigned an id.
    """
    if message.startswith("new broker registered, BrokerIdentityInfo{"):
        return log_lines.NOTHING
    pieces = between(message, "new broker registered, ", " HA")
    fields = _address(pieces[0]) if pieces else None
    if fields is None or pieces is None:
        return None
    cluster = pieces[0].partition(" [clusterName=")[2].partition(", ")[0]
    return {**fields, "cluster": cluster} if cluster else fields


def _address(text: str) -> LineFields:
    """Return the address, which has brackets of its own if it is an IPv6 address."""
    rendered = text.removeprefix("BrokerIdentityInfo").removeprefix("BrokerAddrInfo")
    pieces = between(rendered, " [clusterName=", ", brokerAddr=", "")
    address = pieces[1].removesuffix("]") if pieces else text
    return {"address": address} if ":" in address else None


def _named(message: str) -> LineFields:
    pieces = between(
        message, "cluster [", "] brokerName [", "] master address change from ", " to ", ""
    )
    if pieces is None:
        return None
    fields = log_lines.named(("broker", "address"), [pieces[1], pieces[3]])
    return {**fields, "cluster": pieces[0]} if fields and pieces[0] else fields


def _repeated(message: str) -> bool:
    _, _, change = message.partition("] master address change from ")
    old, _, new = change.partition(" to ")
    return old == new


def _replica(message: str) -> LineFields:
    return _address(message.removeprefix(_REPLICA_REMOVED))


def _replica_4_9(message: str) -> LineFields:
    """``remove brokerAddr[<id>, <address>] from brokerAddrTable, because channel destroyed``."""
    pieces = between(message, "remove brokerAddr[", ", ", "] from ")
    return None if pieces is None else _address(pieces[1])


def _topic_registered(message: str) -> LineFields:
    pieces = between(message, "new topic registered, ", " QueueData [")
    data = queue_data(message[message.find("QueueData [") :])
    return None if pieces is None or data is None else data | {"topic": pieces[0]}


def _topic_route(message: str) -> LineFields:
    pieces = between(message, "topic changed, ", " OLD: ", " NEW: ", "")
    if pieces is None:
        return None
    old, new = queue_data(pieces[1]), queue_data(pieces[2])
    return None if old is None or new is None else new | {"topic": pieces[0], "old": old}


def _expired(message: str) -> LineFields:
    text, _, _ = message.removeprefix("The broker channel expired, ").rpartition(" ")
    return _address(text)


def _property(message: str) -> LineFields:
    name, _, value = message.partition("=")
    return {"name": name, "value": value} if value else log_lines.NOTHING


_PROPERTY, _STARTS = "supportActingMaster=", "kvConfigPath="
_STOPS = "shutdown hook was invoked"
"""What it prints when it starts and ends also appears in other lines; a line without a time is not
RocketMQ's.
"""
NAMESRV_TEMPLATES = Templates(
    (
        ("broker_registered", "new broker registered, ", _registered),
        ("broker_address", "cluster [", _named),
        # each of these has a twin for clusterAddrTable, a second record: one may be dropped
        ("broker_removed", _REMOVED, marked(("broker",), _REMOVED, "")),
        ("broker_removed", _REMOVED_TOO, marked(("broker",), _REMOVED_TOO, "")),
        ("broker_removed", "remove brokerName[", marked(("broker",), "remove brokerName[", "]")),
        ("replica_removed", _REPLICA_REMOVED, _replica),
        ("replica_removed", "remove brokerAddr[", _replica_4_9),
        ("broker_channel_closed", "the broker's channel destroyed, ", lambda message: {}),
        ("topic_registered", "new topic registered, ", _topic_registered),
        ("topic_route", "topic changed, ", _topic_route),
        ("broker_expired", "The broker channel expired, ", _expired),
        ("name_server_property", _PROPERTY, _property),
        ("name_server_starting", _STARTS, lambda message: {}),
        ("name_server_stopping", _STOPS, lambda message: {}),
    )
)
_HEADLESS_WORDS = tuple(
    words for words in NAMESRV_TEMPLATES.words if words not in (_PROPERTY, _STARTS, _STOPS)
)


def parse_namesrv_line(text: str, source: str, clock: Clock) -> tuple[Fact | Unread, ...]:
    """Read one line of namesrv.log."""
    line = log_lines.server_line(text, clock)
    if line is None:
        return log_lines.headless(_HEADLESS_WORDS, text, source)
    results = NAMESRV_TEMPLATES.read(line, text, source)
    if line.message.startswith("cluster [") and _repeated(line.message):
        facts = (piece for piece in results if isinstance(piece, Stated))
        return tuple(replace(piece, kind="broker_known") for piece in facts) or results
    return results


# A proxy's broker.log and proxy.log: its members, in the brokers' words (rocketmq.md §14).
_MODE = '"proxyMode":"'
_OPEN = ", extendAttribute="
_CLOSE = ", lastUpdateTimestamp="
"""What follows the attribute of a ``RemoteChannel``, whose JSON may span several lines; the first
line that contains it is the last one.
"""
_MEMBERS = ("consumer_connected", "consumer_left", "consumer_closed", "consumer_expired")
_GROUPS = ("group_topic", "group_emptied")


class ProxyClock(ServerClock):
    """The clock of a proxy's log.

    Attributes:
        unfinished: a line whose JSON continues on the next lines, with its text and source.
        last_ms: the time of the last line with a time.
        alive_minute: the minute of the last `proxy_alive`.
    """

    def __init__(self) -> None:
        super().__init__()
        self.unfinished: tuple[LogLine, str, str] | None = None
        self.last_ms: int | None = None
        self.alive_minute: int | None = None


def _proxied(read: LineParser) -> LineParser:
    """Return the parser without connections that belong to the surrounding broker rather than a
    proxy.
    """

    def member(message: str) -> LineFields:
        fields = read(message)
        return (
            log_lines.NOTHING
            if fields and "local" in fields and "protocol" not in fields
            else fields
        )

    return member


def _changed(read: LineParser) -> LineParser:
    """Return the parser for a heartbeat that proxies report; a line with only a version is
    noise.
    """

    def change(message: str) -> LineFields:
        fields = read(message)
        return (
            log_lines.NOTHING if fields and "version" in fields and "old" not in fields else fields
        )

    return change


_STARTING = (
    "Current configuration: {",
    "Try to start service thread:RebalanceService started:false",
)
PROXY_TEMPLATES = Templates(
    (
        *((k, words, _proxied(r)) for k, words, r in broker_log.TEMPLATES if k in _MEMBERS),
        *((k, words, r) for k, words, r in GROUP_TEMPLATES if k in _GROUPS),
        *(
            (k, words, _changed(r))
            for k, words, r in GROUP_TEMPLATES
            if k == "subscription_changed"
        ),
        *(("proxy_starting", words, lambda message: {}) for words in _STARTING),
    )
)
PROXY_WORDS = (*PROXY_TEMPLATES.words, _MODE, _CLOSE)


def parse_proxy_line(text: str, source: str, clock: ProxyClock) -> tuple[Fact | Unread, ...]:
    """Read a line of a proxy's log; an entry of several lines is read at its last one."""
    line = log_lines.server_line(text, clock)
    if line is None:
        return _continued(text, source, clock)
    clock.last_ms = line.at_ms
    lost = _lost(clock)
    if not line.message.startswith(PROXY_TEMPLATES.words):
        return lost
    alive = _alive(line, source, clock)
    if _OPEN in line.message and _CLOSE not in line.message:
        clock.unfinished = (line, text, source)
        return lost + alive
    return lost + alive + PROXY_TEMPLATES.read(line, text, source)


def _alive(line: LogLine, source: str, clock: ProxyClock) -> tuple[Fact, ...]:
    minute = line.at_ms // MINUTE_MS
    if minute == clock.alive_minute:
        return ()
    clock.alive_minute = minute
    return (Fact("proxy_alive", line.at_ms, {}, source),)


def _continued(text: str, source: str, clock: ProxyClock) -> tuple[Fact | Unread, ...]:
    if clock.unfinished is None:
        return _mode(text, source, clock)
    if _CLOSE not in text:
        return log_lines.NOT_OURS
    line, begun, where = clock.unfinished
    clock.unfinished = None
    whole = LogLine(line.at_ms, line.message + text.strip())
    results = PROXY_TEMPLATES.read(whole, begun + text, where)
    return tuple(
        replace(piece, earlier=True) if isinstance(piece, Unread) else piece for piece in results
    )


def _lost(clock: ProxyClock) -> tuple[Unread, ...]:
    """Return the refusal of a line that should continue but does not, if there is one."""
    if clock.unfinished is None:
        return ()
    _, text, source = clock.unfinished
    clock.unfinished = None
    lost = log_lines.not_read(text, source, _OPEN, "the lines that follow do not end it")
    return (replace(lost, earlier=True),)


def _mode(text: str, source: str, clock: ProxyClock) -> tuple[Fact | Unread, ...]:
    """Read ``"proxyMode":"CLUSTER",`` in the configuration that proxy.log prints at startup."""
    mode = text.strip().removeprefix(_MODE).partition('"')[0]
    if not text.strip().startswith(_MODE) or not mode or clock.last_ms is None:
        return log_lines.NOT_OURS
    return (Fact("proxy_mode", clock.last_ms, {"mode": mode}, source),)

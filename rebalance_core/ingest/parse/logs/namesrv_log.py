"""namesrv.log: brokers that register, leave, are cut off or expire (rocketmq.md §10.4)."""

from __future__ import annotations

from dataclasses import replace

from rebalance_core.ingest.fact import Fact, Unread
from rebalance_core.ingest.parse.text.java_text import between, queue_data
from rebalance_core.ingest.parse.text.log_lines import (
    NOTHING,
    Clock,
    Fields,
    Template,
    headless,
    named,
    read_message,
    server_line,
)

_REPLICA_REMOVED = "unregisterBroker, remove addr from brokerAddrTable OK, "


def _registered(message: str) -> Fields:
    """4.9 prints the address, 5.0 ``BrokerAddrInfo [clusterName=…, brokerAddr=…]``, 5.1 and newer
    the same as ``BrokerIdentityInfo […]``. With braces it is a controller inside that gave an id.
    """
    if message.startswith("new broker registered, BrokerIdentityInfo{"):
        return NOTHING
    pieces = between(message, "new broker registered, ", " HA")
    return _address(pieces[0]) if pieces else None


def _address(text: str) -> Fields:
    """The address stands in brackets of its own where it is one of IPv6."""
    rendered = text.removeprefix("BrokerIdentityInfo").removeprefix("BrokerAddrInfo")
    pieces = between(rendered, " [clusterName=", ", brokerAddr=", "")
    address = pieces[1].removesuffix("]") if pieces else text
    return {"address": address} if ":" in address else None


def _named(message: str) -> Fields:
    pieces = between(
        message, "cluster [", "] brokerName [", "] master address change from ", " to ", ""
    )
    return None if pieces is None else named(("broker", "address"), [pieces[1], pieces[3]])


def _repeated(message: str) -> bool:
    _, _, change = message.partition("] master address change from ")
    old, _, new = change.partition(" to ")
    return old == new


def _removed(message: str) -> Fields:
    return named(
        ("broker",),
        between(message, "unregisterBroker, remove name from brokerAddrTable OK, ", ""),
    )


def _removed_4_9(message: str) -> Fields:
    """Also ``remove brokerName[…], clusterName[…] from clusterAddrTable``, which says it twice."""
    return named(("broker",), between(message, "remove brokerName[", "]"))


def _replica(message: str) -> Fields:
    return _address(message.removeprefix(_REPLICA_REMOVED))


def _replica_4_9(message: str) -> Fields:
    """``remove brokerAddr[<id>, <address>] from brokerAddrTable, because channel destroyed``."""
    pieces = between(message, "remove brokerAddr[", ", ", "] from ")
    return None if pieces is None else _address(pieces[1])


def _topic_registered(message: str) -> Fields:
    pieces = between(message, "new topic registered, ", " QueueData [")
    data = queue_data(message[message.find("QueueData [") :])
    return None if pieces is None or data is None else data | {"topic": pieces[0]}


def _topic_route(message: str) -> Fields:
    pieces = between(message, "topic changed, ", " OLD: ", " NEW: ", "")
    if pieces is None:
        return None
    old, new = queue_data(pieces[1]), queue_data(pieces[2])
    return None if old is None or new is None else new | {"topic": pieces[0], "old": old}


def _expired(message: str) -> Fields:
    text, _, _ = message.removeprefix("The broker channel expired, ").rpartition(" ")
    return _address(text)


def _property(message: str) -> Fields:
    name, _, value = message.partition("=")
    return {"name": name, "value": value} if value else NOTHING


_PROPERTY, _STARTS = "supportActingMaster=", "kvConfigPath="
_STOPS = "shutdown hook was invoked"
"""What it prints at its start and end stands in other lines too: without a time not ours."""
TEMPLATES: tuple[Template, ...] = (
    ("broker_registered", "new broker registered, ", _registered),
    ("broker_address", "cluster [", _named),
    ("broker_removed", "unregisterBroker, remove name from brokerAddrTable OK, ", _removed),
    ("broker_removed", "remove brokerName[", _removed_4_9),
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
WORDS = tuple(words for _, words, _ in TEMPLATES)
_HEADLESS_WORDS = tuple(words for words in WORDS if words not in (_PROPERTY, _STARTS, _STOPS))


def parse_namesrv_line(text: str, source: str, clock: Clock) -> tuple[Fact | Unread, ...]:
    """What one line of namesrv.log states."""
    line = server_line(text, clock)
    if line is None:
        return headless(_HEADLESS_WORDS, text, source)
    results = read_message(TEMPLATES, line, text, source)
    if line.message.startswith("cluster [") and _repeated(line.message):
        known = (piece for piece in results if isinstance(piece, Fact))
        return tuple(replace(piece, kind="broker_known") for piece in known) or results
    return results

"""Rows of ``observed_facts`` from log lines, as declared in `LOG_FACTS`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypedDict, cast

from rebalance_core.contracts.fact_declaration import (
    BROKER,
    CLIENT,
    EPISODES,
    LOCK,
    LOG_FOLDER,
    MOMENTS,
)
from rebalance_core.contracts.log_facts import LOG_FACTS
from rebalance_core.contracts.observed import FACT_KINDS
from rebalance_core.ingest.collection import PROXIES
from rebalance_core.ingest.events.connections import ProcessNames
from rebalance_core.ingest.evidence import Evidence, is_on_group
from rebalance_core.model.queue import is_retry_topic

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import ObservedFactsBegun
    from rebalance_core.ingest.evidence_types import (
        BrokerAddressPiece,
        ConsumerDataPiece,
        FlowControlledPiece,
        HeartbeatPiece,
        MessageExpiredPiece,
        MessageOfAnyExpiredPiece,
        NotifiedPiece,
        NotInMemberListPiece,
        OffsetNotCorrectedPiece,
        OffsetWentBackPiece,
        ProxyStartingPiece,
        SubscriptionChangedPiece,
    )

    class _About(TypedDict, total=False):
        """The fields that are columns of `observed_facts`, for the kinds that have them."""

        topic: str
        broker_name: str
        queue_id: int
        client_id: str | None


Details = dict[str, str]
Merge = Callable[[Details, Details], Details]


class FactRows:
    """Rows under construction; statements must come in chronological order.

    ``times`` counts the statements at one moment, or the kind's windows (seconds or minutes) that
    contain one. This count does not change if a job keeps one repeated line per window.
    """

    def __init__(self, group: str | None = None) -> None:
        self.rows: list[ObservedFactsBegun] = []
        self._group = group
        self._open: dict[tuple[object, ...], ObservedFactsBegun] = {}

    def add(
        self,
        kind: str,
        at_ms: int,
        source: str,
        details: Mapping[str, object] | None = None,
        *,
        topic: str | None = None,
        broker_name: str | None = None,
        queue_id: int | None = None,
        client_id: str | None = None,
        merge: Merge | None = None,
        alike: tuple[str, ...] = (),
        by_source: bool = False,
    ) -> None:
        """Add a statement; `merge` combines details that do not distinguish two things if those
        named in `alike` are equal; with `by_source`, those from two sources are two rows.
        """
        declared = FACT_KINDS[kind]
        texts = {name: as_text(value) for name, value in (details or {}).items()}
        what = tuple((name, texts[name]) for name in (alike if merge else sorted(texts)))
        moment = at_ms if declared.repeated == MOMENTS else None
        key = (kind, topic, broker_name, queue_id, client_id, what, moment, source * by_source)
        row = self._open.get(key)
        ended = row is not None and at_ms - row["last_ms"] > declared.apart_ms
        if row is None or (declared.repeated == EPISODES and ended):
            row = {
                "kind": kind,
                "consumer_group": self._group,
                "topic": topic,
                "broker_name": broker_name or None,
                "queue_id": queue_id,
                "client_id": client_id,
                "first_ms": at_ms,
                "last_ms": at_ms,
                "times": 1,
                "details": texts,
                "source": source,
            }
            self._open[key] = row
            self.rows.append(row)
            return
        window_ms = declared.window_ms
        if moment is not None or at_ms // window_ms != row["last_ms"] // window_ms:
            row["times"] += 1
            row["last_ms"] = at_ms
        if merge:
            row["details"] = merge(dict(row["details"]), texts)


def as_text(value: Any) -> str:
    """Return a value in the details as text; unknown is empty, pairs are ``name=value``.

    >>> as_text(None), as_text(True), as_text(["a", "b"]), as_text([("T", "*")])
    ('', 'true', 'a, b', 'T=*')
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return as_text(list(value.items()))
    if isinstance(value, list | tuple):
        return ", ".join("=".join(map(as_text, v)) if _pair(v) else as_text(v) for v in value)
    return str(value)


def _pair(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) == 2


# Rows of ``observed_facts`` from log lines, as declared in `LOG_FACTS`.
#
# A fact whose rows need more than its fields has its own reader in `READERS`.
MOST_HOSTS = 5
"""The maximum number of hosts named in one row of OFFSET_WENT_BACK."""


class Clients:
    """Finds the client that a line is about, by its process or by its address at the broker that
    logs it.

    Args:
        pieces: all evidence on the group.
        names: the clients that the lines of a client's log are about.
        brokers: broker name by address.
    """

    def __init__(
        self,
        pieces: Iterable[Evidence],
        names: ProcessNames,
        brokers: Mapping[str, str] | None = None,
    ) -> None:
        self._names = names
        self.brokers = brokers or {}
        self._channels: dict[tuple[str, str], str] = {}
        for piece in filter(is_on_group, pieces):
            if piece.kind == "consumer_connected":
                self._channels[piece.place, piece.values["channel"]] = piece.values["client_id"]
            elif piece.kind == "member":
                self._channels[piece.place, piece.values["client_addr"]] = piece.values["client_id"]

    def client_id_of(self, piece: Evidence) -> str | None:
        """Return the client id, or None if no file shows it."""
        client_id, channel = piece.values.get("client_id"), piece.values.get("channel")
        if client_id:
            return str(client_id)
        if channel is not None:
            return self._channels.get((piece.place, str(channel)))
        return self._names.client_of(piece)


FactReader = Callable[[FactRows, Any, int, Clients | None], None]
"""Each takes the kind under which `READERS` lists it."""


def add_log_rows(
    rows: FactRows, piece: Evidence, at_ms: int, clients: Clients | None = None
) -> None:
    """Add the rows that result from a log line; most lines yield none.

    Args:
        rows: the group's rows, or the cluster's.
        piece: the line's fields.
        at_ms: when it was true.
        clients: the group's clients; None for the cluster, whose lines name no client.
    """
    fact = LOG_FACTS.get(piece.kind)
    if fact is not None and fact.rows:
        READERS.get(piece.kind, _declared)(rows, piece, at_ms, clients)


def _declared(rows: FactRows, piece: Evidence, at_ms: int, clients: Clients | None) -> None:
    """Add a row of the declared kind, with the fact's fields in the columns with their names.

    If a broker's line names no broker, it is about itself; the client that a client's line is about
    is found by its process.
    """
    fact, v = LOG_FACTS[piece.kind], cast("_About", piece.values)
    own_broker = piece.place if fact.log in (BROKER, LOCK) else None
    of_client = fact.log == CLIENT
    fields = {**v, LOG_FOLDER: piece.place if of_client else None}
    rows.add(
        fact.rows[0].name,
        at_ms,
        piece.source,
        {field.name: fields.get(field.name) for field in fact.rows[0].details},
        topic=v.get("topic"),
        broker_name=v.get("broker_name", own_broker),
        queue_id=v.get("queue_id"),
        client_id=clients.client_id_of(piece) if of_client and clients else v.get("client_id"),
    )


def _topics(
    rows: FactRows, piece: HeartbeatPiece | ConsumerDataPiece, at_ms: int, clients: Clients | None
) -> None:
    client_id = clients.client_id_of(piece) if clients else None
    if client_id is None:
        return
    for topic, expression in sorted(piece.values["expressions"].items()):
        if not is_retry_topic(topic):
            details = {"expression": expression}
            rows.add("CLIENT_TOPIC", at_ms, piece.source, details, topic=topic, client_id=client_id)


def _changed(
    rows: FactRows, piece: SubscriptionChangedPiece, at_ms: int, _: Clients | None
) -> None:
    v = piece.values
    if "version" in v and "old" not in v:
        return  # a version alone: queues changed, or another member subscribes to the topic
    kind = "TAGS_CHANGED" if "old" in v else "TOPIC_DROPPED"
    details = {"old": v["old"], "new": v["new"]} if "old" in v and "new" in v else {}
    rows.add(kind, at_ms, piece.source, details, topic=v["topic"], broker_name=piece.place)


def _went_back(rows: FactRows, piece: OffsetWentBackPiece, at_ms: int, _: Clients | None) -> None:
    v = piece.values
    rows.add(
        "OFFSET_WENT_BACK",
        at_ms,
        piece.source,
        {
            "client_host": v["host"],
            "highest_stored": v["stored"],
            "lowest_asked": v["asked"],
            "step_stored": v["stored"],
            "step_asked": v["asked"],
            "steps": 1,
            "read_again": v["stored"] - v["asked"],
        },
        topic=v["topic"],
        broker_name=piece.place,
        queue_id=v["queue_id"],
        merge=_both_went_back,
    )


def _both_went_back(first: Details, second: Details) -> Details:
    """Combine falls of one queue; the largest keeps its two offsets, because the others fell from
    elsewhere.
    """
    hosts = first["client_host"].split(", ")
    if second["client_host"] not in hosts and len(hosts) < MOST_HOSTS:
        hosts.append(second["client_host"])
    largest = max(
        first, second, key=lambda each: int(each["step_stored"]) - int(each["step_asked"])
    )
    return {
        "client_host": ", ".join(hosts),
        "highest_stored": str(max(int(first["highest_stored"]), int(second["highest_stored"]))),
        "lowest_asked": str(min(int(first["lowest_asked"]), int(second["lowest_asked"]))),
        "step_stored": largest["step_stored"],
        "step_asked": largest["step_asked"],
        "steps": str(int(first["steps"]) + int(second["steps"])),
        "read_again": str(int(first["read_again"]) + int(second["read_again"])),
    }


def _not_corrected(
    rows: FactRows, piece: OffsetNotCorrectedPiece, at_ms: int, _: Clients | None
) -> None:
    v = piece.values
    rows.add(
        "OFFSET_NOT_CORRECTED",
        at_ms,
        piece.source,
        {"sent_to": v["sent_to"], "lowest_asked": v["asked"], "highest_asked": v["asked"]},
        topic=v["topic"],
        broker_name=piece.place,
        merge=_joining("lowest_asked", "highest_asked"),
        alike=("sent_to",),
    )


def _expired(
    rows: FactRows,
    piece: MessageExpiredPiece | MessageOfAnyExpiredPiece,
    at_ms: int,
    clients: Clients | None,
) -> None:
    """Add the row of a queue, naming its broker by the address in the line if a file knows it."""
    v = piece.values
    details = {"lowest": v["offset"], "highest": v["offset"], LOG_FOLDER: piece.place}
    rows.add(
        "MESSAGES_EXPIRED" if piece.kind == "message_expired" else "MESSAGES_OF_ANY_EXPIRED",
        at_ms,
        piece.source,
        {"address": v["address"], **details},
        topic=v["topic"],
        broker_name=clients.brokers.get(v["address"]) if clients else None,
        queue_id=v["queue_id"],
        client_id=clients.client_id_of(piece) if clients else None,
        merge=_joining("lowest", "highest"),
        alike=("address", LOG_FOLDER),
    )


def _flow_controlled(
    rows: FactRows, piece: FlowControlledPiece, at_ms: int, clients: Clients | None
) -> None:
    """Add the row of a queue, with the first message in the cache and since when it is the
    first.
    """
    v = piece.values
    first = v.get("min_offset")
    since_ms = None if first is None else at_ms
    rows.add(
        "FLOW_CONTROLLED",
        at_ms,
        piece.source,
        {
            "reason": v["reason"],
            LOG_FOLDER: piece.place,
            "min_offset": first,
            "min_since_ms": since_ms,
        },
        topic=v["topic"],
        broker_name=v["broker_name"],
        queue_id=v["queue_id"],
        client_id=clients.client_id_of(piece) if clients else None,
        merge=_with_newest_first,
        alike=("reason", LOG_FOLDER),
    )


def _with_newest_first(first: Details, second: Details) -> Details:
    """Combine statements about one cache; the time of an unchanged first message is kept."""
    return first if first["min_offset"] == second["min_offset"] else second


def _joining(lowest: str, highest: str) -> Merge:
    """Return a function that combines statements on one queue into one with its lowest and highest
    offsets.
    """

    def merge(first: Details, second: Details) -> Details:
        return first | {
            lowest: str(min(int(first[lowest]), int(second[lowest]))),
            highest: str(max(int(first[highest]), int(second[highest]))),
        }

    return merge


def _not_listed(
    rows: FactRows, piece: NotInMemberListPiece, at_ms: int, clients: Clients | None
) -> None:
    rows.add(
        "NOT_IN_MEMBER_LIST",
        at_ms,
        piece.source,
        {"listed": piece.values["listed"], "log": piece.place},
        client_id=clients.client_id_of(piece) if clients else None,
        merge=lambda first, _: first,
    )


def _notified(rows: FactRows, piece: NotifiedPiece, at_ms: int, clients: Clients | None) -> None:
    """Add the row of a notice to any member; a job keeps one line per second for all of them."""
    address = piece.values["address"]
    broker = clients.brokers.get(address) if clients else None
    rows.add("NOTIFIED", at_ms, piece.source, {"address": address}, broker_name=broker)


def _proxy_started(
    rows: FactRows, piece: ProxyStartingPiece, at_ms: int, _: Clients | None
) -> None:
    proxy = {"proxy": piece.place.removeprefix(PROXIES)}
    rows.add("PROXY_STARTED", at_ms, piece.source, proxy)


def _master_address(
    rows: FactRows, piece: BrokerAddressPiece, at_ms: int, _: Clients | None
) -> None:
    v = piece.values
    details = {"address": v["address"], "cluster": v.get("cluster")}
    rows.add("MASTER_ADDRESS", at_ms, piece.source, details, broker_name=v["broker"])


READERS: dict[str, FactReader] = {
    "broker_address": _master_address,
    "proxy_starting": _proxy_started,
    "heartbeat": _topics,
    "consumer_data": _topics,
    "subscription_changed": _changed,
    "offset_went_back": _went_back,
    "offset_not_corrected": _not_corrected,
    "flow_controlled": _flow_controlled,
    "message_expired": _expired,
    "message_of_any_expired": _expired,
    "not_in_member_list": _not_listed,
    "notified": _notified,
}

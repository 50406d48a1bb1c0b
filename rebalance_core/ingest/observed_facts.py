"""Rows of ``observed_facts``, ``observed_members`` and ``observed_ownership`` for one group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Collection as AnyCollection
from typing import TYPE_CHECKING, Any, Literal, TypeGuard, cast

from rebalance_core.contracts.observed import FACT_KINDS
from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.collection import PROXIES
from rebalance_core.ingest.events.connections import ProcessNames
from rebalance_core.ingest.events.listings import of_dumped_members
from rebalance_core.ingest.events.presence import Presence
from rebalance_core.ingest.evidence import Evidence, is_on_group
from rebalance_core.ingest.fact import file_of
from rebalance_core.ingest.log_rows import Clients, FactRows, add_log_rows
from rebalance_core.ingest.parse.channels import GRPC
from rebalance_core.ingest.parse.command_output import NOT_ONLINE, PARTIAL
from rebalance_core.ingest.parse.wire_versions import plain_version
from rebalance_core.ingest.request_modes import members_dividing_themselves
from rebalance_core.model.queue import is_retry_topic
from rebalance_core.model.times import HEARTBEAT_MS

if TYPE_CHECKING:
    from rebalance_core.contracts.row_parts import NamesQueue
    from rebalance_core.contracts.rows import (
        ObservedFactsBegun,
        ObservedMembersBegun,
        ObservedOwnershipBegun,
    )
    from rebalance_core.ingest.evidence_types import (
        ClientPiece,
        ClientPopQueuePiece,
        ClientQueuePiece,
        ClientRatesPiece,
        ClientSubscriptionPiece,
        ClientValues,
        DumpPiece,
        GroupConnectionPiece,
        MemberPiece,
        MemberValues,
        NoMembersPiece,
        OrderInfoPiece,
        PopCountsPiece,
        QueueProgressPiece,
        StuckQueuePiece,
        SubscriptionGroupPiece,
    )
    from rebalance_core.ingest.piece import Piece

DocumentReader = Callable[[FactRows, Any, int], None]
"""Each takes the kind under which `DOCUMENT_READERS` lists it."""

HEARTBEAT_INTERVAL = "heartbeatBrokerInterval"
"""ClientConfig: the period of a client's heartbeats to the brokers, in ms."""
_POP_SETTINGS = {"invisible_ms": "popInvisibleTime", "threads": "consumeThreadMin"}
"""The pool's queue is unbounded, so the pool never grows beyond consumeThreadMin."""


def _declared(kind: str, values: Mapping[str, object]) -> dict[str, object]:
    """Return the values whose names are details in this kind of fact."""
    names = (field.name for field in FACT_KINDS[kind].details)
    return {name: values[name] for name in names if name in values}


def dump(rows: FactRows, piece: DumpPiece, at_ms: int) -> None:
    """Add DUMP: a file with the output of mqadmin."""
    v = piece.values
    unsure = ("queues_told", "cut_off", PARTIAL)
    details = {name: value for name, value in _declared("DUMP", v).items() if name not in unsure}
    details |= {
        name: True for name, value in (("cut_off", v["cut_off"]), (PARTIAL, v["partial"])) if value
    }
    if v.get("queues_told") is not None:
        details["queues_told"] = v["queues_told"]
    broker, proxy = _asked(piece)
    rows.add(
        "DUMP",
        at_ms,
        piece.source,
        details | proxy,
        topic=v["topic"],
        broker_name=broker,
        client_id=v["client_id"],
    )


def _asked(piece: Evidence) -> tuple[str | None, dict[str, str]]:
    """Return the queried broker; for a proxy None, and its name as the detail ``proxy``."""
    if piece.place.startswith(PROXIES):
        return None, {"proxy": piece.place.removeprefix(PROXIES)}
    return piece.place, {}


def queue_row(
    rows: FactRows,
    kind: str,
    piece: Piece[str, NamesQueue],
    at_ms: int,
    details: Mapping[str, object],
    client_id: str | None = None,
) -> None:
    """Add a row about the queue that the evidence names."""
    v = piece.values
    rows.add(
        kind,
        at_ms,
        piece.source,
        details,
        topic=v["topic"],
        broker_name=v["broker_name"],
        queue_id=v["queue_id"],
        client_id=client_id,
    )


def _config(rows: FactRows, piece: SubscriptionGroupPiece, at_ms: int) -> None:
    details = {name: v for name, v in piece.values.items() if name != "consumer_group"}
    rows.add("GROUP_CONFIG", at_ms, piece.source, details, broker_name=piece.place)


def _at_broker(rows: FactRows, piece: GroupConnectionPiece | NoMembersPiece, at_ms: int) -> None:
    """Add a broker's answer, even if it knows no member; fields that it lacks are empty."""
    v = piece.values if piece.kind == "group_connection" else None
    details: dict[str, object] = {
        "members": v["members"] if v else 0,
        "topics": sorted(topic for topic, _ in v["subscriptions"] or ()) if v else [],
        "consume_type": v["consume_type"] if v else None,
        "message_model": v["message_model"] if v else None,
        "consume_from_where": v["consume_from_where"] if v else None,
    }
    broker, proxy = _asked(piece)
    kind = "GROUP_AT_PROXY" if proxy else "GROUP_AT_BROKER"
    rows.add(kind, at_ms, piece.source, details | proxy, broker_name=broker)


def _nobody(rows: FactRows, piece: NoMembersPiece, at_ms: int) -> None:
    _at_broker(rows, piece, at_ms)
    if piece.values["code"] == NOT_ONLINE:
        broker, proxy = _asked(piece)
        rows.add("NOT_ONLINE", at_ms, piece.source, proxy, broker_name=broker)


def _order(rows: FactRows, piece: OrderInfoPiece, at_ms: int) -> None:
    v = piece.values
    rows.add(
        "ORDER_BLOCK",
        at_ms,
        piece.source,
        _declared("ORDER_BLOCK", v),
        topic=v["topic"],
        broker_name=piece.place,
        queue_id=v["queue_id"],
    )


def _pop_counts(rows: FactRows, piece: PopCountsPiece, at_ms: int) -> None:
    v = piece.values
    rows.add(
        "POP_COUNTS",
        at_ms,
        piece.source,
        _declared("POP_COUNTS", v),
        topic=v["topic"],
        broker_name=v["node"] or piece.place,
    )


def _settings(rows: FactRows, piece: ClientPiece, at_ms: int) -> None:
    properties, client_id = piece.values["properties"], piece.values.get("client_file")
    if not client_id:
        return
    beat = properties.get(HEARTBEAT_INTERVAL, "")
    if beat.isdecimal() and int(beat) != HEARTBEAT_MS:
        rows.add(
            "HEARTBEAT_INTERVAL", at_ms, piece.source, {"interval_ms": beat}, client_id=client_id
        )
    details = {name: properties[key] for name, key in _POP_SETTINGS.items() if key in properties}
    if len(details) == len(_POP_SETTINGS):
        rows.add("POP_SETTINGS", at_ms, piece.source, details, client_id=client_id)


def _connection(rows: FactRows, piece: MemberPiece, at_ms: int) -> None:
    v = piece.values
    broker, proxy = _asked(piece)
    # a proxy returns its own version for every member
    version = plain_version(v["version"]) if v["version"] and not proxy else None
    details = {
        "client_addr": v["client_addr"],
        "language": v["language"],
        "version": version,
        **proxy,
    }
    rows.add(
        "CONNECTION",
        at_ms,
        piece.source,
        details,
        broker_name=broker,
        client_id=v["client_id"],
    )


def _rate(rows: FactRows, piece: ClientRatesPiece, at_ms: int) -> None:
    v = piece.values
    if not is_retry_topic(v["topic"]) and (client_id := v.get("client_file")):
        details = {"consume_rt_ms": v["consume_rt"]}
        rows.add(
            "CONSUME_RATE", at_ms, piece.source, details, topic=v["topic"], client_id=client_id
        )


def _subscription(rows: FactRows, piece: ClientSubscriptionPiece, at_ms: int) -> None:
    v = piece.values
    if not is_retry_topic(v["topic"]) and (client_id := v.get("client_file")):
        details = {"expression": v["expression"]}
        rows.add(
            "CLIENT_TOPIC", at_ms, piece.source, details, topic=v["topic"], client_id=client_id
        )


def _held(rows: FactRows, piece: ClientQueuePiece, at_ms: int) -> None:
    v = piece.values
    queue_row(rows, "HELD_QUEUE", piece, at_ms, _declared("HELD_QUEUE", v), v.get("client_file"))


def _popped(rows: FactRows, piece: ClientPopQueuePiece, at_ms: int) -> None:
    v = piece.values
    queue_row(rows, "POP_QUEUE", piece, at_ms, _declared("POP_QUEUE", v), v.get("client_file"))


def _stuck(rows: FactRows, piece: StuckQueuePiece, at_ms: int) -> None:
    v = piece.values
    queue_row(rows, "STUCK_QUEUE", piece, at_ms, _declared("STUCK_QUEUE", v), v["client_id"])


def _progress(rows: FactRows, piece: QueueProgressPiece, at_ms: int) -> None:
    v = piece.values
    details = _declared("QUEUE_PROGRESS", v)
    details["names_cut"] = v["topic_truncated"] or v["broker_name_truncated"]
    queue_row(rows, "QUEUE_PROGRESS", piece, at_ms, details, v.get("client_id"))


DOCUMENT_READERS: dict[str, DocumentReader] = {
    "dump": dump,
    "subscription_group": _config,
    "group_connection": _at_broker,
    "no_members": _nobody,
    "member": _connection,
    "client_subscription": _subscription,
    "client_queue": _held,
    "client_pop_queue": _popped,
    "client": _settings,
    "client_rates": _rate,
    "order_info": _order,
    "pop_counts": _pop_counts,
    "stuck_queue": _stuck,
    "queue_progress": _progress,
}


def member_rows(
    group: str, pieces: list[Evidence], context: ClusterContext
) -> list[ObservedMembersBegun]:
    """Return members as listed by ``consumerConnection`` at a broker, and as each of them answers.

    Subscriptions are without the retry topic, as in cluster_events; those in ``consumerConnection``
    are the group's at the queried broker, not the member's.
    """
    topics_by_file: dict[str, list[str]] = {}
    of_grpc: set[str] = set()
    stated = list(filter(of_dumped_members, pieces))
    for piece in stated:
        if piece.kind == "client_subscription":
            topics_by_file.setdefault(file_of(piece.source), []).append(piece.values["topic"])
        elif piece.kind == "consumer_connected" and piece.values.get("protocol") == GRPC:
            of_grpc.add(piece.values["client_id"])
    rows: list[ObservedMembersBegun] = []
    for piece in stated:
        v: MemberValues | ClientValues
        if piece.kind == "member":
            v = piece.values
            topics = [pair[0] for pair in v["subscriptions"] or ()]
            client_id, client_addr, language = v["client_id"], v["client_addr"], v["language"]
        elif piece.kind == "client" and (asked := piece.values.get("client_file")):
            v = piece.values
            topics = topics_by_file.get(file_of(piece.source), [])
            client_id, client_addr, language = asked, None, None
        else:
            continue
        unsure = v.get("partial") and (piece.kind == "client" or not topics)
        own_topics = None if unsure else topics
        # a proxy is not a broker; like a broker with an embedded proxy for gRPC clients, it returns
        # its own version as the member's (rocketmq.md §14)
        at_proxy = piece.place.startswith(PROXIES)
        own_version = None if at_proxy or client_id in of_grpc else v["version"]
        rows.append(
            {
                "consumer_group": group,
                "asked_broker": None if at_proxy else piece.place or None,
                "client_id": client_id,
                "client_addr": client_addr,
                "language": language,
                "version": plain_version(own_version) if own_version else None,
                "subscriptions": _without_retry(own_topics),
                "message_model": cast("Literal['CLUSTERING', 'BROADCASTING']", v["message_model"]),
                "consume_from_where": v["consume_from_where"],
                "observed_ms": context.time_of(piece),
                "source": piece.source,
            }
        )
    return rows


def _without_retry(topics: Iterable[str] | None) -> list[str] | None:
    """Return the sorted topics, or None if unknown."""
    return None if topics is None else sorted(t for t in {*topics} if not is_retry_topic(t))


def _by_host(client_ids: Iterable[str]) -> dict[str, list[str]]:
    """Return the ids by their text before the ``@``."""
    by_host: dict[str, list[str]] = {}
    for client_id in client_ids:
        by_host.setdefault(client_id.partition("@")[0], []).append(client_id)
    return by_host


def _of_queue(piece: Evidence) -> TypeGuard[ClientQueuePiece | QueueProgressPiece]:
    return piece.kind in ("client_queue", "queue_progress")


def ownership_rows(
    group: str, pieces: Iterable[Evidence], presence: Presence, context: ClusterContext
) -> list[ObservedOwnershipBegun]:
    """Return the queues that clients hold, from ``consumerStatus`` and ``consumerProgress -s
    true``.

    The latter shows only the part of the client id before ``@``, so a row is written if exactly one
    member at that time has this prefix.
    """
    rows: list[ObservedOwnershipBegun] = []
    ids_by_host: dict[int, dict[str, list[str]]] = {}  # at the time of each dump, not of each row
    for piece in filter(_of_queue, pieces):
        at_ms = context.time_of(piece)
        if piece.kind == "client_queue":
            if piece.values["dropped"] or not (asked := piece.values.get("client_file")):
                continue
            client_id = asked
        elif piece.values["client_ip"] and not piece.values["topic_truncated"]:
            if at_ms not in ids_by_host:
                ids_by_host[at_ms] = _by_host(presence.clients(at_ms, at_ms))
            alike = ids_by_host[at_ms].get(piece.values["client_ip"], [])
            if len(alike) != 1:
                continue
            client_id = alike[0]
        else:
            continue
        rows.append(
            {
                "consumer_group": group,
                "topic": piece.values["topic"],
                "broker_name": piece.values["broker_name"],
                "queue_id": piece.values["queue_id"],
                "client_id": client_id,
                "observed_ms": at_ms,
                "source": piece.source,
            }
        )
    return rows


def group_facts(
    group: str, pieces: AnyCollection[Evidence], names: ProcessNames, context: ClusterContext
) -> list[ObservedFactsBegun]:
    """Return the rows of a group, even if it never had a member.

    Args:
        group: the group's name.
        pieces: all evidence about it, in chronological order.
        names: the clients to which the lines of a client's log refer.
        context: the cluster's context.
    """
    clients = Clients(pieces, names, context.addresses)
    rows = FactRows(group)
    for piece in pieces:
        at_ms = context.time_of(piece)
        if piece.kind in DOCUMENT_READERS:
            DOCUMENT_READERS[piece.kind](rows, piece, at_ms)
        else:
            add_log_rows(rows, piece, at_ms, clients)
    for alone in members_dividing_themselves(filter(is_on_group, pieces)):
        since, until, v = alone.since, alone.until, alone.since.values
        details: dict[str, object] = {"strategy": v["strategy"]}
        if until is not None:
            details |= {"over_ms": context.time_of(until), "over_by": until.source}
        rows.add(
            "GAVE_UP_ASKING",
            context.time_of(since),
            since.source,
            details,
            topic=v["topic"],
            client_id=v["client_id"],
        )
    return rows.rows

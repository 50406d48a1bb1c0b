"""Rows of ``observed_facts``, ``observed_members`` and ``observed_ownership`` of one group."""

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Collection as AnyCollection
from typing import Any

from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.collection import PROXIES
from rebalance_core.ingest.events.connections import ProcessNames
from rebalance_core.ingest.events.unlogged_members import Presence
from rebalance_core.ingest.evidence import Evidence
from rebalance_core.ingest.fact import file_of
from rebalance_core.ingest.log_rows import Clients, FactRows, add_log_rows
from rebalance_core.ingest.parse.channels import GRPC
from rebalance_core.ingest.parse.command_output import NOT_ONLINE, PARTIAL
from rebalance_core.ingest.parse.java_text import plain_version
from rebalance_core.ingest.request_modes import members_dividing_themselves
from rebalance_core.ingest.rows import Row
from rebalance_core.model.queue import is_retry_topic
from rebalance_core.model.times import HEARTBEAT_MS

DocumentReader = Callable[[FactRows, Evidence, int], None]

_HELD = (
    "commit_offset", "cached_messages", "locked", "try_unlock_times", "dropped", "last_lock_ms",
    "last_pull_ms", "last_consume_ms",
)  # fmt: skip
_POPPED = ("wait_ack_count", "dropped", "last_pop_ms")
_OF_TOPICS = {
    "client_rates": ("CONSUME_RATE", "consume_rt_ms", "consume_rt"),
    "client_subscription": ("CLIENT_TOPIC", "expression", "expression"),
}
_OF_QUEUES = {"client_queue": ("HELD_QUEUE", _HELD), "client_pop_queue": ("POP_QUEUE", _POPPED)}
HEARTBEAT_INTERVAL = "heartbeatBrokerInterval"
"""ClientConfig: how often a client tells the brokers that it lives, in ms."""
_POP_SETTINGS = {"invisible_ms": "popInvisibleTime", "threads": "consumeThreadMin"}
"""The pool's queue has no bound, so it never grows beyond consumeThreadMin."""
_ORDER = (
    "attempt_id", "commit_bits", "offsets", "pop_ms", "invisible_ms", "next_visible_ms",
    "blocked_until_ms",
)  # fmt: skip
_PROGRESS = ("broker_offset", "consumer_offset", "last_time_ms", "client_ip", "with_clients")
_AT_BROKER = ("consume_type", "message_model", "consume_from_where")


def dump(rows: FactRows, piece: Evidence, at_ms: int) -> None:
    """DUMP: one file with the output of mqadmin."""
    v = piece.values
    details = {name: v[name] for name in ("command", "rows", "rejected", "error")}
    details |= {name: True for name in ("cut_off", PARTIAL) if v.get(name)}
    if v.get("queues_told") is not None:
        details["queues_told"] = v["queues_told"]
    broker, proxy = _asked(piece)
    where = {"topic": v["topic"], "broker_name": broker, "client_id": v["client_id"]}
    rows.add("DUMP", at_ms, piece.source, details | proxy, **where)


def _asked(piece: Evidence) -> tuple[str | None, dict[str, str]]:
    """The broker asked, and the detail ``proxy`` where it was one: a proxy is no broker."""
    if piece.place.startswith(PROXIES):
        return None, {"proxy": piece.place.removeprefix(PROXIES)}
    return piece.place, {}


def queue_row(
    rows: FactRows,
    kind: str,
    piece: Evidence,
    at_ms: int,
    details: Mapping[str, Any],
    client_id: str | None = None,
) -> None:
    """A row on the queue that the evidence names."""
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


def _config(rows: FactRows, piece: Evidence, at_ms: int) -> None:
    details = {name: v for name, v in piece.values.items() if name != "consumer_group"}
    rows.add("GROUP_CONFIG", at_ms, piece.source, details, broker_name=piece.place)


def _at_broker(rows: FactRows, piece: Evidence, at_ms: int) -> None:
    """Also of a broker that knows no member; what it does not say of the group is empty."""
    v = piece.values
    topics = sorted(topic for topic, _ in v.get("subscriptions") or ())
    details = {"members": v.get("members", 0), "topics": topics}
    details |= {name: v.get(name) for name in _AT_BROKER}
    broker, proxy = _asked(piece)
    kind = "GROUP_AT_PROXY" if proxy else "GROUP_AT_BROKER"
    rows.add(kind, at_ms, piece.source, details | proxy, broker_name=broker)


def _nobody(rows: FactRows, piece: Evidence, at_ms: int) -> None:
    _at_broker(rows, piece, at_ms)
    if piece.values.get("code") == NOT_ONLINE:
        broker, proxy = _asked(piece)
        rows.add("NOT_ONLINE", at_ms, piece.source, proxy, broker_name=broker)


def _order(rows: FactRows, piece: Evidence, at_ms: int) -> None:
    v = piece.values
    details = {name: v[name] for name in _ORDER}
    where = {"topic": v["topic"], "broker_name": piece.place, "queue_id": v["queue_id"]}
    rows.add("ORDER_BLOCK", at_ms, piece.source, details, **where)


def _settings(rows: FactRows, piece: Evidence, at_ms: int) -> None:
    found, client_id = piece.values["properties"], piece.values.get("client_file")
    if not client_id:
        return
    beat = found.get(HEARTBEAT_INTERVAL, "")
    if beat.isdecimal() and int(beat) != HEARTBEAT_MS:
        rows.add("HEARTBEAT_INTERVAL", at_ms, piece.source, {"interval_ms": beat},
                 client_id=client_id)  # fmt: skip
    details = {name: found[key] for name, key in _POP_SETTINGS.items() if key in found}
    if len(details) == len(_POP_SETTINGS):
        rows.add("POP_SETTINGS", at_ms, piece.source, details, client_id=client_id)


def _connection(rows: FactRows, piece: Evidence, at_ms: int) -> None:
    v = piece.values
    broker, proxy = _asked(piece)
    # a proxy answers its own version for every member's
    version = plain_version(v["version"]) if v["version"] and not proxy else None
    details = {"client_addr": v["client_addr"], "language": v["language"], "version": version}
    where = {"broker_name": broker, "client_id": v["client_id"]}
    rows.add("CONNECTION", at_ms, piece.source, details | proxy, **where)


def _client_topic(rows: FactRows, piece: Evidence, at_ms: int) -> None:
    v, (kind, name, field) = piece.values, _OF_TOPICS[piece.kind]
    if v.get("client_file") and not is_retry_topic(v["topic"]):
        where = {"topic": v["topic"], "client_id": v["client_file"]}
        rows.add(kind, at_ms, piece.source, {name: v[field]}, **where)


def _held(rows: FactRows, piece: Evidence, at_ms: int) -> None:
    kind, names = _OF_QUEUES[piece.kind]
    details = {name: piece.values[name] for name in names}
    queue_row(rows, kind, piece, at_ms, details, piece.values.get("client_file"))


def _stuck(rows: FactRows, piece: Evidence, at_ms: int) -> None:
    v = piece.values
    details = {"trouble": v["trouble"], "count": v["count"]}
    queue_row(rows, "STUCK_QUEUE", piece, at_ms, details, v["client_id"])


def _progress(rows: FactRows, piece: Evidence, at_ms: int) -> None:
    v = piece.values
    details = {name: v[name] for name in _PROGRESS}
    details["names_cut"] = v["topic_truncated"] or v["broker_name_truncated"]
    queue_row(rows, "QUEUE_PROGRESS", piece, at_ms, details)


DOCUMENT_READERS: dict[str, DocumentReader] = {
    "dump": dump,
    "subscription_group": _config,
    "group_connection": _at_broker,
    "no_members": _nobody,
    "member": _connection,
    "client_subscription": _client_topic,
    "client_queue": _held,
    "client_pop_queue": _held,
    "client": _settings,
    "client_rates": _client_topic,
    "order_info": _order,
    "stuck_queue": _stuck,
    "queue_progress": _progress,
}


# observed_members and observed_ownership: what mqadmin's dumps show of one group.


def member_rows(group: str, pieces: list[Evidence], context: ClusterContext) -> list[Row]:
    """Members as ``consumerConnection`` lists them at one broker, and as each one answers itself.

    Subscriptions are without the retry topic, as in cluster_events; those of
    ``consumerConnection`` are the group's at the broker asked, not the member's.
    """
    topics_by_file: dict[str, list[str]] = {}
    of_grpc: set[str] = set()
    for piece in pieces:
        if piece.kind == "client_subscription":
            topics_by_file.setdefault(file_of(piece.source), []).append(piece.values["topic"])
        elif piece.kind == "consumer_connected" and piece.values.get("protocol") == GRPC:
            of_grpc.add(piece.values["client_id"])
    rows = []
    for piece in pieces:
        v = piece.values
        if piece.kind == "member":
            topics = [pair[0] for pair in v["subscriptions"] or ()]
            client_id = v["client_id"]
        elif piece.kind == "client" and v.get("client_file"):
            topics = topics_by_file.get(file_of(piece.source), [])
            client_id = v["client_file"]
        else:
            continue
        own_topics = None if v.get(PARTIAL) and (piece.kind == "client" or not topics) else topics
        # a proxy is no broker; it, and a broker with one inside for its gRPC clients, answers its
        # own version for the member's (rocketmq.md §14)
        at_proxy = piece.place.startswith(PROXIES)
        own_version = v["version"] and not at_proxy and client_id not in of_grpc
        rows.append(
            {
                "consumer_group": group,
                "asked_broker": None if at_proxy else piece.place or None,
                "client_id": client_id,
                "client_addr": v.get("client_addr"),
                "language": v.get("language"),
                "version": plain_version(v["version"]) if own_version else None,
                "subscriptions": _without_retry(own_topics),
                "message_model": v["message_model"],
                "consume_from_where": v["consume_from_where"],
                "observed_ms": context.time_of(piece),
                "source": piece.source,
            }
        )
    return rows


def _without_retry(topics: Iterable[str] | None) -> list[str] | None:
    """The topics, sorted; None: not known."""
    return None if topics is None else sorted(t for t in {*topics} if not is_retry_topic(t))


def _by_host(client_ids: Iterable[str]) -> dict[str, list[str]]:
    """The ids by their text before the ``@``."""
    found: dict[str, list[str]] = {}
    for client_id in client_ids:
        found.setdefault(client_id.partition("@")[0], []).append(client_id)
    return found


def ownership_rows(
    group: str, pieces: Iterable[Evidence], presence: Presence, context: ClusterContext
) -> list[Row]:
    """Queues that clients hold: of ``consumerStatus``, and of ``consumerProgress -s true``.

    The latter shows the text before the ``@`` of the client id alone: a row is made where just one
    member of then begins so.
    """
    rows = []
    ids_by_host: dict[int, dict[str, list[str]]] = {}  # at the time of each dump, not of each row
    for piece in pieces:
        v = piece.values
        at_ms = context.time_of(piece)
        if piece.kind == "client_queue" and not v["dropped"] and v.get("client_file"):
            client_id = v["client_file"]
        elif piece.kind == "queue_progress" and v["client_ip"] and not v["topic_truncated"]:
            if at_ms not in ids_by_host:
                ids_by_host[at_ms] = _by_host(presence.clients(at_ms, at_ms))
            alike = ids_by_host[at_ms].get(v["client_ip"], [])
            if len(alike) != 1:
                continue
            client_id = alike[0]
        else:
            continue
        rows.append(
            {
                "consumer_group": group,
                "topic": v["topic"],
                "broker_name": v["broker_name"],
                "queue_id": v["queue_id"],
                "client_id": client_id,
                "observed_ms": at_ms,
                "source": piece.source,
            }
        )
    return rows


# ``observed_facts`` of one group: what dumps, stores and logs state of it.


def group_facts(
    group: str, pieces: AnyCollection[Evidence], names: ProcessNames, context: ClusterContext
) -> list[Row]:
    """The rows of one group, also of one that never had a member.

    Args:
        group: its name.
        pieces: all evidence on it, in order of time.
        names: who the lines of a client's log are about.
        context: of the cluster.
    """
    clients = Clients(pieces, names, context.addresses)
    rows = FactRows(group)
    for piece in pieces:
        at_ms = context.time_of(piece)
        if piece.kind in DOCUMENT_READERS:
            DOCUMENT_READERS[piece.kind](rows, piece, at_ms)
        else:
            add_log_rows(rows, piece, at_ms, clients)
    for alone in members_dividing_themselves(pieces):
        piece, until = alone.since, alone.until
        v = piece.values
        details = {"strategy": v["strategy"]}
        if until is not None:
            details |= {"over_ms": context.time_of(until), "over_by": until.source}
        where = {"topic": v["topic"], "client_id": v["client_id"]}
        rows.add("GAVE_UP_ASKING", context.time_of(piece), piece.source, details, **where)
    return rows.rows

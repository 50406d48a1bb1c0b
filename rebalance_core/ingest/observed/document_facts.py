"""Rows of ``observed_facts`` from dumps and stores: one reader a kind of evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.collection.collected_file import PROXIES
from rebalance_core.ingest.evidence.evidence import Evidence
from rebalance_core.ingest.evidence.store_copies import EXPORT_MS, STORE_NAMES, BrokerStore
from rebalance_core.ingest.observed.log_rows import FactRows
from rebalance_core.ingest.parse.mqadmin.command_output import NOT_ONLINE
from rebalance_core.ingest.parse.text.java_text import plain_version
from rebalance_core.ingest.rows import Row, finding
from rebalance_core.model.queue import is_retry_topic
from rebalance_core.model.statuses import INFO, WARNING
from rebalance_core.model.times import HEARTBEAT_MS, SECOND_MS, utc

# Brokers that keep their configurations in RocksDB: the fact, and copies older than they look.

REMEDY = (
    "Run `mqadmin rocksDBConfigToJson -n <name servers> -b <broker address>` right before "
    "config/*.json is copied, as collect/collect.sh does."
)


def add_broker_stores(rows: FactRows, context: ClusterContext) -> None:
    """BROKER_STORE: one row for each broker with a RocksDB."""
    for broker, store in _stores(context):
        details: dict[str, object] = {"form": store.form}
        details |= {name: store.known(kind) for kind, name in STORE_NAMES.items()}
        rows.add("BROKER_STORE", context.end_ms, store.source, details, broker_name=broker)


def rocksdb_findings(context: ClusterContext) -> Iterator[Row]:
    """Newest copies that were exported long before they were copied, or nobody knows when."""
    for broker, store in _stores(context):
        old: dict[str, str] = {}
        undated: list[str] = []
        for kind, file in sorted(store.newest.items()):
            at_ms, copied_ms = store.date(kind), store.copied[file]
            if at_ms is None and store.known(kind) is None:
                undated.append(STORE_NAMES[kind])
            elif at_ms is not None and copied_ms - at_ms > EXPORT_MS:
                age = (copied_ms - at_ms) // SECOND_MS
                old[STORE_NAMES[kind]] = f"{utc(at_ms)}, {age} s before the copy"
        if old:
            parts = "; ".join(f"{name} of {age}" for name, age in old.items())
            yield finding(
                "INGEST_EXPORT_OLD",
                f"{broker} keeps its configurations in RocksDB: its JSON files are as of their "
                f"last export and count as such ({parts}).",
                REMEDY,
                INFO,
                broker_name=broker,
                evidence={"form": store.form, "store": store.source, **old},
            )
        if undated:
            parts = ", ".join(undated)
            yield finding(
                "INGEST_EXPORT_UNDATED",
                f"{broker} keeps its configurations in RocksDB, and no file tells when "
                f"{parts} was exported: it is not used.",
                REMEDY,
                WARNING,
                broker_name=broker,
                evidence={"form": store.form, "store": store.source, "files": parts},
            )


def _stores(context: ClusterContext) -> Iterator[tuple[str, BrokerStore]]:
    """By broker; a slave's store is a copy of its master's."""
    for folder, store in sorted(context.rocksdb.items()):
        of_folder = context.folders[folder]
        if of_folder.authoritative:
            yield of_folder.broker_name, store


DocumentReader = Callable[[FactRows, Evidence, int], None]

_HELD = (
    "commit_offset", "cached_messages", "locked", "try_unlock_times", "dropped", "last_lock_ms",
    "last_pull_ms", "last_consume_ms",
)  # fmt: skip
_POPPED = ("wait_ack_count", "dropped", "last_pop_ms")
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


def _popped(rows: FactRows, piece: Evidence, at_ms: int) -> None:
    details = {name: piece.values[name] for name in _POPPED}
    queue_row(rows, "POP_QUEUE", piece, at_ms, details, piece.values.get("client_file"))


def _settings(rows: FactRows, piece: Evidence, at_ms: int) -> None:
    found = piece.values["properties"]
    beat = found.get(HEARTBEAT_INTERVAL, "")
    if beat.isdecimal() and int(beat) != HEARTBEAT_MS and piece.values.get("client_file"):
        client_id = piece.values["client_file"]
        rows.add("HEARTBEAT_INTERVAL", at_ms, piece.source, {"interval_ms": beat},
                 client_id=client_id)  # fmt: skip
    details = {name: found[key] for name, key in _POP_SETTINGS.items() if key in found}
    if len(details) == len(_POP_SETTINGS) and piece.values.get("client_file"):
        client_id = piece.values["client_file"]
        rows.add("POP_SETTINGS", at_ms, piece.source, details, client_id=client_id)


def _rate(rows: FactRows, piece: Evidence, at_ms: int) -> None:
    v = piece.values
    if v.get("client_file") and not is_retry_topic(v["topic"]):
        details = {"consume_rt_ms": v["consume_rt"]}
        where = {"topic": v["topic"], "client_id": v["client_file"]}
        rows.add("CONSUME_RATE", at_ms, piece.source, details, **where)


def _connection(rows: FactRows, piece: Evidence, at_ms: int) -> None:
    v = piece.values
    broker, proxy = _asked(piece)
    # a proxy answers its own version for every member's
    version = plain_version(v["version"]) if v["version"] and not proxy else None
    details = {"client_addr": v["client_addr"], "language": v["language"], "version": version}
    where = {"broker_name": broker, "client_id": v["client_id"]}
    rows.add("CONNECTION", at_ms, piece.source, details | proxy, **where)


def _client_topic(rows: FactRows, piece: Evidence, at_ms: int) -> None:
    v = piece.values
    if v.get("client_file") and not is_retry_topic(v["topic"]):
        details = {"expression": v["expression"]}
        where = {"topic": v["topic"], "client_id": v["client_file"]}
        rows.add("CLIENT_TOPIC", at_ms, piece.source, details, **where)


def _held(rows: FactRows, piece: Evidence, at_ms: int) -> None:
    details = {name: piece.values[name] for name in _HELD}
    queue_row(rows, "HELD_QUEUE", piece, at_ms, details, piece.values.get("client_file"))


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
    "client_pop_queue": _popped,
    "client": _settings,
    "client_rates": _rate,
    "order_info": _order,
    "stuck_queue": _stuck,
    "queue_progress": _progress,
}

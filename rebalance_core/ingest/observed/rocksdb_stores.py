"""Brokers that keep their configurations in RocksDB: the fact, and copies older than they look."""

from __future__ import annotations

from collections.abc import Iterator

from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.evidence.store_copies import EXPORT_MS, STORE_NAMES, BrokerStore
from rebalance_core.ingest.observed.fact_rows import FactRows
from rebalance_core.ingest.rows import Row, finding
from rebalance_core.model.statuses import INFO, WARNING
from rebalance_core.model.times import SECOND_MS, utc

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

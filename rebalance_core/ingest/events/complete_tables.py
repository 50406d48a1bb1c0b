"""From rows as they were put together to rows of tables: cluster, sequence, one row a key."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rebalance_core.contracts.ledger import BROKER, FINDINGS, fingerprint_of
from rebalance_core.ingest.fact import Unread
from rebalance_core.ingest.rows import OF_A_BROKER, ORDER, Row, Tables, event_order

REJECTED_TABLE = "collection"
"""``table_name`` of what no input table holds yet: a line or file of the collection."""


def complete(tables: Tables, cluster: str) -> Tables:
    """All rows of a collection in their final form."""
    tables = tables | {"cluster_events": sequenced(tables.get("cluster_events", []))}
    return {name: of_cluster(name, rows, cluster) for name, rows in once(tables).items()}


def once(tables: Tables) -> Tables:
    """The rows of whole groups and topics, each key once."""
    return tables | {
        "queue_offsets": newest(tables.get("queue_offsets", []), "max_offset"),
        "committed_offsets": newest(tables.get("committed_offsets", []), "committed_offset"),
    }


def of_cluster(table: str, rows: Iterable[Row], cluster: str) -> list[Row]:
    """The rows with the name of the cluster, which ``rejected`` lacks; findings' fingerprints."""
    if table == "rejected":
        return list(rows)
    named = [{"cluster": cluster} | row for row in rows]
    if table == FINDINGS.name:
        for row in named:
            row["fingerprint"] = fingerprint_of(
                row, BROKER if row["rule_id"] in OF_A_BROKER else ""
            )
    return named


def sequenced(events: Iterable[Row]) -> list[Row]:
    """All events of some moments in their order, with their place among those of one moment."""
    ordered = sorted(events, key=event_order)
    last_ms, sequence = None, 0
    for row in ordered:
        row.pop(ORDER, None)
        sequence = sequence + 1 if row["event_ms"] == last_ms else 0
        last_ms, row["sequence"] = row["event_ms"], sequence
    return ordered


def newest(rows: Iterable[Row], value: str) -> list[Row]:
    """One row a key: of several observations of one instant the one furthest on."""
    best: dict[tuple[Any, ...], Row] = {}
    offsets = ("min_offset", "max_offset", "committed_offset")
    for row in rows:
        key = tuple(row[name] for name in sorted(row.keys() - set(offsets)))
        if key not in best or best[key][value] < row[value]:
            best[key] = row
    return list(best.values())


def rejected_row(piece: Unread) -> Row:
    """One row of ``rejected``."""
    issue = {"code": piece.code, "message": piece.message}
    return {
        "table_name": REJECTED_TABLE,
        "source": piece.source,
        "raw": piece.raw,
        "issues": [issue],
    }

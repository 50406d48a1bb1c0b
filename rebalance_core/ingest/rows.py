"""Rows of the tables that ingest writes, as plain dicts with the contract's columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Row = dict[str, Any]
Tables = dict[str, list[Row]]

ORDER = "_order"
"""Beside an event's columns: order among events of one instant, before sequences are given."""

INFO, WARNING = "INFO", "WARNING"
RANK = {"BROKER_UP": 0, "BROKER_DOWN": 0, "TOPIC_CONFIG": 1, "TOPIC_DELETED": 1}
"""Order among events of one instant; those of consumers come last."""


def event(event_type: str, event_ms: int, source: str, **fields: Any) -> Row:
    """One event without cluster and sequence; fields that are None are left out."""
    row = {"event_type": event_type, "event_ms": event_ms, "source": source}
    return row | {name: value for name, value in fields.items() if value is not None}


def event_order(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Order of events: by time, then brokers, topics and consumers, each in its own order."""
    return (
        row["event_ms"],
        RANK.get(row["event_type"], len(RANK)),
        row.get("consumer_group") or "",
        row.get(ORDER, 0),
        row.get("topic") or "",
        row.get("broker_name") or "",
        row.get("client_id") or "",
        row.get("channel_id") or "",
        row["event_type"],
        row["source"],
    )


def finding(
    rule_id: str,
    summary: str,
    remedy: str,
    severity: str = INFO,
    evidence: Mapping[str, Any] | None = None,
    **where: Any,
) -> Row:
    """One row of ``findings`` without the cluster; ``where`` names group, topic and so on."""
    shown = {name: str(value) for name, value in (evidence or {}).items()}
    row = {"rule_id": rule_id, "severity": severity, "summary": summary, "remedy": remedy}
    return row | {"evidence": shown} | where


def merged(*parts: Tables) -> Tables:
    """The tables of all parts, one after the other."""
    tables: Tables = {}
    for part in parts:
        for name, rows in part.items():
            tables.setdefault(name, []).extend(rows)
    return tables

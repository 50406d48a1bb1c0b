"""The finding on what a group's members did once the brokers' logs had ended."""

from __future__ import annotations

from collections.abc import Iterable

from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.rows import Row, finding
from rebalance_core.model.statuses import WARNING
from rebalance_core.model.times import utc

SHOWN = 20
"""Events that the finding names at most."""


def after_logs(group: str, events: Iterable[Row], context: ClusterContext) -> list[Row]:
    """The finding on events that only dumps show which were taken after the logs had ended.

    Args:
        group: the consumer group.
        events: those events.
        context: of the cluster.
    """
    rows = sorted(events, key=lambda row: row["event_ms"])
    if not rows:
        return []
    ends = {place: ms for place, ms in sorted(context.logged.items()) if ms < rows[-1]["event_ms"]}
    first_ms = min(ends.values(), default=rows[0]["event_ms"])
    shown = {_name(row): row["source"] for row in rows[:SHOWN]}
    told = ", ".join(f"{place} at {utc(ms)}" for place, ms in ends.items())
    return [
        finding(
            "INGEST_LOG_ENDED",
            f"What members did after broker.log had ended ({told}) is known from dumps alone. "
            f"Events that are dated by the dump that shows them, or by when the client says it "
            f"started: {len(rows)}. They may have happened at any time since the log's end: "
            "windows and bounds of starts do not cover that.",
            "Copy the logs after the dumps, up to their last line.",
            WARNING,
            consumer_group=group,
            first_ms=first_ms,
            last_ms=rows[-1]["event_ms"],
            evidence=shown,
        )
    ]


def _name(row: Row) -> str:
    return " ".join(filter(None, (row["event_type"], row.get("topic"), row["client_id"])))

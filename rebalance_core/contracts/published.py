"""What published tables have besides the columns of a run's own tables: the run and its night."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

from rebalance_core.contracts.table import Table, columns

if TYPE_CHECKING:
    from rebalance_core.contracts.run_record import StoredRun

_OF_THE_RUN = """
    run_id STRING run_id of `_run.json`; equal runs over equal rows have the same one
    night DATE the UTC day in which the period ends; for an audit, the end of the audited period
    period_from_ms? BIGINT start of the run's period: --from, or the first event
    period_to_ms? BIGINT end of the period: --to, or the last event
"""

RUN_COLUMNS = columns(_OF_THE_RUN)
"""The last columns of every table that `publish` writes; it is partitioned by them."""

RUNS = Table(
    "runs",
    "A run whose tables are published completely: its row is written last and removed first.",
    columns(
        f"""
        job STRING the job
        exit_code INT how it ended: 0, or 3 for an audit with findings
        started_ms BIGINT when it began
        library_version STRING of rebalance-core
        contract_version INT of its tables
        clusters ARRAY<STRING> clusters that its input names
        tables ARRAY<STRING> the published tables, without prefix
        published_ms BIGINT when it was published; no two runs at once
        replaces ARRAY<STRING> run_id of the runs in whose place it was published
        {_OF_THE_RUN.strip()}
        """
    ),
    key=("run_id",),
)

CURRENT = "current_"
"""The prefix of views: each has the rows of a published table from runs that no later run replaces,
and `moments` as TIMESTAMP.
"""

DURATIONS = frozenset(
    {
        "clock_error_ms",
        "clock_offset_ms",
        "gap_ms",
        "heartbeat_broker_interval_ms",
        "latency_ms",
        "mean_wait_ms",
        "min_interval_ms",
        "orphan_ms",
        "overlap_ms",
        "pause_ms",
        "persist_consumer_offset_interval_ms",
        "poll_name_server_interval_ms",
        "recovery_ms",
        "settle_p99_ms",
        "shared_ms",
        "start_median_ms",
        "start_spread_ms",
        "wait_interval_ms",
    }
)
"""Columns in milliseconds that are not points in time."""


def moments(names: Iterable[str]) -> Mapping[str, str]:
    """Return the columns that contain moments, and the names of their TIMESTAMP columns.

    >>> moments(["from_ms", "gap_ms", "epoch"])
    {'from_ms': 'from_time'}
    """
    return {
        name: f"{name.removesuffix('_ms')}_time"
        for name in names
        if name.endswith("_ms") and name not in DURATIONS
    }


def night_of(record: StoredRun) -> date:
    """Return the night of a run, according to its record.

    Args:
        record: ``_run.json``; without a period, the day on which it was made counts.

    >>> night_of({"started_at": "2026-11-29T02:00:00+00:00", "period_to_ms": 1795910400000})
    datetime.date(2026, 11, 28)
    """
    audit = record.get("audit")
    end_ms = audit["end_ms"] if audit else record.get("period_to_ms")
    if end_ms is None:
        return datetime.fromisoformat(record["started_at"]).astimezone(UTC).date()
    # an end at midnight, such as of --to, belongs to the previous day
    return datetime.fromtimestamp((end_ms - 1) / 1000, UTC).date()

"""What was collected for an audit run: its period, its brokers, and findings on what is missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from rebalance_core.audit.case import AuditRun, Row
from rebalance_core.audit.finding import Finding
from rebalance_core.audit.missing_files import (
    BROKER_LOG,
    ended_logs,
    files_not_read,
    missing_brokers,
    missing_dumps,
    missing_exports,
    missing_name_servers,
    old_collection,
)
from rebalance_core.model.times import HOUR_MS, MINUTE_MS

CLUSTER_KINDS = (
    "COLLECTED",
    "EXPECTED_BROKER",
    "EXPECTED_NAME_SERVER",
    "BROKER_FILE",
    "BROKER_STORE",
    "NOT_READ",
    "BROKER_SLAVES",
    "NAME_SERVER_FILE",
    "BROKER_IN_CLUSTER",
    "BROKER_REGISTERED",
    "GROUP_CONFIGS",
    "HEARTBEAT_FAILED",
    "BROKER_STARTED",
    "CHANNEL_EVENTS_DROPPED",
)
"""Facts on the cluster; few, they may go to the driver. HEARTBEAT_FAILED: a row for each process
and broker that it did not reach; BROKER_STARTED: one for each start."""
LOG_SILENT_MS = MINUTE_MS
"""A broker that runs writes a line every minute at least: it registers at the name servers."""


def audit_run_of(
    facts: Iterable[Row],
    dumps: Iterable[Row],
    down: frozenset[str],
    stale_hours: float,
    not_before_ms: int | None = None,
) -> tuple[AuditRun, list[Finding]]:
    """The audit run's period and brokers, and findings on what is missing.

    Args:
        facts: observed facts of `CLUSTER_KINDS`.
        dumps: DUMP facts, or the newest by command and broker.
        down: brokers that are down at the end by the events.
        stale_hours: what is older than this at the end says nothing about the present.
        not_before_ms: a collection that ends before is old as a whole.
    """
    by_kind: dict[str, list[Row]] = {}
    for row in facts:
        by_kind.setdefault(row["kind"], []).append(row)
    dumps = list(dumps)
    collected = by_kind.get("COLLECTED", [])
    ends = [row["last_ms"] for row in (*collected, *by_kind.get("BROKER_FILE", ()), *dumps)]
    starts = [row["first_ms"] for row in collected] or ends
    stale_ms = int(stale_hours * HOUR_MS)
    run = AuditRun(min(starts, default=0), max(ends, default=0), stale_ms)
    newest = _newest_of_brokers(by_kind, dumps)
    missing, findings = missing_brokers(by_kind, newest, run, down)
    findings += missing_name_servers(by_kind)
    not_read = by_kind.get("NOT_READ", [])
    findings += files_not_read(not_read)
    findings += missing_dumps([*dumps, *not_read], run)
    findings += missing_exports(by_kind, dumps, run)
    log_ends = _log_ends(by_kind, down)
    findings += ended_logs(by_kind, log_ends, dumps)
    findings += old_collection(run, not_before_ms)
    stores: dict[str, int] = {}
    for row in by_kind.get("GROUP_CONFIGS", ()):
        stores[row["broker_name"]] = max(stores.get(row["broker_name"], 0), row["last_ms"])
    versions = {
        row["broker_name"]: row["details"]["version"]
        for row in by_kind.get("BROKER_IN_CLUSTER", ())
        if row["details"].get("version")
    }
    offsets = {
        row["broker_name"]: row["first_ms"]
        for row in by_kind.get("BROKER_FILE", ())
        if row["details"].get("name") == "consumerOffset.json"
    }
    overloads: dict[str, tuple[tuple[int, int], ...]] = {}
    for row in by_kind.get("CHANNEL_EVENTS_DROPPED", ()):
        spans = overloads.get(row["broker_name"], ())
        overloads[row["broker_name"]] = (*spans, (row["first_ms"], row["last_ms"]))
    run = replace(
        run,
        missing=frozenset(missing),
        store_ms=stores,
        versions=versions,
        offsets_ms=offsets if collected else None,
        log_ends=log_ends,
        overloads=overloads,
    )
    return run, findings


def _newest_of_brokers(
    by_kind: Mapping[str, list[Row]], dumps: Iterable[Row]
) -> dict[str, dict[str, int]]:
    """The newest time of each kind of file of each broker; its dumps are the kind ``dump``."""
    newest: dict[str, dict[str, int]] = {}
    for row in by_kind.get("BROKER_FILE", ()):
        kinds = newest.setdefault(row["broker_name"], {})
        kind = row["details"]["file"]
        if kind == "log" and row["details"].get("name", BROKER_LOG) != BROKER_LOG:
            kind = row["details"]["name"]  # lock.log tells nothing of members
        kinds[kind] = max(kinds.get(kind, 0), row["last_ms"])
    for row in dumps:
        if row["broker_name"]:
            kinds = newest.setdefault(row["broker_name"], {})
            kinds["dump"] = max(kinds.get("dump", 0), row["last_ms"])
    return newest


def _log_ends(by_kind: Mapping[str, list[Row]], down: frozenset[str]) -> dict[str, int]:
    """When the broker.log of each broker that is up ends, where its last line has a time."""
    return {
        row["broker_name"]: int(row["details"]["until_ms"])
        for row in by_kind.get("BROKER_FILE", ())
        if row["details"].get("until_ms") and row["broker_name"] not in down
    }

"""The state of each broker and name server at the end of an audit, for its page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.audit.group_snapshot import AuditRun
from rebalance_core.audit.rules import brokers_down
from rebalance_core.engine.table_writer import ReadWritten
from rebalance_core.model.system_groups import is_system_group
from rebalance_core.report.server_table import (
    DOWN,
    NO_STATE,
    NOT_COLLECTED,
    UP,
    ServerRow,
    in_order,
)

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import FindingsRow

BROKER, NAME_SERVER = "broker", "name server"
_KINDS = {"BROKER": BROKER, "NAME_SERVER": NAME_SERVER}
"""The kind of server for each role in ``coverage``."""
_READ = ("cluster", "consumer_group", "broker_name", "unread", "end_ms")
Backlog = Mapping[tuple[str, str], Mapping[str, Any]]
"""Columns of a `ServerRow` by cluster and broker."""


def server_rows(
    runs: Mapping[str, AuditRun],
    coverage: pa.Table | None,
    read: ReadWritten,
    findings: Iterable[FindingsRow],
) -> tuple[ServerRow, ...]:
    """Return the servers named in any file, in the order of the page.

    Args:
        runs: the audit runs by cluster.
        coverage: the table ``coverage``, if there is one.
        read: reads the tables of the audit.
        findings: the findings of the audit.
    """
    backlog, logs = _backlog(read("queue_progress", None, _READ)), _logs(coverage)
    lost = _lost(findings)
    rows: list[ServerRow] = []
    for cluster, run in sorted(runs.items()):
        rows += [
            replace(row, **lost.get((cluster, row.name), {})) if row.state == DOWN else row
            for row in _brokers(cluster, run, backlog, logs)
        ]
    rows += [
        ServerRow(cluster, host, kind, NO_STATE, log_ms=until_ms)
        for (cluster, host, kind), until_ms in logs.items()
        if kind == NAME_SERVER
    ]
    return in_order(rows)


def _brokers(
    cluster: str,
    run: AuditRun,
    backlog: Backlog,
    logs: Mapping[tuple[str, str, str], int | None],
) -> Iterator[ServerRow]:
    files = {*run.versions, *run.offsets_until_ms, *run.stops}
    of_queues = {broker for name, broker in backlog if name == cluster}
    for name in {*files, *run.outages, *run.down, *run.missing, *of_queues}:
        last = run.outages[name][-1] if name in run.outages else None
        since_ms = None
        if last is not None and last.up_ms is None:
            state, since_ms = DOWN, last.down_ms
        elif name in run.missing:
            state = NOT_COLLECTED
        elif name in files or last is not None:
            state = UP
            back_ms = None if last is None else last.up_ms
            since_ms = back_ms if back_ms is not None and back_ms > run.night_ms else None
        else:
            state = NO_STATE
        yield ServerRow(
            cluster=cluster,
            name=name,
            kind=BROKER,
            state=state,
            since_ms=since_ms,
            log_ms=logs.get((cluster, name, BROKER)),
            version=run.versions.get(name),
            **backlog.get((cluster, name), {}),
        )


def _logs(coverage: pa.Table | None) -> dict[tuple[str, str, str], int | None]:
    """Return when the logs end, by cluster, server and kind."""
    ends: dict[tuple[str, str, str], int | None] = {}
    for row in [] if coverage is None else coverage.to_pylist():
        if (kind := _KINDS.get(row["role"])) is not None:
            name = (row["cluster"], row["host"], kind)
            log_ms = row["to_ms"] if row["kind"].endswith("_log") else None
            ends[name] = max((t for t in (ends.get(name), log_ms) if t is not None), default=None)
    return ends


def _lost(findings: Iterable[FindingsRow]) -> Backlog:
    """Return the queues that no group can read, and their messages, as BROKER_DOWN counts them."""
    rows = [row for row in findings if row["rule_id"] == brokers_down.DOWN.rule_id]
    return {
        (row["cluster"], row["broker_name"]): {
            "queues": int(row["evidence"]["queues"]),
            "unread": None
            if row["evidence"]["behind"] == brokers_down.UNKNOWN
            else int(row["evidence"]["behind"]),
        }
        for row in rows
        if row["consumer_group"] is None and row["broker_name"] and row["last_ms"] is None
    }


def _backlog(progress: pa.Table) -> Backlog:
    """Return the messages waiting in each broker's queues, except for RocketMQ's own groups."""
    groups = progress["consumer_group"].unique()
    own = pa.array([g for g in groups.to_pylist() if is_system_group(g)], pa.string())
    rows = progress.filter(pc.invert(pc.is_in(progress["consumer_group"], own)))
    waits = pc.greater(pc.fill_null(rows["unread"], 0), 0)
    rows = rows.append_column("waits", waits.cast(pa.int64()))
    keys = ["cluster", "broker_name"]
    sums = rows.group_by(keys).aggregate([("waits", "sum"), ("unread", "sum"), ("end_ms", "max")])
    return {
        (row["cluster"], row["broker_name"]): {
            "queues": row["waits_sum"],
            "unread": row["unread_sum"],
            "seen_ms": row["end_ms_max"],
        }
        for row in sums.to_pylist()
    }

"""Removes ownership rows of groups whose owners do not follow from the collected files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.audit.coverage import Process
from rebalance_core.audit.group_snapshot import AuditRun
from rebalance_core.audit.rewritten_ids import order_is_lost
from rebalance_core.audit.unknowns import broker_log
from rebalance_core.model.events import CONSUMER_JOIN
from rebalance_core.model.group_settings import BROADCASTING, PROXY_REBALANCE
from rebalance_core.model.timeline import EVER_MS, Timeline
from rebalance_core.process.covered_starts import rows_by_name

Group = tuple[str, ...]

_GROUP = ("cluster", "consumer_group")
_JOIN = (*_GROUP, "event_type", "client_id", "message_model", "rebalance_mode", "source")
_SETTINGS = (*_GROUP, "message_model", "rebalance_mode", "strategy")
_FOUND = (*_GROUP, "rule_id", "evidence")
STRATEGY_UNKNOWN = "INGEST_STRATEGY_UNKNOWN"
"""Its evidence names the incomplete strategy if a file names it."""
_LOGS = ("clients/", "brokers/")
_BY_OWNERS = ("ownership", "diffs", "pull_starts", "consumer_load", "pop_reach")
"""Tables whose rows depend on ownership; the owner of a queue without a row is unknown."""


class UnknownOwners:
    """Removes the rows about owners from groups whose owners do not follow from the files.

    There are three such cases. Members allocate by their ids or the ids' order, and a tool has
    hashed the ids. Files name a strategy without its parameters or rule; if no file names any, the
    ledger uses the assumed strategy. Or no broker was asked for the group's members, and the
    brokers' logs may lack the join of one, because they begin late or have a gap. Members of a
    broadcasting group read every queue in any case.

    Args:
        runs: the runs, by cluster.
        tables: ``cluster_events``, ``consumer_groups``, ``observed_members`` and ``findings`` of
            the groups.
    """

    def __init__(self, runs: Mapping[str, AuditRun], tables: Mapping[str, pa.Table]) -> None:
        clients: dict[Group, set[str]] = {}
        alone: set[Group] = set()
        hashed = {name for name, run in runs.items() if run.ids_hashed}
        unlogged = {name for name, run in runs.items() if _may_lack_joins(run)}
        settings = {
            _group(row): row
            for row in _of_clusters(tables, "consumer_groups", _SETTINGS, hashed | unlogged)
        }
        shown = {*map(_group, _of_clusters(tables, "observed_members", _GROUP, unlogged))}
        for row in _of_clusters(tables, "cluster_events", _JOIN, hashed | unlogged):
            group = _group(row)
            stated = settings.get(group, {})
            model = row["message_model"] or stated.get("message_model")
            mode = row["rebalance_mode"] or stated.get("rebalance_mode")
            if row["event_type"] != CONSUMER_JOIN or model == BROADCASTING:
                continue
            if group[0] in hashed and mode != PROXY_REBALANCE:
                clients.setdefault(group, set()).add(row["client_id"])
            if group[0] in unlogged:
                logged = (row["source"] or "").startswith(_LOGS)
                (alone if logged else shown).add(group)
        self._groups = alone - shown | {
            group
            for group, ids in clients.items()
            if order_is_lost(runs[group[0]], len(ids), settings.get(group, {}).get("strategy"))
        }
        for row in tables["findings"].select(_FOUND).to_pylist() if "findings" in tables else ():
            if row["rule_id"] == STRATEGY_UNKNOWN and "strategy" in dict(row["evidence"]):
                self._groups.add(_group(row))

    def __call__(self, table: str, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of a ledger table without those of groups with unknown owners."""
        if not self._groups or table not in _BY_OWNERS or not len(rows):
            return rows
        names, codes = rows_by_name(rows, _GROUP)
        owners_known = np.array([name not in self._groups for name in names])
        return rows.filter(pa.array(owners_known[codes]))


def _may_lack_joins(run: AuditRun) -> bool:
    """Return True if a member may have joined while no collected log of a broker recorded it.

    Members register with every broker, so one broker's log fills the gaps of another's.
    """
    coverage = run.coverage
    if not coverage.known:
        return False
    logs: Timeline[Process] = Timeline.always(broker_log("").missing())
    for broker in coverage.brokers:
        logs = logs.refined(coverage.of_broker(broker))
    until_ms = max(map(coverage.ends, coverage.brokers), default=0)
    return logs.gap(-EVER_MS, until_ms) is not None


def _group(row: Mapping[str, Any]) -> Group:
    return row["cluster"], row["consumer_group"]


def _of_clusters(
    tables: Mapping[str, pa.Table], name: str, columns: tuple[str, ...], clusters: set[str]
) -> list[dict[str, Any]]:
    """Return columns of the rows of the given clusters."""
    if not clusters or name not in tables:
        return []
    mine = pc.field("cluster").cast(pa.string()).isin([*clusters])
    rows: list[dict[str, Any]] = tables[name].filter(mine).select(columns).to_pylist()
    return rows

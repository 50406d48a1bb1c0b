"""Removes ownership rows of groups whose owners cannot be derived from the collected files."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.audit.coverage import Process
from rebalance_core.audit.group_snapshot import AuditRun
from rebalance_core.audit.rewritten_ids import order_is_lost
from rebalance_core.audit.unknowns import broker_log
from rebalance_core.engine.fan_out import of_types
from rebalance_core.model.events import CONSUMER_JOIN, TOPIC_CONFIG
from rebalance_core.model.group_settings import BROADCASTING, PROXY_REBALANCE
from rebalance_core.model.timeline import EVER_MS, Timeline
from rebalance_core.process.covered_starts import rows_by_name
from rebalance_core.process.undated_moves import topics_of_groups

Group = tuple[str, str]

_GROUP = ("cluster", "consumer_group")
_JOIN = (*_GROUP, "event_type", "client_id", "message_model", "rebalance_mode")
_SETTINGS = (*_GROUP, "message_model", "rebalance_mode", "strategy")
_FOUND = (*_GROUP, "rule_id", "evidence")
STRATEGY_UNKNOWN = "INGEST_STRATEGY_UNKNOWN"
"""Its evidence names the incomplete strategy if a file names it."""
_TOPIC = ("cluster", "topic", "broker_name")
_LOGS = ("clients/", "brokers/")
_BY_OWNERS = ("ownership", "diffs", "pull_starts", "consumer_load", "pop_reach")
"""Tables whose rows depend on ownership; the owner of a queue without a row is unknown."""


class UnknownOwners:
    """Removes the rows about owners from groups whose owners cannot be derived from the files.

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
        self._groups = _with_hashed_ids(runs, tables) | _unlisted(runs, tables)
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


def _with_hashed_ids(runs: Mapping[str, AuditRun], tables: Mapping[str, pa.Table]) -> set[Group]:
    """Return the groups whose members allocate by ids that a tool has hashed."""
    clients: dict[Group, set[str]] = {}
    hashed = {name for name, run in runs.items() if run.ids_hashed}
    settings = {
        _group(row): row for row in _of_clusters(tables, "consumer_groups", _SETTINGS, hashed)
    }
    for row in _of_clusters(tables, "cluster_events", _JOIN, hashed):
        stated = settings.get(_group(row), {})
        model = row["message_model"] or stated.get("message_model")
        mode = row["rebalance_mode"] or stated.get("rebalance_mode")
        if row["event_type"] == CONSUMER_JOIN and model != BROADCASTING and mode != PROXY_REBALANCE:
            clients.setdefault(_group(row), set()).add(row["client_id"])
    return {
        group
        for group, ids in clients.items()
        if order_is_lost(runs[group[0]], len(ids), settings.get(group, {}).get("strategy"))
    }


def _unlisted(runs: Mapping[str, AuditRun], tables: Mapping[str, pa.Table]) -> set[Group]:
    """Return the groups with members that no broker listed and whose joins may be missing from a
    log.
    """
    incomplete = {name for name, run in runs.items() if _has_gaps(run)}
    if not incomplete:
        return set()
    listed = tables.get("observed_members")
    shown = set() if listed is None else _names(listed, incomplete)
    joins = of_types(tables["cluster_events"], (CONSUMER_JOIN,))
    by_log = pc.or_(*(pc.starts_with(joins["source"].cast(pa.string()), log) for log in _LOGS))
    logged = pc.fill_null(by_log, fill_value=False)
    shown |= _names(joins.filter(pc.invert(logged)), incomplete)
    everyones = pc.field("message_model").cast(pa.string()) == BROADCASTING
    for rows in (joins, tables.get("consumer_groups")):
        shown |= set() if rows is None else _names(rows.filter(everyones), incomplete)
    unlisted = _names(joins.filter(logged), incomplete) - shown
    if not unlisted:
        return set()
    brokers: dict[Group, set[str]] = {}
    configured = of_types(tables["cluster_events"], (TOPIC_CONFIG,), _TOPIC)
    for row in configured.group_by([*_TOPIC]).aggregate([]).to_pylist():
        brokers.setdefault((row["cluster"], row["topic"]), set()).add(row["broker_name"])
    topics = topics_of_groups(tables, {topic for _, topic in brokers})
    return {
        group
        for group in unlisted
        if _may_lack_joins(
            runs[group[0]],
            {
                name
                for topic in topics.get(group, ())
                for name in brokers.get((group[0], topic), ())
            },
        )
    }


def _has_gaps(run: AuditRun) -> bool:
    """Return True if any broker's log begins late, has a gap or was not collected."""
    brokers = run.coverage.brokers
    lacking = any(_may_lack_joins(run, [broker]) for broker in brokers)
    return run.coverage.known and (lacking or not brokers)


def _may_lack_joins(run: AuditRun, brokers: Collection[str]) -> bool:
    """Return True if a member may have joined while no log of these brokers recorded it.

    A member registers with every broker that has a topic of its group, so that the log of one of
    these fills the gaps of another's.
    """
    until_ms = max(map(run.coverage.ends, brokers), default=0)
    logs: Timeline[Process] = Timeline.always(broker_log("").missing())
    for broker in brokers:
        logs = logs.refined(run.coverage.of_broker(broker))
    return logs.gap(-EVER_MS, until_ms) is not None


def _names(rows: pa.Table, clusters: set[str]) -> set[Group]:
    """Return the groups of these clusters in a table."""
    mine = rows.filter(pc.field("cluster").cast(pa.string()).isin([*clusters])).select(_GROUP)
    return {*map(_group, mine.group_by([*_GROUP]).aggregate([]).to_pylist())}


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

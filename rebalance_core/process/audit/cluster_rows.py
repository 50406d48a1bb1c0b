"""What concerns each cluster as a whole, from Arrow tables or parts of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.audit.completeness import CLUSTER_KINDS
from rebalance_core.audit.judge import BROKER_EVENT_COLUMNS, ClusterRows, cluster_rows
from rebalance_core.checks.packed_rows import PackedTables
from rebalance_core.contracts import ALL_TABLES
from rebalance_core.contracts.table import rows_of_arrow
from rebalance_core.model import events

_NAME, _MS = pa.string(), pa.int64()
_EVENTS = ALL_TABLES["cluster_events"].arrow_schema()
_DUMP = ("cluster", "broker_name", "command")
_SCHEMAS = {
    "spans": pa.schema([("cluster", _NAME), ("first_ms", _MS), ("last_ms", _MS)]),
    "facts": ALL_TABLES["observed_facts"].arrow_schema(),
    "dumps": pa.schema([*((name, _NAME) for name in _DUMP), ("first_ms", _MS), ("last_ms", _MS)]),
    "broker_events": pa.schema(_EVENTS.field(name) for name in BROKER_EVENT_COLUMNS),
    "findings": ALL_TABLES["findings"].arrow_schema(),
}


@dataclass(frozen=True, eq=False)
class ClusterTables(PackedTables):
    """What no group's case has; grows with brokers, not with groups.

    Attributes:
        spans: cluster, and first_ms and last_ms of its events.
        facts: observed facts of `CLUSTER_KINDS`.
        dumps: the newest ones by command and broker; observed rows of other origin are dumps too.
        broker_events: `BROKER_EVENT_COLUMNS`.
        findings: those of ingest that are on no group.
    """

    spans: pa.Table
    facts: pa.Table
    dumps: pa.Table
    broker_events: pa.Table
    findings: pa.Table

    @classmethod
    def merged(cls, parts: Iterable[ClusterTables]) -> ClusterTables:
        """Those of all parts."""
        found = [_tables(), *parts]
        all_of = {name: pa.concat_tables(getattr(p, name) for p in found) for name in _SCHEMAS}
        all_of["spans"] = _range(all_of["spans"], ("cluster",))
        all_of["dumps"] = _range(all_of["dumps"], _DUMP)
        return cls(**all_of)

    def by_cluster(self) -> dict[str, ClusterRows]:
        """The rows that a judge of clusters wants, by cluster."""
        return cluster_rows(
            self.spans.to_pylist(),
            rows_of_arrow(self.facts),
            self.dumps.to_pylist(),
            self.broker_events.to_pylist(),
        )


def read_cluster_tables(tables: Mapping[str, pa.Table]) -> ClusterTables:
    """What concerns clusters in input tables, observed tables and findings, by name."""
    parts = (cluster_tables_of(name, rows) for name, rows in tables.items())
    return ClusterTables.merged(part for part in parts if part is not None)


def cluster_tables_of(table: str, rows: pa.Table) -> ClusterTables | None:
    """What concerns clusters in some rows of one table; None: its rows never do."""
    match table:
        case "cluster_events":
            times = rows.select(["cluster", "event_ms", "event_ms"])
            kinds = (*events.BROKER_EVENTS, *events.MASTER_EVENTS)
            return _tables(
                spans=_range(times.rename_columns(_SCHEMAS["spans"].names), ("cluster",)),
                broker_events=_of(rows, "event_type", kinds).select(BROKER_EVENT_COLUMNS),
            )
        case "observed_facts":
            facts = rows.select(_SCHEMAS["facts"].names)
            dumps = _of(facts, "kind", ("DUMP",))
            command = pc.map_lookup(dumps["details"], pa.scalar("command"), "first")
            return _tables(
                facts=_of(facts, "kind", CLUSTER_KINDS),
                dumps=_dumps(dumps, dumps["broker_name"], command, "last_ms"),
            )
        case "observed_ownership":
            return _tables(dumps=_dumps(rows, None, "consumerStatus", "observed_ms"))
        case "observed_members":
            brokers = rows["asked_broker"]
            return _tables(dumps=_dumps(rows, brokers, "consumerConnection", "observed_ms"))
        case "findings":
            on_clusters = rows.filter(rows["consumer_group"].is_null())
            return _tables(findings=on_clusters.select(_SCHEMAS["findings"].names))
    return None


def _tables(**tables: pa.Table) -> ClusterTables:
    """These tables; the others are empty."""
    return ClusterTables(
        **{
            name: tables[name].cast(schema) if name in tables else schema.empty_table()
            for name, schema in _SCHEMAS.items()
        }
    )


def _of(rows: pa.Table, column: str, words: Iterable[str]) -> pa.Table:
    return rows.filter(pc.is_in(rows[column], pa.array(words)))


def _dumps(
    rows: pa.Table, brokers: pa.ChunkedArray | None, command: pa.ChunkedArray | str, ms: str
) -> pa.Table:
    """The newest dumps; ``brokers`` None: of no broker."""
    if brokers is None:
        brokers = pa.nulls(len(rows), _NAME)
    if isinstance(command, str):
        command = pa.repeat(pa.scalar(command), len(rows))
    columns = [rows["cluster"], brokers, command, rows[ms], rows[ms]]
    return _range(pa.table(columns, _SCHEMAS["dumps"].names), _DUMP)


def _range(times: pa.Table, key: tuple[str, ...]) -> pa.Table:
    """The least first_ms and the greatest last_ms of each key."""
    grouped = times.group_by(list(key), use_threads=False)
    made = grouped.aggregate([("first_ms", "min"), ("last_ms", "max")])
    return made.rename_columns([*key, "first_ms", "last_ms"])

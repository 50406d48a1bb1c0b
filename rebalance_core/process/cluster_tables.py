"""The rows that concern whole clusters, taken from Arrow tables or parts of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.audit.cluster_snapshot import (
    ANY_EXPIRED,
    CLUSTER_KINDS,
    MOST_EXPIRED,
    ClusterRows,
    cluster_rows,
)
from rebalance_core.checks.packed_rows import PackedTables
from rebalance_core.contracts import (
    ALL_TABLES,
)
from rebalance_core.contracts.snapshot_tables import BROKER_EVENTS, NEWEST_DUMPS, SPANS
from rebalance_core.contracts.table import rows_of_arrow

if TYPE_CHECKING:
    pass


_DUMP = ("cluster", "broker_name", "command")


@dataclass(frozen=True, eq=False)
class ClusterTables(PackedTables):
    """The rows that belong to no group; their number grows with brokers, not with groups.

    Attributes:
        spans: cluster, with the first_ms and last_ms of its events.
        facts: observed facts of `CLUSTER_KINDS`; for MESSAGES_OF_ANY_EXPIRED, only the newest
            `MOST_EXPIRED` per cluster.
        dumps: the latest dump per command and broker, including observed rows from other sources.
        broker_events: events of the types in `BROKER_EVENTS`.
        findings: findings of ingest that concern no group.
        coverage: all rows of ``coverage``.
    """

    SCHEMAS: ClassVar = {
        "spans": SPANS.arrow_schema(),
        "facts": ALL_TABLES["observed_facts"].arrow_schema(),
        "dumps": NEWEST_DUMPS.arrow_schema(),
        "broker_events": BROKER_EVENTS.arrow_schema(),
        "findings": ALL_TABLES["findings"].arrow_schema(),
        "coverage": ALL_TABLES["coverage"].arrow_schema(),
    }

    spans: pa.Table
    facts: pa.Table
    dumps: pa.Table
    broker_events: pa.Table
    findings: pa.Table
    coverage: pa.Table

    @classmethod
    def merged(cls, parts: Iterable[ClusterTables]) -> ClusterTables:
        """Merge the tables of all parts."""
        all_of = cls.joined(parts)
        all_of["spans"] = _range(all_of["spans"], ("cluster",))
        all_of["dumps"] = _range(all_of["dumps"], _DUMP)
        all_of["facts"] = _few(all_of["facts"])
        return cls(**all_of)

    def by_cluster(self) -> dict[str, ClusterRows]:
        """Return, by cluster, the rows that the cluster rules need."""
        return cluster_rows(
            self.spans.to_pylist(),
            rows_of_arrow(self.facts),
            self.dumps.to_pylist(),
            self.broker_events.to_pylist(),
            self.coverage.to_pylist(),
        )


def read_cluster_tables(tables: Mapping[str, pa.Table]) -> ClusterTables:
    """Read the rows that concern clusters from input tables, observed tables and findings, given by
    name.
    """
    parts = (cluster_tables_of(name, rows) for name, rows in tables.items())
    return ClusterTables.merged(part for part in parts if part is not None)


def cluster_tables_of(table: str, rows: pa.Table) -> ClusterTables | None:
    """Return the rows of a table that concern clusters, or None for a table without such rows."""
    match table:
        case "cluster_events":
            times = rows.select(["cluster", "event_ms", "event_ms"])
            kinds = BROKER_EVENTS.column("event_type").allowed
            return ClusterTables.of(
                spans=_range(
                    times.rename_columns(ClusterTables.SCHEMAS["spans"].names), ("cluster",)
                ),
                broker_events=_of(rows, "event_type", kinds).select(BROKER_EVENTS.column_names),
            )
        case "observed_facts":
            facts = rows.select(ClusterTables.SCHEMAS["facts"].names)
            dumps = _of(facts, "kind", ("DUMP",))
            command = pc.map_lookup(dumps["details"], pa.scalar("command"), "first")
            return ClusterTables.of(
                facts=_few(_of(facts, "kind", CLUSTER_KINDS)),
                dumps=_dumps(dumps, dumps["broker_name"], command, "last_ms"),
            )
        case "observed_ownership":
            return ClusterTables.of(dumps=_dumps(rows, None, "consumerStatus", "observed_ms"))
        case "observed_members":
            brokers = rows["asked_broker"]
            return ClusterTables.of(
                dumps=_dumps(rows, brokers, "consumerConnection", "observed_ms")
            )
        case "findings":
            on_clusters = rows.filter(rows["consumer_group"].is_null())
            return ClusterTables.of(
                findings=on_clusters.select(ClusterTables.SCHEMAS["findings"].names)
            )
        case "coverage":
            return ClusterTables.of(coverage=rows.select(ClusterTables.SCHEMAS["coverage"].names))
    return None


def _of(rows: pa.Table, column: str, words: Iterable[str]) -> pa.Table:
    return rows.filter(pc.is_in(rows[column], pa.array(words)))


def _few(facts: pa.Table) -> pa.Table:
    """Return the facts with at most `MOST_EXPIRED` of the kind that grows with clients."""
    expired = _of(facts, "kind", (ANY_EXPIRED,))
    if len(expired) <= MOST_EXPIRED:
        return facts
    rest = facts.filter(pc.not_equal(facts["kind"], ANY_EXPIRED))
    order = [("last_ms", "descending"), ("source", "ascending")]
    newest = (
        _of(expired, "cluster", [name]).sort_by(order).slice(0, MOST_EXPIRED)
        for name in pc.unique(expired["cluster"]).to_pylist()
    )
    return pa.concat_tables([rest, *newest])


def _dumps(
    rows: pa.Table, brokers: pa.ChunkedArray | None, command: pa.ChunkedArray | str, ms: str
) -> pa.Table:
    """Return the latest dumps; without ``brokers``, they name no broker."""
    if brokers is None:
        brokers = pa.nulls(len(rows), pa.string())
    if isinstance(command, str):
        command = pa.repeat(pa.scalar(command), len(rows))
    columns = [rows["cluster"], brokers, command, rows[ms], rows[ms]]
    return _range(pa.table(columns, ClusterTables.SCHEMAS["dumps"].names), _DUMP)


def _range(times: pa.Table, key: tuple[str, ...]) -> pa.Table:
    """Return the smallest first_ms and the largest last_ms of each key."""
    grouped = times.group_by(list(key), use_threads=False)
    made = grouped.aggregate([("first_ms", "min"), ("last_ms", "max")])
    return made.rename_columns([*key, "first_ms", "last_ms"])

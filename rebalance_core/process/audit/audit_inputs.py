"""The tables that an audit reads: a simulation's input, what it is compared with, and rows on
clusters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.audit.completeness import CLUSTER_KINDS
from rebalance_core.audit.judge import BROKER_EVENT_COLUMNS, ClusterRows, cluster_rows
from rebalance_core.checks.input_tables import (
    InputTables,
    input_tables_of,
    read_input_tables,
    read_table,
    stored_input_tables,
    stored_table,
)
from rebalance_core.checks.locations import local_tables
from rebalance_core.checks.packed_rows import PackedTables
from rebalance_core.checks.row_checks import check_table
from rebalance_core.contracts import (
    ALL_TABLES,
    FINDING_TABLES,
    INGESTED_TABLES,
    INPUT_TABLES,
    OBSERVED_TABLES,
    REJECTED,
)
from rebalance_core.contracts.propagation import PROPAGATION
from rebalance_core.contracts.table import batch_of_rows, rows_of_arrow
from rebalance_core.ingest.collection.collection import Collection
from rebalance_core.ingest.collection.collection_settings import Assumptions
from rebalance_core.ingest.in_process import read_collection
from rebalance_core.model import events
from rebalance_core.process.written_tables import read_written
from rebalance_core.storage.place import Location, Place

# What an audit compares with: the observed tables, and the findings of an ingest.

READ_TABLES = (*OBSERVED_TABLES, *FINDING_TABLES)


@dataclass(frozen=True, eq=False)
class Observed:
    """The tables by name, each there and maybe empty; ``rejected`` has the rows that are none."""

    tables: Mapping[str, pa.Table]
    rejected: pa.Table


def read_observed(folder: str) -> Observed:
    """The tables that lie by name in the local folder, as `read_input_tables` reads its own.

    Raises:
        InputRefused: a table lacks columns, is there twice or is not readable.
    """
    locations = local_tables(folder, READ_TABLES)
    return observed({n: read_table(ALL_TABLES[n], path)[0] for n, path in locations.items()})


def stored_observed(folder: Place) -> Observed:
    """The tables that a job wrote into a folder, wherever that is.

    Raises:
        InputRefused: a table lacks columns, or a file cannot be read.
    """
    return observed({n: stored_table(ALL_TABLES[n], folder / n)[0] for n in READ_TABLES})


def observed(tables: Mapping[str, pa.Table]) -> Observed:
    """The tables out of Arrow tables by name, checked; those that are not there are empty.

    Raises:
        InputRefused: a table lacks columns.
    """
    good: dict[str, pa.Table] = {}
    rejected = [REJECTED.arrow_schema().empty_table()]
    for name in READ_TABLES:
        table = ALL_TABLES[name]
        if name not in tables:
            good[name] = table.arrow_schema().empty_table()
            continue
        checked = check_table(name, tables[name])
        good[name] = checked.tables[name].select(table.column_names)
        rejected.append(checked.rejected)
    return Observed(good, pa.concat_tables(rejected))


# What concerns each cluster as a whole, from Arrow tables or parts of them.

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


# The tables that an audit reads: the input of a simulation, and what it is compared with.


@dataclass(frozen=True, eq=False)
class AuditInputs:
    """The tables of an audit.

    Attributes:
        history: the input of its simulation, as read.
        seen: the observed tables, ingest's findings and ``propagation``, if it is there; checked.
    """

    history: InputTables
    seen: Observed

    def with_propagation(self, folder: Location) -> AuditInputs:
        """The same, and what `propagate` wrote into a folder."""
        name = PROPAGATION.name
        checked = check_table(name, read_written(folder, name))
        rows = checked.tables[name].select(PROPAGATION.column_names)
        rejected = pa.concat_tables([self.seen.rejected, checked.rejected])
        return replace(self, seen=Observed({**self.seen.tables, name: rows}, rejected))


def read_inputs(folder: str) -> AuditInputs:
    """The tables that lie by name in a local folder.

    Raises:
        InputRefused: a table lacks columns, is there twice or is not readable.
    """
    return AuditInputs(read_input_tables(folder), read_observed(folder))


def read_ingested(folder: Place) -> AuditInputs:
    """The tables that an ingest of ours wrote into a folder, wherever that is."""
    return AuditInputs(stored_input_tables(folder), stored_observed(folder))


def unwritten_inputs(collection: Collection, assumed: Assumptions) -> AuditInputs:
    """What an ingest makes of a collection."""
    ingested = read_collection(collection, assumed).tables
    tables = {
        name: pa.Table.from_batches([batch_of_rows(table, ingested.get(name, []))])
        for name, table in INGESTED_TABLES.items()
    }
    history = input_tables_of({name: tables[name] for name in INPUT_TABLES})
    return AuditInputs(history, observed({name: tables[name] for name in READ_TABLES}))

"""A whole audit on a cluster: the functions of `process.audit`, in tasks that have whole groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from rebalance_core.checks import row_limits
from rebalance_core.checks.conform import unknown_columns
from rebalance_core.checks.row_checks import Rejections
from rebalance_core.checks.row_limits import BadRowLimits, RowCounts
from rebalance_core.contracts import AUDITED_TABLES, INPUT_TABLES, LEDGER_TABLES, REJECTED
from rebalance_core.contracts.observed import COVERAGE
from rebalance_core.contracts.propagation import PROPAGATION
from rebalance_core.engine.fan_out import without_text
from rebalance_core.engine.options import (
    LedgerConfig,
    RowForecast,
    SimulationOptions,
    engine_options,
    refuse_rejected,
    row_forecast,
)
from rebalance_core.engine.routing import (
    UNDIVIDED,
    Interests,
    Routing,
    interests_of_named,
    refuse_unnamed_group,
    routing_of,
)
from rebalance_core.engine.table_writer import ledger_written
from rebalance_core.ingest.collection import Collection
from rebalance_core.ingest.collection_settings import Assumptions
from rebalance_core.process.audit_cases import ClusterTables, cluster_tables_of
from rebalance_core.process.audit_pass import AuditedClusters, AuditPart, AuditPass, audit_clusters
from rebalance_core.process.audited import AuditResult, AuditWritten
from rebalance_core.process.runtime import TableRows
from rebalance_core.spark.checks import CheckedFrames, check_and_count
from rebalance_core.spark.ingest import ingested_tables
from rebalance_core.spark.read_tables import (
    READ_TABLES,
    InputTables,
    observed,
    read_observed,
    stored_tables,
)
from rebalance_core.spark.routed_rows import routed_rows, routed_tables
from rebalance_core.spark.sources import (
    Source,
    read_written,
    refuse_changed,
    source_of,
    task_count,
)
from rebalance_core.spark.task_tables import make_unwritten, task_tables
from rebalance_core.storage.place import object_store

# The tables that an audit reads: the input of a simulation, and what it is compared with.


@dataclass(frozen=True, eq=False)
class AuditFrames:
    """The tables of an audit, as read; lazy.

    Attributes:
        history: the input of its simulation.
        seen: by name the observed tables, ingest's findings and ``propagation`` that are there.
        rejected: rows of ``rejected`` that came up before; None: of no ingest.
    """

    history: InputTables
    seen: Mapping[str, Source]
    rejected: DataFrame | None = None

    def sources(self) -> dict[str, Source]:
        """All of them by name."""
        return {**self.history.sources(), **self.seen}

    def with_propagation(self, session: SparkSession, folder: str) -> AuditFrames:
        """The same, and what `propagate` wrote into a folder."""
        refuse_changed(session, folder, [PROPAGATION.name])
        source = source_of(PROPAGATION, read_written(session, folder, PROPAGATION.name))
        return replace(self, seen={**self.seen, PROPAGATION.name: source})


def read_inputs(session: SparkSession, folder: str) -> AuditFrames:
    """The tables that lie by name in a folder.

    Raises:
        InputRefused: a table lacks columns, is there twice or is not readable.
    """
    return AuditFrames(InputTables.read(session, folder), read_observed(session, folder))


def read_ingested(session: SparkSession, folder: str) -> AuditFrames:
    """The tables that an ingest of ours wrote into a folder."""
    rejected, store = read_written(session, folder, REJECTED.name), object_store(folder)
    if store is None:
        return replace(read_inputs(session, folder), rejected=rejected)
    seen = stored_tables(session, store, READ_TABLES)
    return AuditFrames(InputTables.read_stored(session, store), seen, rejected)


def unwritten_inputs(
    session: SparkSession, collection: Collection, assumed: Assumptions, kept: ExitStack
) -> AuditFrames:
    """Make the input tables of a collection as an ingest does; ``kept`` releases it in the end."""
    tables = kept.enter_context(ingested_tables(session, collection, assumed))
    history: dict[str, Any] = {name: tables[name] for name in INPUT_TABLES}
    return AuditFrames(InputTables(**history), observed(tables))


# What tasks do for an audit, each with the rows of whole groups (`routed_rows`).

Batches = Iterable[pa.RecordBatch]
_NO_ROWS = REJECTED.arrow_schema().empty_table()


@dataclass(frozen=True)
class AuditRouting:
    """`Routing`, and facts that name no group but may concern any.

    Attributes:
        groups: Where the rows of groups go.
    """

    groups: Routing

    @property
    def buckets(self) -> int:
        """Return how many there are."""
        return self.groups.buckets

    def split(self, table: str, rows: pa.Table) -> Iterator[tuple[int, pa.Table]]:
        """As `Routing.split`. Facts on the routes of groups' pop retry topics go everywhere."""
        if table == COVERAGE.name:
            return  # it is of no group; the driver has it
        yield from self.groups.split(table, rows)
        if table == "observed_facts":
            of_nobody = pc.and_(
                pc.equal(rows["kind"], "MISSING_ROUTE"), rows["consumer_group"].is_null()
            )
            facts = without_text(rows).filter(of_nobody)
            yield from ((bucket, facts) for bucket in range(self.buckets) if len(facts))


@dataclass(frozen=True, slots=True)
class AuditTask:
    """Rows of the ledger; its facts are an `AuditPart`.

    Attributes:
        audit_pass: Simulates and audits them.
        salt: Of the names that are written for client ids; None: these are.
    """

    audit_pass: AuditPass
    salt: str | None

    def __call__(self, batches: Batches, part: AuditPart) -> TableRows:
        """`Work` of `task_tables`."""
        return part.shown(self._made(batches, part), self.salt)

    def _made(self, batches: Batches, part: AuditPart) -> Iterator[tuple[str, pa.RecordBatch]]:
        for _, tables in routed_tables(batches):
            for bad in tables.pop(REJECTED.name, _NO_ROWS).to_batches():
                yield REJECTED.name, bad
            yield from self.audit_pass.rows(tables, part.group_findings)


# The tables of an audit on their way to its tasks: checked, clusters judged, groups dealt out.

_NOTINGS = (interests_of_named, cluster_tables_of)


@dataclass(frozen=True)
class RoutedAudit:
    """The checked rows, and what tasks make of them.

    Attributes:
        checked: All tables.
        routing: Where their rows go.
        audited: Of clusters and groups.
        work: Of the tasks.
    """

    checked: CheckedFrames
    routing: AuditRouting
    audited: AuditedClusters
    work: AuditTask

    def rows(self, more_rejected: DataFrame | None = None) -> DataFrame:
        """The rows of each task.

        Args:
            more_rejected: Rows of ``rejected`` that came up before.
        """
        return routed_rows(self.checked, self.routing, more_rejected=more_rejected)


def checked_tables(
    inputs: AuditFrames, options: SimulationOptions, warn: Callable[[str], object] | None
) -> CheckedFrames:
    """All tables checked, in one job; kept until closed.

    Args:
        inputs: The tables as read.
        options: Of the simulation.
        warn: Gets a text for each table of the history with unknown columns.
    """
    checked = check_and_count(inputs, options.max_queue_nums, _NOTINGS)
    for name, columns in checked.unknown.items():
        if warn is not None and name in INPUT_TABLES:
            warn(unknown_columns(name, columns))
    return checked


def of_history(checked: CheckedFrames) -> dict[str, RowCounts]:
    """The counts that limits hold for: of what is only compared with, any row may be bad."""
    return {name: count for name, count in checked.counts.items() if name in INPUT_TABLES}


def routed_audit(
    session: SparkSession,
    checked: CheckedFrames,
    options: SimulationOptions,
    rule_options: Mapping[str, Any],
) -> RoutedAudit:
    """Judge the clusters, and deal groups out to as many tasks as their rows need.

    Args:
        session: Its default parallelism is asked for.
        checked: Of `checked_tables`.
        options: Of the simulation.
        rule_options: Those of `audit_clusters`.
    """
    audited = audit_clusters(checked.stats(ClusterTables), **rule_options)
    rows = sum(count.rows for count in checked.counts.values())
    tasks = options.partitions or task_count(rows, session)
    # a group is judged by all its rows
    routing = AuditRouting(routing_of(checked.stats(Interests), tasks, giant_cells=UNDIVIDED))
    audit_pass = AuditPass(audited.groups, engine_options(checked.tables, options), options)
    return RoutedAudit(checked, routing, audited, AuditTask(audit_pass, audited.groups.salt))


# A whole audit of tables: check them, simulate, judge clusters and groups, write the tables.


def audit_and_write(
    session: SparkSession,
    inputs: AuditFrames,
    output: str,
    options: SimulationOptions | None = None,
    config: LedgerConfig | None = None,
    *,
    findings_per_rule: int,
    before_writing: Callable[[], object] | None = None,
    warn: Callable[[str], object] | None = None,
    **rule_options: Any,
) -> AuditWritten:
    """Simulate, judge, and write the ledger, ``findings`` and ``group_verdicts``.

    Memory: of the driver all findings and verdicts; of a task the rows of its groups, and the
    ledger of some of them (`AuditPass`).

    Args:
        session: Any session; its default parallelism is asked for.
        inputs: See there.
        output: Path or URI of a folder, which gets the tables; none of them may be there.
        options: Of the simulation, as `process.audit.audit_and_write` takes them.
        config: See `LedgerConfig`.
        findings_per_rule: Of each rule the worst findings are written.
        before_writing: Called once few enough rows are bad, before the first table is written.
        warn: Gets a text for each input table with unknown columns, which are not read.
        rule_options: Those of `audit_clusters`; with ``redact_salt`` the ledger shows no client
            id either, and a refusal no row.

    Raises:
        InputRefused: The input has no event or too many bad rows. Events that name a member who is
            not there count too, and are known only once ``rejected`` is written.
        OutputExists: A table is in the folder already.
    """
    options, config = options or SimulationOptions(), config or LedgerConfig()
    checked = checked_tables(inputs, options, warn)
    counts, limits = of_history(checked), config.bad_rows
    hidden = tuple if rule_options.get("redact_salt") is not None else None
    with closing(checked):
        row_limits.refuse_bad_rows(counts, limits, hidden or checked.rejections.complaints)
        refuse_unnamed_group(options.group, checked.stats(Interests))
        if before_writing is not None:
            before_writing()
        routed = routed_audit(session, checked, options, rule_options)
        with task_tables(session, output, tuple(AUDITED_TABLES)) as tables:
            rows = routed.rows(inputs.rejected)
            part = tables.make(rows, routed.work, AuditPart, tuple(LEDGER_TABLES))
            refuse_rejected(counts, part.facts.rejected, limits, hidden)
            result = routed.audited.result(part.group_findings.rows(), options)
            for name, found in result.tables(findings_per_rule).items():
                tables.add(name, found)
            written = tables.finish()
    ledger = ledger_written(written, part.facts, checked.counts, config.worst_groups)
    return AuditWritten(result, ledger)


def audit_unwritten(
    session: SparkSession,
    inputs: AuditFrames,
    options: SimulationOptions,
    limits: BadRowLimits,
    *,
    warn: Callable[[str], object] | None = None,
    **rule_options: Any,
) -> tuple[RowForecast, AuditResult | None]:
    """Foretell how `audit_and_write` would end, and what it would find; writes nothing.

    None: it would refuse the rows.
    """
    checked, part = checked_tables(inputs, options, warn), AuditPart()
    with closing(checked):
        refuse_unnamed_group(options.group, checked.stats(Interests))
        routed = routed_audit(session, checked, options, rule_options)

        def simulated() -> Rejections:
            part.merge(make_unwritten(routed.rows(), routed.work, AuditPart))
            return part.facts.rejected.of_tables(INPUT_TABLES)

        known = checked.rejections.of_tables(INPUT_TABLES)
        forecast = row_forecast(of_history(checked), known, limits, lambda: None, simulated)
    if forecast.refusal is not None:
        return forecast, None
    return forecast, routed.audited.result(part.group_findings.rows(), options)

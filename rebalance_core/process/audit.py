"""The audit job: check tables, simulate, judge clusters and groups, write the results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.checks import row_limits
from rebalance_core.checks.input_tables import ArrowTables, input_tables_of, read_input_tables
from rebalance_core.checks.rejections import Rejections
from rebalance_core.checks.row_checks import Checked, check_table, check_tables
from rebalance_core.checks.row_counts import RowCounts
from rebalance_core.checks.row_limits import BadRowLimits
from rebalance_core.contracts import (
    AUDITED_TABLES,
    COLLECTED_TABLES,
    INPUT_TABLES,
    REJECTED,
)
from rebalance_core.contracts.observed import COVERAGE
from rebalance_core.contracts.propagation import PROPAGATION
from rebalance_core.contracts.table import batch_of_rows
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
from rebalance_core.engine.table_writer import ledger_written, read_written
from rebalance_core.ingest.assumptions import Assumptions
from rebalance_core.ingest.collection import Collection
from rebalance_core.ingest.in_process import read_collection
from rebalance_core.ingest.rows import by_name
from rebalance_core.process.audit_pass import (
    STREAMED_TABLES,
    AuditedClusters,
    AuditPass,
    PartialAudit,
    audit_clusters,
)
from rebalance_core.process.audited import AuditResult, AuditWritten
from rebalance_core.process.cluster_tables import ClusterTables, cluster_tables_of
from rebalance_core.process.ingested_rows import opening_rows
from rebalance_core.process.observed_tables import READ_TABLES, Observed, observed, read_observed
from rebalance_core.process.runtime import (
    HERE,
    CheckedHere,
    CheckedInput,
    Part,
    Rows,
    Runtime,
    StatsOf,
    TableRows,
)
from rebalance_core.storage.place import Location, Place, place_of
from rebalance_core.storage.run_folder import refuse_changed

Progress = Callable[[int, int], object]


@dataclass(frozen=True, eq=False)
class AuditInputs:
    """The tables of an audit.

    Attributes:
        history: the input of its simulation, as read.
        seen: the checked observed tables, ingest's findings and, if it exists, ``propagation``.
        rejected: rows of ``rejected`` from the ingest; None without an ingest.
    """

    history: ArrowTables
    seen: Observed
    rejected: pa.Table | None = None

    @contextmanager
    def checked(
        self,
        stats_of: tuple[StatsOf, ...],
        max_queue_nums: int,
        warn: Callable[[str], object] | None,
    ) -> Iterator[CheckedHere]:
        """Check the history, and yield it together with the tables with which it is compared."""
        history = check_tables(self.history, max_queue_nums=max_queue_nums, warn=warn)
        tables = {**history.tables, **self.seen.tables}
        rejected = pa.concat_tables([self.seen.rejected, history.rejected])
        yield CheckedHere(
            Checked(tables, rejected, {**history.counts, **self.seen.counts}), stats_of
        )

    def with_propagation(self, folder: Location) -> AuditInputs:
        """Return these tables together with those that `propagate` wrote into a folder."""
        name = PROPAGATION.name
        refuse_changed(place_of(folder), [name])
        checked = check_table(name, read_written(folder, name))
        rows = checked.tables[name].select(PROPAGATION.column_names)
        rejected = pa.concat_tables([self.seen.rejected, checked.rejected])
        tables = {**self.seen.tables, name: rows}
        counts = {**self.seen.counts, **checked.counts}
        return replace(self, seen=Observed(tables, rejected, counts))


def read_inputs(folder: Location) -> AuditInputs:
    """Return the tables in a folder, by name.

    Raises:
        InputRefused: a table lacks columns, appears twice or is not readable.
    """
    return AuditInputs(read_input_tables(folder), read_observed(folder))


def read_ingested(folder: Place) -> AuditInputs:
    """Return the tables that `ingest` wrote into a folder of any kind."""
    return replace(read_inputs(folder), rejected=read_written(folder, REJECTED.name))


def unwritten_inputs(collection: Collection, assumed: Assumptions) -> AuditInputs:
    """Make the input tables from a collection as an ingest does, without writing them."""
    read = read_collection(collection, assumed, opening=opening_rows(collection))
    ingested = by_name(read.tables)
    tables = {
        name: pa.Table.from_batches([batch_of_rows(table, ingested.get(name, []))])
        for name, table in COLLECTED_TABLES.items()
    }
    history = input_tables_of({name: tables[name] for name in INPUT_TABLES})
    return AuditInputs(history, observed({name: tables[name] for name in READ_TABLES}))


_NO_ROWS = REJECTED.arrow_schema().empty_table()


@dataclass(frozen=True)
class AuditRouting:
    """A `Routing` that also distributes facts that name no group but may concern any.

    Attributes:
        groups: Where the rows of groups go.
    """

    groups: Routing

    @property
    def buckets(self) -> int:
        """Return the number of buckets."""
        return self.groups.buckets

    @property
    def units(self) -> int:
        """Return the number of groups."""
        return self.groups.units

    def split(self, table: str, rows: pa.Table) -> Iterator[tuple[int, pa.Table]]:
        """Split as `Routing.split` does, but send facts about routes of pop retry topics to every
        bucket.
        """
        if table == COVERAGE.name:
            return  # belongs to no group; the driver reads it
        yield from self.groups.split(table, rows)
        if table == "observed_facts":
            of_nobody = pc.and_(
                pc.equal(rows["kind"], "MISSING_ROUTE"), rows["consumer_group"].is_null()
            )
            facts = without_text(rows).filter(of_nobody)
            yield from ((bucket, facts) for bucket in range(self.buckets) if len(facts))


@dataclass(frozen=True, slots=True)
class AuditTask:
    """`Work` that yields the rows of the ledger; its facts are a `PartialAudit`.

    Attributes:
        audit_pass: Simulates and audits groups.
        salt: The salt of the names that replace client ids; None to write the ids.
        progress: Called with the number of judged groups and the total.
    """

    VERB: ClassVar[str] = "audit"
    audit_pass: AuditPass
    salt: str | None
    progress: Progress | None = None

    def __call__(self, parts: Iterable[Part], part: PartialAudit) -> TableRows:
        """Return the rows of the ledger, redacted if there is a salt."""
        return part.shown(self._made(parts, part), self.salt)

    def _made(
        self, parts: Iterable[Part], part: PartialAudit
    ) -> Iterator[tuple[str, pa.RecordBatch]]:
        for _, tables in parts:
            for bad in tables.pop(REJECTED.name, _NO_ROWS).to_batches():
                yield REJECTED.name, bad
            yield from self.audit_pass.rows(tables, part.group_findings, self.progress)


_COUNTED = (interests_of_named, cluster_tables_of)


class InputsOfAudit(Protocol):
    """The tables of an audit: `AuditInputs`, or those of another runtime."""

    @property
    def rejected(self) -> Any:
        """Rows of ``rejected`` from earlier steps, as a table of the runtime."""

    def checked(
        self,
        stats_of: tuple[StatsOf, ...],
        max_queue_nums: int,
        warn: Callable[[str], object] | None,
    ) -> AbstractContextManager[CheckedInput]:
        """Check all tables; warn about unknown columns in the history."""

    def with_propagation(self, folder: Any) -> InputsOfAudit:
        """Return these tables together with those that `propagate` wrote into a folder."""


def audit_and_write(
    inputs: InputsOfAudit,
    output: Location,
    options: SimulationOptions | None = None,
    config: LedgerConfig | None = None,
    *,
    findings_per_rule: int,
    before_writing: Callable[[], object] | None = None,
    warn: Callable[[str], object] | None = None,
    progress: Progress | None = None,
    runtime: Runtime = HERE,
    **rule_options: Any,
) -> AuditWritten:
    """Simulate, judge, and write the ledger, ``findings`` and ``group_verdicts``.

    Memory: a task holds the rows of its groups and the ledger of some of them (`AuditPass`); the
    driver holds all findings and verdicts.

    Args:
        inputs: the tables of the audit.
        output: the folder for the tables (`place_of`); none of them may exist in it.
        options: the simulation's options; the engine is ignored. Groups that do not match ``group``
            are neither judged nor written. A group's rows outside [from_ms, to_ms) are used to
            judge it but are not written.
        config: see `LedgerConfig`.
        findings_per_rule: maximum number of findings written per rule, worst first.
        before_writing: called before the first table is written, once the bad rows are known to be
            within the limits.
        warn: receives a message for each input table with unknown columns, which are ignored.
        progress: called with the number of judged groups and the total; only in-process.
        runtime: where the job runs.
        rule_options: those of `audit_clusters`; with ``redact_salt``, the ledger has no client ids
            and refusals quote no rows.

    Raises:
        InputRefused: the input has no events, no selected group or too many bad rows. Events of
            missing members count as bad but are only known once the ledger is written.
        OutputExists: the folder already has one of the tables.
    """
    options, config = options or SimulationOptions(), config or LedgerConfig()
    hidden = tuple if rule_options.get("redact_salt") is not None else None
    with inputs.checked(_COUNTED, options.max_queue_nums, warn) as checked:
        counts, rejections = of_history(checked)
        row_limits.refuse_bad_rows(counts, config.bad_rows, hidden or rejections.complaints)
        refuse_unnamed_group(options.group, checked.stats(Interests))
        if before_writing is not None:
            before_writing()
        rows, work, audited = _dealt(
            runtime, checked, options, rule_options, progress, inputs.rejected
        )
        with runtime.tables(output, AUDITED_TABLES) as tables:
            part = tables.write(rows, work, PartialAudit, STREAMED_TABLES)
            refuse_rejected(counts, part.facts.rejected, config.bad_rows, hidden)
            result = audited.result(part.group_findings.rows(), options)
            for name, table in result.tables(findings_per_rule).items():
                tables.add(name, table)
            written = tables.finish()
    ledger = ledger_written(written, part.facts, checked.counts, config.worst_groups)
    return AuditWritten(result, ledger)


def audit_unwritten(
    inputs: InputsOfAudit,
    options: SimulationOptions,
    limits: BadRowLimits,
    *,
    warn: Callable[[str], object] | None = None,
    progress: Progress | None = None,
    runtime: Runtime = HERE,
    **rule_options: Any,
) -> tuple[RowForecast, AuditResult | None]:
    """Return how `audit_and_write` would judge the input's rows, and what it would find, without
    writing anything.

    The result is None if it would refuse the rows.
    """
    part = PartialAudit()
    with inputs.checked(_COUNTED, options.max_queue_nums, warn) as checked:
        counts, rejections = of_history(checked)
        refuse_unnamed_group(options.group, checked.stats(Interests))
        rows, work, audited = _dealt(runtime, checked, options, rule_options, progress)

        def simulated() -> Rejections:
            part.merge(runtime.run(rows, work, PartialAudit))
            return part.facts.rejected.of_tables(INPUT_TABLES)

        forecast = row_forecast(counts, rejections, limits, lambda: None, simulated)
    if forecast.refusal is not None:
        return forecast, None
    return forecast, audited.result(part.group_findings.rows(), options)


def of_history(checked: CheckedInput) -> tuple[dict[str, RowCounts], Rejections]:
    """Return the counts and rejections of the input tables, the only ones that the limits on bad
    rows cover.
    """
    counts = {name: count for name, count in checked.counts.items() if name in INPUT_TABLES}
    return counts, checked.rejections.of_tables(INPUT_TABLES)


def _dealt(
    runtime: Runtime,
    checked: CheckedInput,
    options: SimulationOptions,
    rule_options: Mapping[str, Any],
    progress: Progress | None,
    more_rejected: Any = None,
) -> tuple[Rows, AuditTask, AuditedClusters]:
    """Judge the clusters, and distribute groups to as many tasks as their rows need."""
    audited = audit_clusters(checked.stats(ClusterTables), **rule_options)
    count = sum(count.rows for count in checked.counts.values())
    tasks = runtime.task_count(count, wanted=options.partitions)
    # a verdict needs all rows of its group
    routing = AuditRouting(routing_of(checked.stats(Interests), tasks, giant_cells=UNDIVIDED))
    audit_pass = AuditPass(audited.groups, engine_options(checked.tables, options), options)
    rows = runtime.deal(checked, routing, more_rejected=more_rejected)
    return rows, AuditTask(audit_pass, audited.groups.salt, progress), audited

"""A whole audit in this process: check tables, simulate, judge clusters and groups, write."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from rebalance_core.checks import row_limits
from rebalance_core.checks.input_tables import ArrowTables, input_tables_of, read_input_tables
from rebalance_core.checks.row_checks import Checked, Rejections, check_table, check_tables
from rebalance_core.checks.row_limits import BadRowLimits
from rebalance_core.contracts import AUDITED_TABLES, INGESTED_TABLES, INPUT_TABLES, REJECTED
from rebalance_core.contracts.propagation import PROPAGATION
from rebalance_core.contracts.table import batch_of_rows
from rebalance_core.engine.ledger_pass import LedgerRows
from rebalance_core.engine.options import (
    LedgerConfig,
    RowForecast,
    SimulationOptions,
    engine_options,
    refuse_rejected,
    row_forecast,
)
from rebalance_core.engine.routing import Interests, interests_of_named, refuse_unnamed_group
from rebalance_core.engine.table_writer import TableWriters, ledger_written, read_written
from rebalance_core.ingest.collection import Collection
from rebalance_core.ingest.collection_settings import Assumptions
from rebalance_core.ingest.in_process import read_collection
from rebalance_core.process.audit_cases import (
    READ_TABLES,
    Observed,
    observed,
    read_cluster_tables,
    read_observed,
)
from rebalance_core.process.audit_pass import AuditedClusters, AuditPart, AuditPass, audit_clusters
from rebalance_core.process.audited import AuditResult, AuditWritten
from rebalance_core.storage.place import Location, Place, place_of
from rebalance_core.storage.run_folder import refuse_changed

Progress = Callable[[int, int], object]

# The tables that an audit reads: the input of a simulation, and what it is compared with.


@dataclass(frozen=True, eq=False)
class AuditInputs:
    """The tables of an audit.

    Attributes:
        history: the input of its simulation, as read.
        seen: the observed tables, ingest's findings and ``propagation``, if it is there; checked.
        rejected: rows of ``rejected`` that came up before; None: of no ingest.
    """

    history: ArrowTables
    seen: Observed
    rejected: pa.Table | None = None

    def with_propagation(self, folder: Location) -> AuditInputs:
        """The same, and what `propagate` wrote into a folder."""
        name = PROPAGATION.name
        refuse_changed(place_of(folder), [name])
        checked = check_table(name, read_written(folder, name))
        rows = checked.tables[name].select(PROPAGATION.column_names)
        rejected = pa.concat_tables([self.seen.rejected, checked.rejected])
        tables = {**self.seen.tables, name: rows}
        counts = {**self.seen.counts, **checked.counts}
        return replace(self, seen=Observed(tables, rejected, counts))


def read_inputs(folder: Location) -> AuditInputs:
    """The tables that lie by name in a folder.

    Raises:
        InputRefused: a table lacks columns, is there twice or is not readable.
    """
    return AuditInputs(read_input_tables(folder), read_observed(folder))


def read_ingested(folder: Place) -> AuditInputs:
    """The tables that an ingest of ours wrote into a folder, wherever that is."""
    return replace(read_inputs(folder), rejected=read_written(folder, REJECTED.name))


def unwritten_inputs(collection: Collection, assumed: Assumptions) -> AuditInputs:
    """Make the input tables of a collection as an ingest does, without writing them."""
    ingested = read_collection(collection, assumed).tables
    tables = {
        name: pa.Table.from_batches([batch_of_rows(table, ingested.get(name, []))])
        for name, table in INGESTED_TABLES.items()
    }
    history = input_tables_of({name: tables[name] for name in INPUT_TABLES})
    return AuditInputs(history, observed({name: tables[name] for name in READ_TABLES}))


# The audit.


def audit_and_write(
    inputs: AuditInputs,
    output: Location,
    options: SimulationOptions | None = None,
    config: LedgerConfig | None = None,
    *,
    findings_per_rule: int,
    before_writing: Callable[[], object] | None = None,
    warn: Callable[[str], object] | None = None,
    progress: Progress | None = None,
    **rule_options: Any,
) -> AuditWritten:
    """Simulate, judge, and write the ledger, ``findings`` and ``group_verdicts``.

    Memory: the tables, the ledger of some groups (`AuditPass`), all findings and verdicts.

    Args:
        inputs: see there.
        output: a folder (`place_of`), which gets the tables; none of them may be there.
        options: of the simulation; its engine does not count. Groups that ``group`` does not want
            are neither judged nor written; what of a group lies outside [from_ms, to_ms) counts
            where it is judged, and is not written.
        config: see `LedgerConfig`.
        findings_per_rule: of each rule the worst findings are written.
        before_writing: called once few enough rows are bad, before the first table is written.
        warn: gets a text for each input table with unknown columns, which are not read.
        progress: told how many groups are judged, of how many.
        rule_options: those of `audit_clusters`; with ``redact_salt`` the ledger shows no client
            id either, and a refusal no row.

    Raises:
        InputRefused: the input has no event, no group that is wanted or too many bad rows. Events
            that name a member who is not there count too, and are known only once the ledger is
            written.
        OutputExists: a table is in the folder already.
    """
    options, config = options or SimulationOptions(), config or LedgerConfig()
    checked = check_tables(inputs.history, max_queue_nums=options.max_queue_nums, warn=warn)
    hidden = tuple if rule_options.get("redact_salt") is not None else None
    row_limits.refuse_bad_rows(checked.counts, config.bad_rows, hidden or checked.complaints)
    _refuse_no_group(options, {**checked.tables, **inputs.seen.tables})
    if before_writing is not None:
        before_writing()
    ready, part = _prepare(inputs, checked, options, rule_options), AuditPart()
    with TableWriters(output, tuple(AUDITED_TABLES)) as writers:
        for known in (inputs.seen.rejected, inputs.rejected):
            if known is not None:
                _write(writers, part.shown(_bad(known), ready.salt))
        _write(writers, part.shown(ready.rows(part, progress), ready.salt))
        refuse_rejected(checked.counts, part.facts.rejected, config.bad_rows, hidden)
        result = ready.result(part)
        writers.write_tables(result.tables(findings_per_rule))
    tables = writers.written()
    counts = {**checked.counts, **inputs.seen.counts}
    return AuditWritten(result, ledger_written(tables, part.facts, counts, config.worst_groups))


def audit_unwritten(
    inputs: AuditInputs,
    options: SimulationOptions,
    limits: BadRowLimits,
    *,
    warn: Callable[[str], object] | None = None,
    progress: Progress | None = None,
    **rule_options: Any,
) -> tuple[RowForecast, AuditResult | None]:
    """Return how `audit_and_write` would end for its rows, and what it would find; writes nothing.

    None: it would refuse the rows.
    """
    checked = check_tables(inputs.history, max_queue_nums=options.max_queue_nums, warn=warn)
    _refuse_no_group(options, {**checked.tables, **inputs.seen.tables})
    part = AuditPart()
    results: list[AuditResult] = []

    def simulated() -> Rejections:
        ready = _prepare(inputs, checked, options, rule_options)
        rejected = (rows for name, rows in ready.rows(part, progress) if name == REJECTED.name)
        rejections = Rejections.of(*rejected)
        results.append(ready.result(part))
        return rejections

    counts, known = checked.counts, checked.rejections
    forecast = row_forecast(counts, known, limits, lambda: None, simulated)
    return forecast, None if forecast.refusal is not None else results[0]


@dataclass(frozen=True, eq=False)
class _PreparedAudit:
    """Checked tables, clusters judged, and what simulates and audits their groups."""

    checked: Checked
    tables: Mapping[str, pa.Table]
    audited: AuditedClusters
    work: AuditPass

    @property
    def salt(self) -> str | None:
        """Return the salt of the names for client ids; None: ids are shown."""
        return self.audited.groups.salt

    def rows(self, part: AuditPart, progress: Progress | None) -> LedgerRows:
        """Every row of the ledger; ``part`` gets what is found."""
        yield from _bad(self.checked.rejected)
        yield from self.work.rows(self.tables, part.group_findings, progress)

    def result(self, part: AuditPart) -> AuditResult:
        """Return the findings of all groups and clusters."""
        return self.audited.result(part.group_findings.rows(), self.work.options)


def _refuse_no_group(options: SimulationOptions, tables: Mapping[str, pa.Table]) -> None:
    if options.group is not None:
        named = (interests_of_named(name, rows) for name, rows in tables.items())
        interests = Interests.merged([one for one in named if one is not None])
        refuse_unnamed_group(options.group, interests)


def _prepare(
    inputs: AuditInputs,
    checked: Checked,
    options: SimulationOptions,
    rule_options: Mapping[str, Any],
) -> _PreparedAudit:
    tables = {**checked.tables, **inputs.seen.tables}
    audited = audit_clusters(read_cluster_tables(tables), **rule_options)
    work = AuditPass(audited.groups, engine_options(checked.tables, options), options)
    return _PreparedAudit(checked, tables, audited, work)


def _bad(rejected: pa.Table) -> LedgerRows:
    return ((REJECTED.name, rows) for rows in rejected.to_batches())


def _write(writers: TableWriters, made: LedgerRows) -> None:
    for name, rows in made:
        writers.write(name, rows)

"""A whole audit in this process: check tables, simulate, judge clusters and groups, write."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from rebalance_core.checks.conform import unknown_columns
from rebalance_core.checks.row_checks import Checked, check_tables, complaints
from rebalance_core.checks.row_limits import (
    BadRowLimits,
    Complaint,
    RowCounts,
    refuse_bad_rows,
    with_unknown_members,
)
from rebalance_core.contracts import AUDITED_TABLES, REJECTED
from rebalance_core.engine.ledger_pass import LedgerRows
from rebalance_core.engine.options import (
    LedgerConfig,
    RowForecast,
    SimulationOptions,
    engine_options,
)
from rebalance_core.engine.routing import Interests, interests_of_named, refuse_unnamed_group
from rebalance_core.engine.table_writer import TableWriters, ledger_written
from rebalance_core.process.audit_cases import AuditInputs, read_cluster_tables
from rebalance_core.process.audit_pass import AuditedClusters, AuditPart, AuditPass, audit_clusters
from rebalance_core.process.audited import AuditResult, AuditWritten
from rebalance_core.process.simulate import row_forecast
from rebalance_core.replay.group_replay import UNKNOWN_MEMBER
from rebalance_core.storage.place import Location

Progress = Callable[[int, int], object]


def audit_and_write(
    inputs: AuditInputs,
    output: Location,
    options: SimulationOptions | None = None,
    config: LedgerConfig | None = None,
    *,
    findings_per_rule: int,
    more_rejected: pa.Table | None = None,
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
        more_rejected: rows of ``rejected`` that came up before.
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
    checked, private = _checked(inputs, options, warn), rule_options.get("redact_salt") is not None

    def refuse(counts: Mapping[str, RowCounts], rejected: pa.Table) -> None:
        def shown() -> list[Complaint]:
            return [] if private else complaints(rejected)

        refuse_bad_rows(counts, config.bad_rows, shown)

    refuse(checked.counts, checked.rejected)
    _refuse_no_group(options, {**checked.tables, **inputs.seen.tables})
    if before_writing is not None:
        before_writing()
    ready, part = _ready(inputs, checked, options, rule_options), AuditPart()
    with TableWriters(output, tuple(AUDITED_TABLES)) as writers:
        for known in (inputs.seen.rejected, more_rejected):
            if known is not None:
                _write(writers, part.shown(_bad(known), ready.salt))
        rejected = _write(writers, part.shown(ready.rows(part, progress), ready.salt))
        unknown = part.facts.rejected[UNKNOWN_MEMBER]
        refuse(with_unknown_members(checked.counts, unknown), rejected)
        result = ready.result(part)
        for name, found in result.tables(findings_per_rule).items():
            _write(writers, ((name, rows) for rows in found.to_batches()))
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
    """How `audit_and_write` would end for its rows, and what it would find; writes nothing.

    None: it would refuse the rows.
    """
    checked = _checked(inputs, options, warn)
    _refuse_no_group(options, {**checked.tables, **inputs.seen.tables})
    part = AuditPart()
    results: list[AuditResult] = []

    def simulated() -> list[pa.RecordBatch]:
        ready = _ready(inputs, checked, options, rule_options)
        made = ready.work.rows(ready.tables, part.group_findings, progress)
        rejected = [rows for name, rows in made if name == REJECTED.name]
        results.append(ready.result(part))
        return rejected

    forecast = row_forecast(checked, options, limits, simulated)
    return forecast, None if forecast.refusal is not None else results[0]


@dataclass(frozen=True, eq=False)
class _Ready:
    """Checked tables, clusters judged, and what simulates and audits their groups."""

    checked: Checked
    tables: Mapping[str, pa.Table]
    audited: AuditedClusters
    work: AuditPass

    @property
    def salt(self) -> str | None:
        """Of the names for client ids; None: they are shown."""
        return self.audited.groups.salt

    def rows(self, part: AuditPart, progress: Progress | None) -> LedgerRows:
        """Every row of the ledger; ``part`` gets what is found."""
        yield from _bad(self.checked.rejected)
        yield from self.work.rows(self.tables, part.group_findings, progress)

    def result(self, part: AuditPart) -> AuditResult:
        """What is found of all groups and clusters."""
        return self.audited.result(part.group_findings.rows(), self.work.options)


def _checked(
    inputs: AuditInputs, options: SimulationOptions, warn: Callable[[str], object] | None
) -> Checked:
    if warn is not None:
        for name, columns in inputs.history.unknown_columns.items():
            warn(unknown_columns(name, columns))
    return check_tables(inputs.history, max_queue_nums=options.max_queue_nums)


def _refuse_no_group(options: SimulationOptions, tables: Mapping[str, pa.Table]) -> None:
    if options.group is not None:
        named = (interests_of_named(name, rows) for name, rows in tables.items())
        interests = Interests.merged([one for one in named if one is not None])
        refuse_unnamed_group(options.group, interests)


def _ready(
    inputs: AuditInputs,
    checked: Checked,
    options: SimulationOptions,
    rule_options: Mapping[str, Any],
) -> _Ready:
    tables = {**checked.tables, **inputs.seen.tables}
    audited = audit_clusters(read_cluster_tables(tables), **rule_options)
    work = AuditPass(audited.groups, engine_options(checked.tables, options), options)
    return _Ready(checked, tables, audited, work)


def _bad(rejected: pa.Table) -> LedgerRows:
    return ((REJECTED.name, rows) for rows in rejected.to_batches())


def _write(writers: TableWriters, made: LedgerRows) -> pa.Table:
    """Write the rows; those of ``rejected``."""
    rejected = []
    for name, rows in made:
        writers.write(name, rows)
        if name == REJECTED.name:
            rejected.append(rows)
    return pa.Table.from_batches(rejected, REJECTED.arrow_schema())

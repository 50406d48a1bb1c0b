"""A whole audit of tables: check them, simulate, judge clusters and groups, write the tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from rebalance_core.checks.row_counts import Complaint
from rebalance_core.checks.row_limits import BadRowLimits, refuse_bad_rows, with_unknown_members
from rebalance_core.contracts import AUDITED_TABLES, INPUT_TABLES, LEDGER_TABLES, REJECTED
from rebalance_core.engine.options import LedgerConfig, RowForecast, SimulationOptions
from rebalance_core.engine.table_writer import ledger_written
from rebalance_core.process.audit.audited import AuditResult, AuditWritten
from rebalance_core.process.audit.judging_pass import AuditPart
from rebalance_core.replay.group_replay import UNKNOWN_MEMBER
from rebalance_core.spark.audit.audit_inputs import AuditInputs
from rebalance_core.spark.audit.routed_audit import checked_tables, of_history, routed_audit
from rebalance_core.spark.engine.rejected_rows import rejected_rows
from rebalance_core.spark.engine.row_forecast import row_forecast
from rebalance_core.spark.tables.check_rows import complaints
from rebalance_core.spark.tables.task_tables import make_unwritten, task_tables
from rebalance_core.spark.tables.written import read_written


def audit_and_write(
    session: SparkSession,
    inputs: AuditInputs,
    output: str,
    options: SimulationOptions | None = None,
    config: LedgerConfig | None = None,
    *,
    findings_per_rule: int,
    more_rejected: DataFrame | None = None,
    before_writing: Callable[[], object] | None = None,
    warn: Callable[[str], object] | None = None,
    **judging: Any,
) -> AuditWritten:
    """Simulate, judge, and write the ledger, ``findings`` and ``group_verdicts``.

    Memory: of the driver all findings and verdicts; of a task the rows of its groups, and the
    ledger of some of them (`JudgingPass`).

    Args:
        session: Any session; its default parallelism is asked for.
        inputs: See there.
        output: Path or URI of a folder, which gets the tables; none of them may be there.
        options: Of the simulation; its engine, and what it leaves out, do not count.
        config: See `LedgerConfig`.
        findings_per_rule: Of each rule the worst findings are written.
        more_rejected: Rows of ``rejected`` that came up before.
        before_writing: Called once few enough rows are bad, before the first table is written.
        warn: Gets a text for each input table with unknown columns, which are not read.
        judging: Options of `judges_of`; with ``redact_salt`` the ledger shows no client id
            either, and a refusal no row.

    Raises:
        InputRefused: The input has no event or too many bad rows. Events that name a member who is
            not there count too, and are known only once ``rejected`` is written.
        OutputExists: A table is in the folder already.
    """
    options, config = options or SimulationOptions(), config or LedgerConfig()
    checked, counted = checked_tables(inputs, options, warn)
    counts, bad_rows = of_history(counted), config.bad_rows
    private = judging.get("redact_salt") is not None

    def shown(rejected: Callable[[], DataFrame]) -> Callable[[], list[Complaint]]:
        return lambda: [] if private else complaints(rejected())

    with closing(checked):
        refuse_bad_rows(counts, bad_rows, shown(lambda: checked.of(INPUT_TABLES).rejected))
        if before_writing is not None:
            before_writing()
        routed = routed_audit(session, checked, counted, options, judging)
        with task_tables(session, output, tuple(AUDITED_TABLES)) as tables:
            rows = routed.rows(more_rejected)
            part = _merged(tables.make(rows, routed.work, tuple(LEDGER_TABLES)))
            unknown = with_unknown_members(counts, part.facts.rejected[UNKNOWN_MEMBER])
            rejected = partial(read_written, session, output.rstrip("/"), REJECTED.name)
            refuse_bad_rows(unknown, bad_rows, shown(rejected))
            result = routed.judges.result(part.judged.rows())
            for name, found in result.tables(findings_per_rule).items():
                tables.add(name, found)
            written = tables.finish()
    return AuditWritten(result, ledger_written(written, part.facts, counts, config.worst_groups))


def audit_unwritten(
    session: SparkSession,
    inputs: AuditInputs,
    options: SimulationOptions,
    limits: BadRowLimits,
    *,
    warn: Callable[[str], object] | None = None,
    **judging: Any,
) -> tuple[RowForecast, AuditResult | None]:
    """How `audit_and_write` would end for its rows, and what it would find; writes nothing.

    None: it would refuse the rows.
    """
    checked, counted = checked_tables(inputs, options, warn)
    with closing(checked):
        routed = routed_audit(session, checked, counted, options, judging)
        history = checked.of(INPUT_TABLES)
        forecast = row_forecast(
            history,
            of_history(counted),
            limits,
            lambda: rejected_rows(history, routed.routing.groups, options),
        )
        if forecast.refusal is not None:
            return forecast, None
        part = _merged(make_unwritten(routed.rows(), routed.work))
        return forecast, routed.judges.result(part.judged.rows())


def _merged(parts: Iterable[AuditPart]) -> AuditPart:
    whole = AuditPart()
    for part in parts:
        whole.merge(part)
    return whole

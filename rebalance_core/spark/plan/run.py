"""A whole plan: check the input, compute every variant, write the tables, sum them up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession

from rebalance_core.checks.digest import TableWritten
from rebalance_core.checks.row_counts import RowCounts
from rebalance_core.checks.row_limits import refuse_bad_rows, with_unknown_members
from rebalance_core.engine.options import SimulationOptions
from rebalance_core.engine.row_forecast import RowForecast
from rebalance_core.planning.sweep.plan_options import PlanConfig, recorded_history
from rebalance_core.planning.sweep.plan_result import PlanResult
from rebalance_core.planning.variants import Variants
from rebalance_core.replay.group_replay import UNKNOWN_MEMBER
from rebalance_core.spark.engine.row_forecast import row_forecast
from rebalance_core.spark.engine.simulate import simulate_checked
from rebalance_core.spark.engine.summary import rejected_per_code
from rebalance_core.spark.engine.work_units import task_count
from rebalance_core.spark.engine.write_ledger import sized
from rebalance_core.spark.plan.league import plan_league
from rebalance_core.spark.plan.plan_frames import plan_summary
from rebalance_core.spark.plan.prepare import PreparedSweep, prepare_sweep
from rebalance_core.spark.plan.summary import league_rows, scenario_rows
from rebalance_core.spark.tables.check_rows import check_rows, complaints
from rebalance_core.spark.tables.quarantine import Quarantined
from rebalance_core.spark.tables.read import InputTables
from rebalance_core.spark.tables.write import write_table
from rebalance_core.spark.tables.written import read_written


def run_plan(
    session: SparkSession,
    inputs: InputTables,
    variants: Variants,
    output: str,
    options: PlanConfig | None = None,
    *,
    queue_rates: DataFrame | None = None,
    before_writing: Callable[[Mapping[str, int]], None] | None = None,
    warn: Callable[[str], object] | None = None,
) -> PlanResult:
    """Compute and write a plan; what is kept meanwhile is released.

    Args:
        session: Any session; its default parallelism is asked for.
        inputs: The recorded history.
        variants: What to compute (`variants_of`).
        output: Path or URI of a folder, which gets ``rejected`` and the tables of a plan; none of
            them may be there.
        options: See `PlanConfig`.
        queue_rates: Rows of ``queue_rates`` (`read_queue_rates`); None: they are not known.
        before_writing: Called with the input's rows by table, once they are counted and few enough
            are bad, before the first table is written.
        warn: Gets a text for each input table with unknown columns, which are not read.

    Raises:
        InputRefused: The input has no event or too many bad rows. Events that name a member who is
            not there count too, and are known only once ``rejected`` is written.
        OutputExists: A table is in the folder already.
    """
    options = options or PlanConfig()
    checked, counts = check_rows(inputs, options.max_queue_nums, warn)
    with closing(checked):
        refuse_bad_rows(counts, options.bad_rows, lambda: complaints(checked.rejected))
        rows = {name: count.rows for name, count in counts.items()}
        if before_writing is not None:
            before_writing(rows)
        tables = _Tables(session, output)
        rejected = _write_rejected(tables, checked, counts, options)
        with _prepared(session, checked, counts, variants, options) as sweep:
            _write(tables, sweep, queue_rates)
            warnings = _warnings(sweep)
    return PlanResult(
        tables=tables.written,
        input_rows=rows,
        rejected=rejected,
        scenarios=scenario_rows(tables.read("plan_summary")),
        league=league_rows(tables.read("plan_league")),
        warnings=warnings,
    )


def plan_forecast(
    session: SparkSession,
    inputs: InputTables,
    variants: Variants,
    options: PlanConfig | None = None,
    *,
    warn: Callable[[str], object] | None = None,
) -> tuple[RowForecast, tuple[str, ...]]:
    """How `run_plan` would end for the rows of its input, and its warnings; writes nothing."""
    options = options or PlanConfig()
    checked, counts = check_rows(inputs, options.max_queue_nums, warn)
    with closing(checked):
        recorded = _recorded(session, counts, options)
        forecast = row_forecast(checked, counts, recorded, options.bad_rows)
        if forecast.refusal is not None:
            return forecast, ()
        with _prepared(session, checked, counts, variants, options) as sweep:
            return forecast, _warnings(sweep)


class _Tables:
    """Writes tables into a folder, and reads them back."""

    def __init__(self, session: SparkSession, folder: str) -> None:
        self.session = session
        self._folder = folder.rstrip("/")
        self.written: dict[str, TableWritten] = {}

    def write(self, name: str, frame: DataFrame) -> DataFrame:
        """Write one table; its rows as they are in the folder."""
        self.written[name] = write_table(frame, self._folder, name)
        return self.read(name)

    def read(self, name: str) -> DataFrame:
        """A table that was written."""
        return read_written(self.session, self._folder, name)


def _write_rejected(
    tables: _Tables,
    checked: Quarantined,
    counts: Mapping[str, RowCounts],
    options: PlanConfig,
) -> dict[str, int]:
    """Bad rows, and events of the recorded history about a process that is not there, by code."""
    with simulate_checked(checked, _recorded(tables.session, counts, options)) as ledger:
        rejected = tables.write("rejected", ledger.rejected)
    per_code = rejected_per_code(rejected)
    with_unknown = with_unknown_members(counts, per_code.get(UNKNOWN_MEMBER, 0))
    refuse_bad_rows(with_unknown, options.bad_rows, lambda: complaints(rejected))
    return per_code


def _recorded(
    session: SparkSession, counts: Mapping[str, RowCounts], options: PlanConfig
) -> SimulationOptions:
    """The recorded history, without a change."""
    return sized(recorded_history(options), counts, session)


def _prepared(
    session: SparkSession,
    checked: Quarantined,
    counts: Mapping[str, RowCounts],
    variants: Variants,
    options: PlanConfig,
) -> PreparedSweep:
    rows = sum(count.rows for count in counts.values()) * len(variants.histories)
    tasks = task_count(rows, session.sparkContext.defaultParallelism)
    sweep_options = replace(options, partitions=options.partitions or tasks)
    return prepare_sweep(checked.tables, variants, sweep_options)


def _warnings(sweep: PreparedSweep) -> tuple[str, ...]:
    """What edits could not do; every edit is made for it."""
    return (*sweep.unmatched, *sweep.warnings())


def _write(tables: _Tables, sweep: PreparedSweep, rates: DataFrame | None) -> None:
    """Every table; what builds on another one reads it as it was written."""
    steps = tables.write("plan_steps", sweep.steps())
    loads = None if rates is None else sweep.peak_rates(rates)
    summary = tables.write(
        "plan_summary", plan_summary(steps, sweep.starts(), loads, sweep.transitions())
    )
    tables.write("plan_league", plan_league(steps, summary))
    tables.write("plan_ownership", sweep.ownership())

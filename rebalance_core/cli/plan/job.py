"""`plan`: what if, under which strategy. One application computes every variant."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rebalance_core.cli.job import JobReport
from rebalance_core.cli.plan.input import checked_input, plan_inputs, queue_rates
from rebalance_core.cli.plan.options import PlanOptions
from rebalance_core.cli.plan.summary import (
    dry_run_facts,
    plan_facts,
    render_dry_run,
    render_plan,
)
from rebalance_core.cli.run.input_files import fingerprint
from rebalance_core.cli.run.output_run import Outcome, OutputRun
from rebalance_core.cli.run.run_record import TableRecord
from rebalance_core.cli.run.running import check_free, running, say
from rebalance_core.cli.run.session import versions
from rebalance_core.cli.settings.settings import Settings, resolve_settings
from rebalance_core.cli.simulate.job import UNKNOWN_MEMBER, refuse_bad_rows, task_count
from rebalance_core.contracts import PLAN_OUTPUT_TABLES, REJECTED
from rebalance_core.spark.plan.summary import league_rows, scenario_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from rebalance_core.spark.plan.prepare import PreparedSweep
    from rebalance_core.spark.tables.quarantine import Quarantined
    from rebalance_core.spark.tables.row_counts import RowCounts

WRITTEN = (*PLAN_OUTPUT_TABLES, REJECTED.name)


def run_plan(options: PlanOptions) -> JobReport:
    """Run the job; the report for stdout."""
    from rebalance_core.planning.variants import idle_switches

    settings = resolve_settings(options.config, options.set)
    inputs = plan_inputs(options)
    if options.dry_run:
        check_free(options)
        facts = dry_run_facts(options, inputs)
        return JobReport(render_dry_run(facts), facts)
    for warning in idle_switches(options.variants):
        say(f"warning: {warning}")
    with running("plan", options, settings, WRITTEN) as (run, session):
        records = [fingerprint(table, path, session) for table, path in inputs.items()]
        checked, counts = checked_input(session, options, settings, inputs)
        rates = queue_rates(session, options)
        run.clear()
        variants = options.variants
        say(f"planning {len(variants):,} variants of {counts['cluster_events'].rows:,} events")
        tables = _Tables(run, session)
        rejected = _write_rejected(tables, checked, counts, options, settings)
        sweep = _prepared(checked, options, settings, session, counts)
        _write(tables, sweep, rates)
        for warning in (*sweep.unmatched, *sweep.warnings()):
            say(f"warning: {warning}")
        scenarios, league = scenario_rows(tables.read), league_rows(tables.read)
        record = run.finish(
            Outcome(
                outputs=tables.written,
                inputs=[_with_rows(item, counts) for item in records],
                rejected=rejected,
                versions=versions(session),
                seed=_only_seed(options),
            )
        )
    rows = {name: table.rows for name, table in tables.written.items()}
    facts = plan_facts(options, scenarios, league, rows, record.seconds)
    return JobReport(render_plan(facts), facts)


class _Tables:
    """Writes the tables of a run, and reads back what was written."""

    def __init__(self, run: OutputRun, session: "SparkSession") -> None:
        self._location = run.folder.table_location("").rstrip("/")
        self._session = session
        self.written: dict[str, TableRecord] = {}

    def write(self, name: str, frame: "DataFrame") -> "DataFrame":
        """Write one table; what lies there now."""
        from rebalance_core.spark.tables.write import write_table

        written = write_table(frame, self._location, name)
        self.written[name] = TableRecord(written.rows, written.digest)
        return self.read(name)

    def read(self, name: str) -> "DataFrame":
        """A table that was written."""
        return self._session.read.parquet(f"{self._location}/{name}")


def _write_rejected(
    tables: _Tables,
    checked: "Quarantined",
    counts: "Mapping[str, RowCounts]",
    options: PlanOptions,
    settings: Settings,
) -> dict[str, int]:
    """Bad rows, and events of the history as it is that name a process that is not there.

    Returns:
        How many by code.

    Raises:
        InputRefused: they are too many.
    """
    from rebalance_core.spark import SimulationOptions
    from rebalance_core.spark.engine.simulate import simulate_checked
    from rebalance_core.spark.engine.summary import rejected_per_code

    rows = {name: count.rows for name, count in counts.items()}
    spark = checked.rejected.sparkSession
    recorded = SimulationOptions(
        group=options.group,
        include_retry_topics=settings.include_retry_topics,
        partitions=task_count(sum(rows.values()), spark.sparkContext.defaultParallelism),
    )
    rejected = simulate_checked(checked, recorded).rejected
    per_code = rejected_per_code(tables.write("rejected", rejected))
    bad = {name: count.bad for name, count in counts.items()}
    bad["cluster_events"] += per_code.get(UNKNOWN_MEMBER, 0)
    refuse_bad_rows(rows, bad, settings)
    return per_code


def _write(tables: _Tables, sweep: "PreparedSweep", rates: "DataFrame | None") -> None:
    """Every table; what builds on another one reads it as it was written."""
    from rebalance_core.spark.plan.league import plan_league
    from rebalance_core.spark.plan.tables import plan_summary

    steps = tables.write("plan_steps", sweep.steps())
    loads = None if rates is None else sweep.peak_rates(rates)
    summary = tables.write("plan_summary", plan_summary(steps, sweep.starts(), loads))
    tables.write("plan_league", plan_league(steps, summary))
    tables.write("plan_ownership", sweep.ownership())


def _prepared(
    checked: "Quarantined",
    options: PlanOptions,
    settings: Settings,
    session: "SparkSession",
    counts: "Mapping[str, RowCounts]",
) -> "PreparedSweep":
    from rebalance_core.spark.plan.prepare import SweepOptions, prepare_sweep

    rows = sum(count.rows for count in counts.values()) * len(options.variants.histories)
    return prepare_sweep(
        checked.tables,
        options.variants,
        SweepOptions(
            include_retry_topics=settings.include_retry_topics,
            group=options.group,
            ownership_groups=settings.plan.ownership_groups,
            partitions=task_count(rows, session.sparkContext.defaultParallelism),
        ),
    )


def _only_seed(options: PlanOptions) -> int | None:
    """The seed, if there is but one; more stand in the arguments."""
    seeds = {history.seed for history in options.variants.histories}
    return seeds.pop() if len(seeds) == 1 else None


def _with_rows(record: Any, counts: "Mapping[str, RowCounts]") -> Any:
    return replace(record, rows=counts[record.table].rows) if record.table in counts else record

"""`propagate`: settings, place, lock, run, record, summary, in this order."""

from typing import Any

from rebalance_core.cli.job import JobReport
from rebalance_core.cli.propagate.options import PropagateOptions
from rebalance_core.cli.propagate.summary import propagate_facts, render_propagate
from rebalance_core.cli.run.input_files import tables_in
from rebalance_core.cli.run.row_report import RowReport
from rebalance_core.cli.run_on import SPARK, run_on_of
from rebalance_core.cli.settings import resolve_settings
from rebalance_core.cli.terminal import joined
from rebalance_core.contracts import REJECTED
from rebalance_core.contracts.paths import is_local, local_path
from rebalance_core.contracts.propagation import PROPAGATION_TABLES
from rebalance_core.engine.table_writer import PropagationForecast

TABLES = [*PROPAGATION_TABLES, REJECTED.name]


def run_propagate(options: PropagateOptions) -> JobReport:
    """Run the job; the report for stdout."""
    settings = resolve_settings(
        options.config,
        options.set,
        {"on_bad_rows": options.on_bad_rows, "max_bad_share": options.max_bad_share},
    )
    inputs = find_inputs(options)
    run_on = run_on_of(options, settings, inputs.values() or [options.input], [options.output])
    if run_on == SPARK:  # pyspark takes a second to import
        from rebalance_core.cli.propagate import on_spark as carrier
    else:
        from rebalance_core.cli.propagate import in_process as carrier  # type: ignore[no-redef]  # either has the same functions
    if options.dry_run:
        return _dry_run(options, inputs, carrier.forecast(options, settings, inputs))
    written, record = carrier.run(options, settings, inputs)
    facts = propagate_facts(options, written, record.seconds, run_on)
    return JobReport(render_propagate(facts), facts)


def find_inputs(options: PropagateOptions) -> dict[str, str]:
    """Path by table of a local folder; empty for a remote one, which the reader lists.

    Raises:
        InputRefused: No such folder, or one without ``cluster_events``.
    """
    if not is_local(options.input):
        return {}
    paths = tables_in(local_path(options.input), options.input_format)
    return {table: str(path) for table, path in paths.items()}


def _dry_run(
    options: PropagateOptions, inputs: dict[str, str], forecast: PropagationForecast
) -> JobReport:
    """How the rows would let a run end, and how much it would simulate; nothing is written."""
    report = RowReport(forecast.rows)
    facts: dict[str, Any] = {
        "job": "propagate",
        "dry_run": True,
        **report.facts(),
        "inputs": inputs,
        **forecast.facts,
        "seeds": options.seeds,
        "output": options.output,
        "tables": TABLES,
    }
    shown = inputs or dict.fromkeys(forecast.rows.counts, options.input)
    lines = ["Dry run: nothing is written.", "", *report.input_lines(shown)]
    if forecast.facts:
        changes, groups = forecast.facts["changes"], forecast.facts["groups"]
        lines += ["", f"{options.seeds:,} futures of {changes:,} changes in {groups:,} groups"]
    lines += ["", f"output  {options.output}", f"  {', '.join(TABLES)}"]
    return JobReport(joined([*lines, *report.lines()]), facts, report.exit_code)

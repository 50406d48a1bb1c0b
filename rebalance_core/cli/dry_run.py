"""The `--dry-run` report of jobs that simulate groups."""

from collections.abc import Iterable, Mapping
from typing import Any

from rebalance_core.cli import terminal
from rebalance_core.cli.job_options import RecordedOptions
from rebalance_core.cli.jobs import JobReport
from rebalance_core.cli.planning_options import FidelityOptions
from rebalance_core.cli.terminal import RowReport
from rebalance_core.engine.options import RowForecast


def dry_run_report(
    job: str,
    options: RecordedOptions | FidelityOptions,
    inputs: Mapping[str, str],
    forecast: RowForecast,
    written: Iterable[str],
    *,
    output: str,
    facts: Mapping[str, Any] | None = None,
    lines: Iterable[str] = (),
) -> JobReport:
    """Return how a run would end because of its rows, without writing anything.

    Args:
        job: the job.
        options: its options, which name the input.
        inputs: the path of each input table; empty for a database.
        forecast: how the run would judge its rows.
        written: the tables of its output.
        output: where they would be written.
        facts: facts specific to this job.
        lines: lines specific to this job, shown between inputs and outputs.
    """
    report, written = RowReport(forecast), list(written)
    place = options.input
    if place is None and isinstance(options, RecordedOptions):
        place = options.input_tables
    shown = inputs or dict.fromkeys(forecast.counts, place or "")
    text = [*terminal.DRY_RUN, *report.input_lines(shown), *lines]
    text += [*terminal.output_lines(output, written), *report.lines()]
    stated = {
        "job": job,
        "dry_run": True,
        **report.facts(),
        "inputs": dict(inputs),
        **(facts or {}),
        "output": output,
        "tables": written,
    }
    return JobReport(terminal.joined(text), stated, report.exit_code)

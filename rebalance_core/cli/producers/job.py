"""`producers`: settings, place, lock, run, record, summary, in this order."""

from typing import Any

from rebalance_core.cli.job import JobReport
from rebalance_core.cli.producers.finish import WRITTEN
from rebalance_core.cli.producers.input import results_inputs
from rebalance_core.cli.producers.options import ProducersOptions
from rebalance_core.cli.producers.summary import producers_facts, render_producers
from rebalance_core.cli.run.row_report import RowReport
from rebalance_core.cli.run_on import AUTO, SPARK, run_on_of
from rebalance_core.cli.settings import Settings, resolve_settings
from rebalance_core.cli.terminal import joined
from rebalance_core.engine.options import RowForecast

PRODUCERS_IN_PROCESS = 10_000
"""A model of more producers, minutes of one processor, runs on Spark."""


def run_producers(options: ProducersOptions) -> JobReport:
    """Run the job; the report for stdout."""
    settings = resolve_settings(options.config, options.set)
    inputs = results_inputs(options)
    run_on = _run_on(options, settings, list(inputs.values()))
    if run_on == SPARK:  # pyspark takes a second to import
        from rebalance_core.cli.producers import on_spark as carrier
    else:
        from rebalance_core.cli.producers import in_process as carrier  # type: ignore[no-redef]  # either has the same functions
    if options.dry_run:
        return _dry_run(options, inputs, carrier.forecast(options, settings, inputs))
    written, record = carrier.run(options, settings, inputs)
    facts = producers_facts(options, written, record.seconds, run_on)
    return JobReport(render_producers(facts), facts)


def _run_on(options: ProducersOptions, settings: Settings, places: list[str]) -> str:
    """By the size of the input; a model has none, its producers count."""
    model = options.model
    if options.run_on == AUTO and model is not None and model.producers > PRODUCERS_IN_PROCESS:
        return SPARK
    return run_on_of(options, settings, places, [options.output])


def _dry_run(
    options: ProducersOptions, inputs: dict[str, str], forecast: RowForecast | None
) -> JobReport:
    """What would be simulated, or how the rows would let a run end; nothing is written."""
    facts: dict[str, Any] = {"job": "producers", "dry_run": True, "exit_code": 0}
    lines = ["Dry run: nothing is written.", ""]
    end: list[str] = []
    if forecast is not None:
        report = RowReport(forecast)
        facts |= {**report.facts(), "inputs": inputs}
        lines += report.input_lines(inputs)
        end = report.lines()
    elif options.model is not None:
        model = options.model
        facts |= {"model": model.name, "producers": model.producers, "seed": model.seed}
        lines.append(f"{model.name}: {model.description}")
        lines.append(f"{model.producers:,} producers, {model.length_ms / 1000:,.0f} s")
    versions = [str(version) for version in options.versions]
    facts |= {"client_versions": versions, "output": options.output, "tables": list(WRITTEN)}
    lines += [f"client versions  {', '.join(versions)}", "", f"output  {options.output}"]
    lines += [f"  {', '.join(WRITTEN)}", *end]
    return JobReport(joined(lines), facts, facts["exit_code"])

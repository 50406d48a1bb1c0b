"""`simulate`: settings, place, lock, run, record, summary, in this order."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from rebalance_core.cli.job import JobReport
from rebalance_core.cli.run.input_files import check_readable, fingerprint, tables_in
from rebalance_core.cli.run.row_report import RowReport
from rebalance_core.cli.run.run_record import redact_text
from rebalance_core.cli.run_on import SPARK, run_on_of
from rebalance_core.cli.settings import Settings, resolve_settings
from rebalance_core.cli.simulate.options import TABLE_OPTIONS, SimulateOptions
from rebalance_core.cli.simulate.summary import render_summary, summary_facts
from rebalance_core.cli.terminal import joined, warn_of_nothing
from rebalance_core.contracts import INPUT_TABLES, LEDGER_TABLES
from rebalance_core.contracts.paths import is_local, local_path
from rebalance_core.engine.options import SimulationOptions

TABLE_OF_OPTION = dict(zip(TABLE_OPTIONS, INPUT_TABLES, strict=True))


def run_simulate(options: SimulateOptions) -> JobReport:
    """Run the job; the report for stdout."""
    settings = resolve_settings(
        options.config,
        options.set,
        {"on_bad_rows": options.on_bad_rows, "max_bad_share": options.max_bad_share},
    )
    inputs = find_inputs(options)
    simulation = _simulation_options(options, settings)
    run_on = run_on_of(options, settings, inputs.values() or [options.input], [options.output])
    if run_on == SPARK:  # pyspark takes a second to import
        from rebalance_core.cli.simulate import on_spark as carrier
    else:
        from rebalance_core.cli.simulate import in_process as carrier  # type: ignore[no-redef]  # either has the same functions
    if options.dry_run:
        report = RowReport(carrier.forecast(options, settings, inputs, simulation))
        return _dry_run(options, settings, inputs, report)
    written, record = carrier.simulate(options, settings, inputs, simulation)
    rows = {name: table.rows for name, table in written.tables.items()}
    if not written.facts["groups"]:
        warn_of_nothing(
            {"--group": options.group, "--from": options.from_ms, "--to": options.to_ms}
        )
    facts = summary_facts(
        options.output, written.facts, written.rejected, rows, record.seconds, run_on
    )
    return JobReport(render_summary(facts), facts)


def _simulation_options(options: SimulateOptions, settings: Settings) -> SimulationOptions:
    return replace(
        settings.simulation_options(settings),
        engine=options.engine,
        strategy=options.strategy,
        group=options.group,
        from_ms=options.from_ms,
        to_ms=options.to_ms,
    )


def find_inputs(options: SimulateOptions) -> dict[str, str]:
    """Path or URI per input table; what is missing is said before anything starts.

    Raises:
        InputRefused: a path that is not there, or a folder without the required table.
    """
    if options.input is not None and is_local(options.input):
        paths = tables_in(local_path(options.input), options.input_format)
        return {table: str(path) for table, path in paths.items()}
    if options.input is not None:
        return {}  # the reader finds out which tables a remote folder has
    inputs = {}
    for name, table in TABLE_OF_OPTION.items():
        location = getattr(options, name)
        if location is not None:
            option = "--" + name.replace("_", "-")
            check_readable(option, location, options.input_format)
            inputs[table] = location
    return inputs


def _dry_run(
    options: SimulateOptions, settings: Settings, inputs: Mapping[str, str], report: RowReport
) -> JobReport:
    """What a run would do: all that decides how it ends, and nothing is written."""
    facts = {
        "job": "simulate",
        "dry_run": True,
        **report.facts(),
        "inputs": {
            table: asdict(fingerprint(table, path)) | {"path": path}
            for table, path in inputs.items()
        },
        "output": options.output,
        "tables": list(LEDGER_TABLES),
        "engine": options.engine,
        "config": settings.as_dict(),
    }
    shown = inputs or dict.fromkeys(report.forecast.counts, redact_text(options.input or ""))
    lines = ["Dry run: nothing is written.", "", *report.input_lines(shown)]
    lines += ["", f"output  {options.output}", f"  {', '.join(LEDGER_TABLES)}"]
    lines += ["", f"engine  {options.engine}", "", "settings"]
    lines += [f"  {key} = {value}" for key, value in _flat(settings.as_dict())]
    return JobReport(joined([*lines, *report.lines()]), facts, report.exit_code)


def _flat(values: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    flat: list[tuple[str, Any]] = []
    for key, value in values.items():
        if isinstance(value, Mapping):
            flat += _flat(value, f"{prefix}{key}.")
        else:
            flat.append((prefix + key, value))
    return flat

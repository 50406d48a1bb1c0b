"""`simulate`: settings, session, lock, run, record, summary, in this order."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict, replace
from typing import Any

from rebalance_core.cli.job import JobReport
from rebalance_core.cli.run import engine_settings
from rebalance_core.cli.run.input_files import check_readable, fingerprint, tables_in
from rebalance_core.cli.run.output_folder import is_local, local_path, spark_location
from rebalance_core.cli.run.output_run import Outcome
from rebalance_core.cli.run.row_report import RowReport
from rebalance_core.cli.run.run_record import table_records
from rebalance_core.cli.run.running import check_free, open_for, running, say, warn
from rebalance_core.cli.run.secrets import redact_text
from rebalance_core.cli.run.session import versions
from rebalance_core.cli.settings.settings import Settings, resolve_settings
from rebalance_core.cli.simulate.options import TABLE_OPTIONS, SimulateOptions
from rebalance_core.cli.simulate.summary import render_summary, summary_facts
from rebalance_core.contracts import INPUT_TABLES, LEDGER_TABLES
from rebalance_core.spark import InputTables, SimulationOptions, SparkSession
from rebalance_core.spark.engine.row_forecast import RowForecast, row_forecast
from rebalance_core.spark.engine.write_ledger import simulate_and_write, sized
from rebalance_core.spark.tables.row_counts import check_rows

TABLE_OF_OPTION = dict(zip(TABLE_OPTIONS, INPUT_TABLES, strict=True))


def run_simulate(options: SimulateOptions) -> JobReport:
    """Run the job; the report for stdout."""
    settings = resolve_settings(
        options.config,
        options.set,
        {"on_bad_rows": options.on_bad_rows, "max_bad_share": options.max_bad_share},
    )
    inputs = find_inputs(options)
    if options.dry_run:
        return _dry_run(options, settings, inputs)
    with running("simulate", options, settings, LEDGER_TABLES) as (run, session):
        tables = _read_inputs(session, options, inputs)
        records = [fingerprint(t, p, session) for t, p in (inputs or tables.paths).items()]
        say(f"simulating; inputs: {', '.join(record.table for record in records)}")
        with simulate_and_write(
            session,
            tables,
            run.folder.table_location(""),
            _simulation_options(options, settings),
            engine_settings.ledger_config(settings),
            before_writing=run.clear,
            warn=warn,
        ) as written:
            record = run.finish(
                Outcome(
                    outputs=table_records(written.tables),
                    inputs=[replace(r, rows=written.input_rows.get(r.table)) for r in records],
                    rejected=written.rejected,
                    replayed_groups=sum(written.replay_reasons.values()),
                    replay_reasons=written.replay_reasons,
                    versions=versions(session),
                )
            )
    rows = {name: table.rows for name, table in written.tables.items()}
    facts = summary_facts(options.output, written.facts, written.rejected, rows, record.seconds)
    return JobReport(render_summary(facts), facts)


def _read_inputs(
    session: SparkSession, options: SimulateOptions, inputs: Mapping[str, str]
) -> InputTables:
    """The input tables, lazy. Local ones were found by name already; a remote folder is listed."""
    remote = options.input if options.input is not None and not inputs else None
    paths = {name: spark_location(path) for name, path in inputs.items()}
    return InputTables.read(session, remote, **paths, input_format=options.input_format)


def _simulation_options(options: SimulateOptions, settings: Settings) -> SimulationOptions:
    return replace(
        engine_settings.simulation_options(settings),
        engine=options.engine,
        strategy=options.strategy,
        group=options.group,
        from_ms=options.from_ms,
        to_ms=options.to_ms,
    )


def find_inputs(options: SimulateOptions) -> dict[str, str]:
    """Path or URI per input table; what is missing is said before Spark starts.

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


def _dry_run(options: SimulateOptions, settings: Settings, inputs: Mapping[str, str]) -> JobReport:
    """What a run would do: all that decides how it ends, and nothing is written."""
    check_free("simulate", options, settings)
    session = open_for("simulate", options, settings)
    report = RowReport(_forecast(session, options, settings, inputs))
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
    return JobReport("\n".join([*lines, *report.lines()]), facts, report.exit_code)


def _forecast(
    session: SparkSession, options: SimulateOptions, settings: Settings, inputs: Mapping[str, str]
) -> RowForecast:
    simulation = _simulation_options(options, settings)
    tables = _read_inputs(session, options, inputs)
    checked, counts = check_rows(tables, simulation.max_queue_nums, warn)
    with closing(checked):
        limits = engine_settings.bad_row_limits(settings)
        return row_forecast(checked, counts, sized(simulation, counts, session), limits)


def _flat(values: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    flat: list[tuple[str, Any]] = []
    for key, value in values.items():
        if isinstance(value, Mapping):
            flat += _flat(value, f"{prefix}{key}.")
        else:
            flat.append((prefix + key, value))
    return flat

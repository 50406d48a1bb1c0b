"""`simulate`: settings, session, lock, run, write, record, summary, in this order."""

import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from rebalance_core.cli.hadoop_folder import HadoopFolder
from rebalance_core.cli.input_files import check_exists, fingerprint, tables_in
from rebalance_core.cli.job import JobReport
from rebalance_core.cli.output_folder import (
    LocalFolder,
    OutputFolder,
    is_local,
    local_path,
    spark_location,
)
from rebalance_core.cli.output_lock import read_lock
from rebalance_core.cli.output_run import Outcome, OutputRun, check_output
from rebalance_core.cli.run_record import TableRecord
from rebalance_core.cli.secrets import redact_text
from rebalance_core.cli.session import open_session, versions
from rebalance_core.cli.settings import Settings, resolve_settings
from rebalance_core.cli.simulate_options import TABLE_OPTIONS, SimulateOptions
from rebalance_core.cli.summary import render_summary, summary_facts
from rebalance_core.contracts import INPUT_TABLES, LEDGER_TABLES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rebalance_core.spark import InputTables

TABLE_OF_OPTION = dict(zip(TABLE_OPTIONS, INPUT_TABLES, strict=True))


@dataclass(frozen=True)
class Simulated:
    """What the engine leaves behind once its tables are written."""

    outputs: Mapping[str, TableRecord]
    facts: Mapping[str, Any]
    rejected: Mapping[str, int]
    input_rows: Mapping[str, int]
    replayed_groups: int | None = None


def run_simulate(options: SimulateOptions) -> JobReport:
    """Run the job; the report for stdout."""
    settings = resolve_settings(
        options.config,
        options.set,
        {"on_bad_rows": options.on_bad_rows, "max_bad_share": options.max_bad_share},
    )
    inputs = find_inputs(options)
    if options.dry_run:
        return _plan(options, settings, inputs)
    # A local folder is reserved before Spark starts: a conflict is told at once.
    session = None if is_local(options.output) else _open(options, settings)
    folder: OutputFolder
    folder = HadoopFolder(options.output, session) if session else LocalFolder(options.output)
    with OutputRun(folder, "simulate", options, settings.as_dict(), LEDGER_TABLES) as run:
        if run.broken is not None:
            _say(f"broke the lock of a dead run: {run.broken}")
        session = session or _open(options, settings)
        tables = _read_inputs(session, options, inputs)
        records = [fingerprint(t, p, session) for t, p in (inputs or tables.paths).items()]
        _say(f"simulating; inputs: {', '.join(record.table for record in records)}")
        done = _simulate_and_write(session, options, settings, tables, run)
        record = run.finish(
            Outcome(
                outputs=done.outputs,
                inputs=[replace(item, rows=done.input_rows.get(item.table)) for item in records],
                rejected=done.rejected,
                replayed_groups=done.replayed_groups,
                versions=versions(session),
            )
        )
    rows = {name: table.rows for name, table in done.outputs.items()}
    facts = summary_facts(options.output, done.facts, done.rejected, rows, record.seconds)
    return JobReport(render_summary(facts), facts)


def _read_inputs(
    session: "SparkSession", options: SimulateOptions, inputs: Mapping[str, str]
) -> "InputTables":
    """The input tables, lazy. Local ones were found by name already; a remote folder is listed."""
    from rebalance_core.spark import InputTables

    remote = options.input if options.input is not None and not inputs else None
    paths = {name: spark_location(path) for name, path in inputs.items()}
    return InputTables.read(session, remote, **paths, input_format=options.input_format)


def _simulate_and_write(
    session: "SparkSession",
    options: SimulateOptions,
    settings: Settings,
    tables: "InputTables",
    run: OutputRun,
) -> Simulated:
    """The only calls into the engine. `run.clear` removes an earlier result: it comes after the
    gate for bad rows, before the first table.
    """
    from rebalance_core.cli.ledger_counts import ledger_facts, rejected_per_code
    from rebalance_core.spark import simulate
    from rebalance_core.spark.write import write_table

    ledger = simulate(tables, {"options": options, "settings": settings})
    run.clear()
    outputs = {}
    for name, frame in ledger.frames().items():
        written = write_table(frame, run.folder.table_location(""), name)
        outputs[name] = TableRecord(written.rows, written.digest)
    back = {name: session.read.parquet(run.folder.table_location(name)) for name in outputs}
    return Simulated(
        outputs=outputs,
        facts=ledger_facts(back, settings.summary.worst_groups),
        rejected=rejected_per_code(back["rejected"]),
        input_rows={},
    )


def find_inputs(options: SimulateOptions) -> dict[str, str]:
    """Path or URI per input table; what is missing is said before Spark starts.

    Raises:
        InputRefused: a path that is not there, or a folder without the required table.
    """
    if options.input is not None and is_local(options.input):
        found = tables_in(local_path(options.input))
        return {table: str(path) for table, path in found.items()}
    if options.input is not None:
        return {}  # which tables lie in a remote folder is for the reader to find
    inputs = {}
    for name, table in TABLE_OF_OPTION.items():
        location = getattr(options, name)
        if location is not None:
            check_exists("--" + name.replace("_", "-"), location)
            inputs[table] = location
    return inputs


def _open(options: SimulateOptions, settings: Settings) -> "SparkSession":
    partitions = settings.spark.shuffle_partitions
    wanted = {} if partitions is None else {"spark.sql.shuffle.partitions": str(partitions)}
    return open_session("rebalance simulate", master=options.master, settings=wanted)


def _plan(options: SimulateOptions, settings: Settings, inputs: Mapping[str, str]) -> JobReport:
    """What a run would do; checks all that can be checked without Spark."""
    if is_local(options.output):
        folder = LocalFolder(options.output)
        locked = read_lock(folder) is not None
        check_output(folder, overwrite=options.overwrite, left_by_dead_run=locked)
    facts = {
        "job": "simulate",
        "dry_run": True,
        "inputs": {
            table: asdict(fingerprint(table, path)) | {"path": path}
            for table, path in inputs.items()
        },
        "output": options.output,
        "tables": list(LEDGER_TABLES),
        "engine": options.engine,
        "config": settings.as_dict(),
    }
    lines = ["Dry run: nothing is read or written.", "", "inputs"]
    shown = inputs or {"(tables in)": redact_text(options.input or "")}
    lines += [f"  {table:<18} {path}" for table, path in shown.items()]
    lines += ["", f"output  {options.output}", f"  {', '.join(LEDGER_TABLES)}"]
    lines += ["", f"engine  {options.engine}", "", "settings"]
    lines += [f"  {key} = {value}" for key, value in _flat(settings.as_dict())]
    return JobReport("\n".join(lines), facts)


def _flat(values: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    flat: list[tuple[str, Any]] = []
    for key, value in values.items():
        if isinstance(value, Mapping):
            flat += _flat(value, f"{prefix}{key}.")
        else:
            flat.append((prefix + key, value))
    return flat


def _say(text: str) -> None:
    print(f"rebalance: {text}", file=sys.stderr)

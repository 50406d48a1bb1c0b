"""`simulate`: settings, session, lock, run, write, record, summary, in this order."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from rebalance_core.cli.job import JobReport
from rebalance_core.cli.run.input_files import check_exists, fingerprint, tables_in
from rebalance_core.cli.run.output_folder import (
    is_local,
    local_path,
    spark_location,
)
from rebalance_core.cli.run.output_run import Outcome
from rebalance_core.cli.run.run_record import TableRecord
from rebalance_core.cli.run.running import check_free, open_for, running, say
from rebalance_core.cli.run.secrets import redact_text
from rebalance_core.cli.run.session import versions
from rebalance_core.cli.settings.settings import Settings, resolve_settings
from rebalance_core.cli.simulate.options import TABLE_OPTIONS, SimulateOptions
from rebalance_core.cli.simulate.summary import render_summary, summary_facts
from rebalance_core.contracts import INPUT_TABLES, LEDGER_TABLES
from rebalance_core.replay.group_replay import UNKNOWN_MEMBER

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from rebalance_core.spark import InputTables, SimulationOptions
    from rebalance_core.spark.tables.quarantine import Quarantined
    from rebalance_core.spark.tables.row_counts import RowCounts

TABLE_OF_OPTION = dict(zip(TABLE_OPTIONS, INPUT_TABLES, strict=True))


@dataclass(frozen=True)
class Simulated:
    """What the engine leaves behind once its tables are written."""

    outputs: Mapping[str, TableRecord]
    facts: Mapping[str, Any]
    rejected: Mapping[str, int]
    input_rows: Mapping[str, int]
    replay_reasons: Mapping[str, int]
    used: "Mapping[str, DataFrame]"
    """The input rows that passed the checks, by table."""


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
    with running("simulate", options, settings, LEDGER_TABLES) as (run, session):
        tables = _read_inputs(session, options, inputs)
        records = [fingerprint(t, p, session) for t, p in (inputs or tables.paths).items()]
        say(f"simulating; inputs: {', '.join(record.table for record in records)}")
        done = simulate_and_write(
            session, options, settings, tables, run.clear, run.folder.table_location("")
        )
        record = run.finish(
            Outcome(
                outputs=done.outputs,
                inputs=[replace(item, rows=done.input_rows.get(item.table)) for item in records],
                rejected=done.rejected,
                replayed_groups=sum(done.replay_reasons.values()),
                replay_reasons=done.replay_reasons,
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


def simulate_and_write(
    session: "SparkSession",
    options: SimulateOptions,
    settings: Settings,
    tables: "InputTables",
    clear: Callable[[], None],
    location: str,
    more_rejected: "DataFrame | None" = None,
) -> Simulated:
    """The calls into the engine.

    Args:
        session: the session.
        options: what to simulate.
        settings: of the run.
        tables: the input.
        clear: removes an earlier result; called after the gate for bad rows, before the first
            table. What the replay rejects is known only once it is written, so the gate is asked
            again.
        location: the folder that gets the ledger.
        more_rejected: rows of ``rejected`` that came up before.
    """
    from rebalance_core.spark.engine.deal import task_count
    from rebalance_core.spark.engine.simulate import simulate_checked
    from rebalance_core.spark.engine.summary import (
        ledger_facts,
        rejected_per_code,
        replay_reasons,
    )
    from rebalance_core.spark.tables.row_counts import BadRowLimits, refuse_bad_rows
    from rebalance_core.spark.tables.write import write_table

    limits = BadRowLimits(settings.on_bad_rows, settings.max_bad_share)
    checked, counts = _check(tables, settings)
    bad_rows = {name: count.bad for name, count in counts.items()}
    rows = {name: count.rows for name, count in counts.items()}
    refuse_bad_rows(rows, bad_rows, limits)
    tasks = task_count(sum(rows.values()), session.sparkContext.defaultParallelism)
    ledger = simulate_checked(checked, _simulation_options(options, settings, tasks))
    frames = ledger.frames()
    if more_rejected is not None:
        frames["rejected"] = frames["rejected"].unionByName(more_rejected)
    clear()
    outputs = {}
    for name, frame in frames.items():
        written = write_table(frame, location, name)
        outputs[name] = TableRecord(written.rows, written.digest)
    back = {name: session.read.parquet(f"{location.rstrip('/')}/{name}") for name in outputs}
    rejected = rejected_per_code(back["rejected"])
    bad_rows["cluster_events"] += rejected.get(UNKNOWN_MEMBER, 0)
    refuse_bad_rows(rows, bad_rows, limits)
    facts = ledger_facts(back, settings.summary.worst_groups)
    return Simulated(
        outputs=outputs,
        facts=facts,
        rejected=rejected,
        input_rows=rows,
        replay_reasons=replay_reasons(ledger.replayed),
        used=checked.tables,
    )


def _check(
    tables: "InputTables", settings: Settings
) -> "tuple[Quarantined, Mapping[str, RowCounts]]":
    """The checked tables and how many rows of each are bad; unknown columns are only told."""
    from rebalance_core.spark.tables.quarantine import quarantine
    from rebalance_core.spark.tables.row_counts import count_rows

    for name, columns in tables.unknown_columns().items():
        say(f"warning: {name} has unknown column(s), not read: {', '.join(columns)}")
    checked = quarantine(tables, max_queue_nums=settings.limits.max_queue_nums)
    return checked, count_rows(checked)


def _simulation_options(
    options: SimulateOptions, settings: Settings, tasks: int
) -> "SimulationOptions":
    from rebalance_core.spark import SimulationOptions

    return SimulationOptions(
        engine=options.engine,
        strategy=options.strategy,
        group=options.group,
        from_ms=options.from_ms,
        to_ms=options.to_ms,
        include_retry_topics=settings.include_retry_topics,
        max_queue_nums=settings.limits.max_queue_nums,
        partitions=tasks,
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


def _plan(options: SimulateOptions, settings: Settings, inputs: Mapping[str, str]) -> JobReport:
    """What a run would do: checks the output and the settings, reads and counts the input."""
    check_free(options)
    session = open_for("simulate", options, settings)
    _, counts = _check(_read_inputs(session, options, inputs), settings)
    facts = {
        "job": "simulate",
        "dry_run": True,
        "rows": {name: {"rows": c.rows, "bad": c.bad} for name, c in counts.items()},
        "inputs": {
            table: asdict(fingerprint(table, path)) | {"path": path}
            for table, path in inputs.items()
        },
        "output": options.output,
        "tables": list(LEDGER_TABLES),
        "engine": options.engine,
        "config": settings.as_dict(),
    }
    lines = ["Dry run: nothing is written.", "", "inputs"]
    shown = inputs or dict.fromkeys(counts, redact_text(options.input or ""))
    lines += [
        f"  {table:<18} {counts[table].rows:>9,} rows, {counts[table].bad:,} bad  {path}"
        for table, path in shown.items()
    ]
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

"""`simulate`: settings, session, lock, run, write, record, summary, in this order."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from rebalance_core.cli.job import JobReport
from rebalance_core.cli.run.input_files import check_readable, fingerprint, tables_in
from rebalance_core.cli.run.output_folder import (
    is_local,
    local_path,
    spark_location,
)
from rebalance_core.cli.run.output_run import Outcome
from rebalance_core.cli.run.row_gate import (
    UNKNOWN_MEMBER,
    foretell,
    refuse_bad_rows,
    with_unknown_members,
)
from rebalance_core.cli.run.run_record import TableRecord
from rebalance_core.cli.run.running import check_free, open_for, running, say
from rebalance_core.cli.run.secrets import redact_text
from rebalance_core.cli.run.session import versions
from rebalance_core.cli.settings.settings import Settings, resolve_settings
from rebalance_core.cli.simulate.options import TABLE_OPTIONS, SimulateOptions
from rebalance_core.cli.simulate.summary import render_summary, summary_facts
from rebalance_core.contracts import INPUT_TABLES, LEDGER_TABLES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from rebalance_core.spark import InputTables, SimulationOptions
    from rebalance_core.spark.tables.quarantine import Quarantined
    from rebalance_core.spark.tables.row_counts import RowCounts

ROWS_PER_TASK = 100_000
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
    private: bool = False,
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
        private: a refusal tells no row: it may name clients.
    """
    from rebalance_core.spark.engine.simulate import simulate_checked
    from rebalance_core.spark.engine.summary import (
        ledger_facts,
        rejected_per_code,
        replay_reasons,
    )
    from rebalance_core.spark.tables.row_counts import complaints
    from rebalance_core.spark.tables.write import write_table

    checked, counts = check_rows(tables, settings)
    refuse_bad_rows(counts, settings, lambda: () if private else complaints(checked.rejected))
    simulation = simulation_options(options, settings, counts, session)
    ledger = simulate_checked(checked, simulation)
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
    counts = with_unknown_members(counts, rejected.get(UNKNOWN_MEMBER, 0))
    refuse_bad_rows(counts, settings, lambda: () if private else complaints(back["rejected"]))
    facts = ledger_facts(back, settings.summary.worst_groups)
    return Simulated(
        outputs=outputs,
        facts=facts,
        rejected=rejected,
        input_rows={name: count.rows for name, count in counts.items()},
        replay_reasons=replay_reasons(ledger.replayed),
        used=checked.tables,
    )


def check_rows(
    tables: "InputTables", settings: Settings
) -> "tuple[Quarantined, Mapping[str, RowCounts]]":
    """The checked tables and how many rows of each are bad; unknown columns are only told."""
    from rebalance_core.spark.tables.quarantine import quarantine
    from rebalance_core.spark.tables.row_counts import count_rows

    for name, columns in tables.unknown_columns().items():
        say(f"warning: {name} has unknown column(s), not read: {', '.join(columns)}")
    checked = quarantine(tables, max_queue_nums=settings.limits.max_queue_nums)
    return checked, count_rows(checked)


def task_count(rows: int, cores: int) -> int:
    """Tasks of the engine: a Python task costs 25 ms to start, so few, but every core gets one."""
    return max(cores, -(-rows // ROWS_PER_TASK))


def simulation_options(
    options: SimulateOptions,
    settings: Settings,
    counts: "Mapping[str, RowCounts]",
    session: "SparkSession",
) -> "SimulationOptions":
    """What the engine gets, for an input of that many rows."""
    from rebalance_core.spark import SimulationOptions

    rows = sum(count.rows for count in counts.values())
    return SimulationOptions(
        engine=options.engine,
        strategy=options.strategy,
        group=options.group,
        from_ms=options.from_ms,
        to_ms=options.to_ms,
        include_retry_topics=settings.include_retry_topics,
        max_queue_nums=settings.limits.max_queue_nums,
        partitions=task_count(rows, session.sparkContext.defaultParallelism),
    )


def find_inputs(options: SimulateOptions) -> dict[str, str]:
    """Path or URI per input table; what is missing is said before Spark starts.

    Raises:
        InputRefused: a path that is not there, or a folder without the required table.
    """
    if options.input is not None and is_local(options.input):
        found = tables_in(local_path(options.input), options.input_format)
        return {table: str(path) for table, path in found.items()}
    if options.input is not None:
        return {}  # which tables lie in a remote folder is for the reader to find
    inputs = {}
    for name, table in TABLE_OF_OPTION.items():
        location = getattr(options, name)
        if location is not None:
            option = "--" + name.replace("_", "-")
            check_readable(option, location, options.input_format)
            inputs[table] = location
    return inputs


def _plan(options: SimulateOptions, settings: Settings, inputs: Mapping[str, str]) -> JobReport:
    """What a run would do: all that decides how it ends, and nothing is written."""
    check_free("simulate", options, settings)
    session = open_for("simulate", options, settings)
    checked, counts = check_rows(_read_inputs(session, options, inputs), settings)
    foretold = foretell(
        checked, counts, simulation_options(options, settings, counts, session), settings
    )
    facts = {
        "job": "simulate",
        "dry_run": True,
        **foretold.facts(),
        "inputs": {
            table: asdict(fingerprint(table, path)) | {"path": path}
            for table, path in inputs.items()
        },
        "output": options.output,
        "tables": list(LEDGER_TABLES),
        "engine": options.engine,
        "config": settings.as_dict(),
    }
    shown = inputs or dict.fromkeys(counts, redact_text(options.input or ""))
    lines = ["Dry run: nothing is written.", "", *foretold.input_lines(shown)]
    lines += ["", f"output  {options.output}", f"  {', '.join(LEDGER_TABLES)}"]
    lines += ["", f"engine  {options.engine}", "", "settings"]
    lines += [f"  {key} = {value}" for key, value in _flat(settings.as_dict())]
    return JobReport("\n".join([*lines, *foretold.lines()]), facts, foretold.exit_code)


def _flat(values: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    flat: list[tuple[str, Any]] = []
    for key, value in values.items():
        if isinstance(value, Mapping):
            flat += _flat(value, f"{prefix}{key}.")
        else:
            flat.append((prefix + key, value))
    return flat

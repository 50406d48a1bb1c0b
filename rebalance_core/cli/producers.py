"""The `producers` job, from its settings to the run, its record and its summary."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rebalance_core.cli import terminal
from rebalance_core.cli.jobs import JobReport
from rebalance_core.cli.planning_options import ProducersOptions
from rebalance_core.cli.run.backend import backend_of
from rebalance_core.cli.run.in_process import Backend
from rebalance_core.cli.run.input_files import tables_of
from rebalance_core.cli.run.run_record import outcome_of
from rebalance_core.cli.settings import bad_row_limits, settings_of
from rebalance_core.cli.terminal import RowReport, table
from rebalance_core.contracts import INPUT_TABLES, producers
from rebalance_core.contracts.paths import is_local
from rebalance_core.engine.options import RowForecast
from rebalance_core.process.producers import (
    WRITTEN,
    replay_and_write,
    replay_forecast,
    simulate_and_write,
)
from rebalance_core.producers.model import Variant
from rebalance_core.producers.results import ResultsOptions

READ = {
    producers.SEND_RESULTS.name: producers.SEND_RESULTS,
    "cluster_events": INPUT_TABLES["cluster_events"],
}
PRODUCERS_IN_PROCESS = 10_000
"""Models with more producers than this, which take minutes of CPU time, run on Spark."""


def run(options: ProducersOptions) -> JobReport:
    """Run the job and return the report for stdout."""
    settings = settings_of(options)
    inputs, model = results_inputs(options), options.model
    large = model is not None and model.producers > PRODUCERS_IN_PROCESS
    backend = backend_of("producers", options, settings, inputs.values(), large=large)
    limits = bad_row_limits(settings)
    assumed = ResultsOptions(Variant(options.versions[0], fault_tolerance=True))
    if options.dry_run:
        backend.check_free()
        forecast = None
        if model is None:
            results = _results(backend, options, inputs)
            forecast = backend.run(replay_forecast, results, assumed, limits, terminal.warn)
        return _dry_run(options, inputs, forecast)
    with backend.running(WRITTEN) as output:
        records = backend.records(inputs) if inputs else []
        if model is not None:
            terminal.say(
                f"simulating {model.producers:,} producers for {model.length_ms / 1000:,.0f} s"
            )
            written = backend.run(
                simulate_and_write,
                model,
                options.versions,
                backend.output(),
                of="producers",
                before_writing=output.clear,
            )
        else:
            terminal.say(f"replaying the results of {options.input} as {options.versions[0]} would")
            written = backend.run(
                replay_and_write,
                _results(backend, options, inputs),
                assumed,
                limits,
                backend.output(),
                before_writing=output.clear,
                warn=terminal.warn,
            )
        seed = None if model is None else model.seed
        record = output.finish(outcome_of(written, records, seed=seed))
    run_facts = {
        "model": None if model is None else model.name,
        "outcomes": written.facts[producers.PRODUCER_OUTCOMES.name].to_pylist(),
        "shares": written.facts[producers.PRODUCER_SHARES.name].to_pylist(),
        "rejected": dict(written.rejected),
        "rows": {name: table.rows for name, table in written.tables.items()},
    }
    facts = terminal.result_facts(
        "producers", options.output, run_facts, record.seconds, backend.name
    )
    return JobReport(_render(facts), facts)


def results_inputs(options: ProducersOptions) -> dict[str, str]:
    """Return the path of each table in a folder; remote tables keep their names, and a model has
    none.

    Raises:
        InputRefused: The folder does not exist or has no ``send_results``.
    """
    if options.input is None:
        return {}
    if not is_local(options.input):
        name = producers.SEND_RESULTS.name
        return {name: f"{options.input.rstrip('/')}/{name}"}
    return tables_of(options.input, options.input_format, READ, (producers.SEND_RESULTS.name,))


def _results(backend: Backend, options: ProducersOptions, inputs: Mapping[str, str]) -> Any:
    """Return the recorded results, in the form of the runtime."""
    places = {name: backend.location(path) for name, path in inputs.items()}
    return backend.runtime.read(places, options.input_format)


def _dry_run(
    options: ProducersOptions, inputs: dict[str, str], forecast: RowForecast | None
) -> JobReport:
    """Report what would be simulated, or how a run would judge its rows, without writing."""
    facts: dict[str, Any] = {"job": "producers", "dry_run": True, "exit_code": 0}
    lines = [*terminal.DRY_RUN]
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
    lines += [
        f"client versions  {', '.join(versions)}",
        *terminal.output_lines(options.output, WRITTEN),
    ]
    lines += end
    return JobReport(terminal.joined(lines), facts, facts["exit_code"])


Row = Mapping[str, Any]
HEADER = ("client", "sends", "failed", "held back", "mean wait", "busiest queue", "shares")
RECORDED_HEADER = ("broker", "attempts", "share", "slow", "errors", "though avoided")
_ON, _OFF = "fault tolerance", "default"


def _render(facts: Row) -> str:
    """Return the summary as text: a table per group and phase, or per recorded topic."""
    lines = [f"Producers in {facts['output']} ({terminal.took(facts)})"]
    for (group, topic), rows in _grouped(facts["outcomes"], ("producer_group", "topic")):
        for (_, phase), of_phase in _grouped(rows, ("from_ms", "phase")):
            seconds = (of_phase[0]["to_ms"] - of_phase[0]["from_ms"]) / 1000
            lines += ["", f"{group} to {topic}: {phase}, {seconds:,.0f} s"]
            lines += table(HEADER, [_cells(row, facts["shares"]) for row in of_phase], (0, -1))
            lines += _recoveries(of_phase, facts["shares"])
    if not facts["outcomes"]:
        for (group, topic), rows in _grouped(facts["shares"], ("producer_group", "topic")):
            lines += ["", f"{group} to {topic}, results as recorded"]
            lines += table(RECORDED_HEADER, [_recorded(row) for row in rows], (0, -1))
    lines += terminal.rejected_rows(facts["rejected"])
    return terminal.joined(lines)


def _grouped(
    rows: Sequence[Row], names: tuple[str, ...]
) -> Iterator[tuple[tuple[Any, ...], list[Row]]]:
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in names), []).append(row)
    yield from sorted(groups.items(), key=lambda group: group[0])


def _cells(row: Row, shares: Sequence[Row]) -> list[str]:
    wait, peak = row["mean_wait_ms"], row["peak_queue_ratio"]
    return [
        _client(row),
        f"{row['sends']:,}",
        f"{row['failed']:,}",
        f"{row['held_back']:,}",
        "-" if wait is None else f"{wait:,.1f} ms",
        "-" if peak is None else f"{peak:.2f} x mean",
        ", ".join(
            f"{share['broker_name']} {_percent(share['share'])}" for share in _of(row, shares)
        ),
    ]


def _of(row: Row, shares: Sequence[Row]) -> list[Row]:
    """Return the shares of an outcome."""
    names = ("cluster", "producer_group", "topic", "client_version", "fault_tolerance", "from_ms")
    return [share for share in shares if all(share[name] == row[name] for name in names)]


def _recoveries(rows: Sequence[Row], shares: Sequence[Row]) -> Iterator[str]:
    for row in rows:
        for share in _of(row, shares):
            if share["not_recovered"] is None:
                continue
            back = row["producers"] - share["not_recovered"]
            time = "" if not back else f" after {share['recovery_ms'] / 1000:,.1f} s at the latest"
            yield (
                f"  {_client(row)}: {back:,} of {row['producers']:,} producers chose "
                f"{share['broker_name']} again{time}"
            )


def _client(row: Row) -> str:
    return f"{row['client_version']} {_ON if row['fault_tolerance'] else _OFF}"


def _recorded(row: Row) -> list[str]:
    return [
        row["broker_name"],
        f"{row['attempts']:,}",
        _percent(row["share"]),
        f"{row['slow']:,}",
        f"{row['errors']:,}",
        f"{row['avoided']:,}",
    ]


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"

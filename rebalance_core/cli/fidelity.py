"""The `fidelity` job, from its settings to the run, its record and its summary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from os.path import realpath
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rebalance_core import report
from rebalance_core.cli import terminal
from rebalance_core.cli.dry_run import dry_run_report
from rebalance_core.cli.jobs import JobReport
from rebalance_core.cli.pictures import picture
from rebalance_core.cli.planning_options import FidelityOptions
from rebalance_core.cli.run.backend import backend_of
from rebalance_core.cli.run.fitted import fit_lines, ingested_folder, observed_rows, read_fit
from rebalance_core.cli.run.in_process import Backend
from rebalance_core.cli.run.input_files import tables_of
from rebalance_core.cli.run.output_folder import typed_place
from rebalance_core.cli.run.output_run import BESIDE_TABLES
from rebalance_core.cli.run.run_record import outcome_of
from rebalance_core.cli.settings import bad_row_limits, settings_of
from rebalance_core.cli.terminal import warn
from rebalance_core.contracts.fidelity import LATENCY, UNKNOWN
from rebalance_core.contracts.observed import LATENCIES, QUEUE_MOVES
from rebalance_core.engine.propagation import PropagationOptions
from rebalance_core.model.errors import InputRefused, UsageError
from rebalance_core.model.nouns import counted
from rebalance_core.process.fidelity import LOGGED, WRITTEN, Logs, write_fidelity
from rebalance_core.process.propagate import propagation_forecast
from rebalance_core.storage.store_answers import refusal
from rebalance_core.timing.options import ClockOptions

if TYPE_CHECKING:
    from rebalance_core.cli.run.output_folder import OutputFolder
    from rebalance_core.contracts.rows import LatenciesRow, QueueMovesRow

(PICTURE,) = BESIDE_TABLES["fidelity"]
Row = Mapping[str, Any]


def run(options: FidelityOptions) -> JobReport:
    """Run the job and return the report for stdout."""
    settings = settings_of(options)
    named = f"--input {options.input}"
    try:
        folder = ingested_folder(typed_place(options.input), named, LOGGED)
        _refuse_own_fit(options.fit, folder, named)
    except OSError as error:
        raise refusal(error, f"{named} cannot be read", InputRefused) from error
    options = replace(options, input=folder.url)
    inputs = tables_of(options.input, options.input_format)
    backend = backend_of("fidelity", options, settings, inputs.values() or [options.input])
    fit, logs = read_fit(backend, options.fit), _logs(backend, folder, named)
    asked = PropagationOptions(
        seeds=options.seeds,
        first_seed=options.first_seed,
        group=options.group,
        max_queue_nums=settings.limits.max_queue_nums,
        clock=ClockOptions(handler_ms=options.handler_time, rtt_us=options.rtt, fit=fit),
    )
    limits = bad_row_limits(settings)
    if options.dry_run:
        backend.check_free()
        tables = backend.input_tables(inputs)
        rows, _ = backend.run(propagation_forecast, tables, asked, limits, warn=warn)
        return dry_run_report("fidelity", options, inputs, rows, WRITTEN, output=options.output)
    with backend.running((*WRITTEN, PICTURE)) as output:
        records = backend.records(inputs)
        written = backend.run(
            write_fidelity,
            backend.input_tables(inputs),
            backend.output(),
            logs,
            asked,
            limits,
            before_writing=output.clear,
            warn=warn,
        )
        texts = picture(
            PICTURE, lambda: report.svg_text(report.draw_fidelity(written.facts["samples"]))
        )
        for name, text in texts.items():
            (output.folder / name).write_text(text)
        record = output.finish(outcome_of(written, records, seed=options.first_seed))
    results = {
        "seeds": options.seeds,
        "first_seed": options.first_seed,
        "fit": [] if fit is None else [kind.facts() for kind in fit.kinds],
        "kinds": written.facts["rows"],
        **written.facts["counts"],
        "rejected": dict(written.rejected),
        "rows": {name: table.rows for name, table in written.tables.items()},
        "files": list(texts),
    }
    facts = terminal.result_facts("fidelity", options.output, results, record.seconds, backend.name)
    return JobReport(_render(facts), facts)


def _refuse_own_fit(fit: Sequence[str], folder: OutputFolder, named: str) -> None:
    """Raise `UsageError` if the futures are fitted to the night that they are compared with."""
    for each in fit:
        place = ingested_folder(typed_place(each), f"--fit {each}", ())
        if realpath(place.url) == realpath(folder.url):
            raise UsageError(
                f"--fit {each}: futures fitted to {named} agree with it trivially; name other "
                "nights"
            )


def _logs(backend: Backend, folder: OutputFolder, named: str) -> Logs:
    try:
        latencies: list[LatenciesRow] = observed_rows(backend, folder, LATENCIES.name)
        moves: list[QueueMovesRow] = observed_rows(backend, folder, QUEUE_MOVES.name)
    except OSError as error:
        raise refusal(error, f"{named} cannot be read", InputRefused) from error
    except (pa.ArrowException, ValueError) as error:
        raise InputRefused(f"{named} cannot be read: {error}") from error
    if not latencies and not moves:
        raise InputRefused(
            f"{named}: latencies and queue_moves have no row; collect rocketmq_client.log of some "
            "clients (docs/ingest.md) and ingest again"
        )
    return Logs.of_rows(latencies, moves)


HEADER = (
    "kind",
    "measure",
    "samples",
    "5-95 %",
    "in range",
    "half by",
    "simulated",
    "verdict",
)


def _render(facts: Row) -> str:
    """Return the summary as text: a row per kind, and what was not compared."""
    rows = facts["kinds"]
    several = len({row["cluster"] for row in rows}) > 1
    lines = [
        f"Fidelity in {facts['output']} ({terminal.took(facts)})",
        f"{counted(facts['changes'], 'change')} of "
        f"{counted(facts['groups'], 'group')} beside {facts['seeds']:,} futures of each",
        *_total("times after changes", [row for row in rows if row["measure"] != LATENCY]),
        *_total("latencies of requests", [row for row in rows if row["measure"] == LATENCY]),
        "",
    ]
    shown = [list(_cells(row, several)) for row in rows if row["samples"]]
    lines += [*terminal.table(HEADER, shown, text=(0, 1, -1)), "", *_legend()]
    if reasons := list(_reasons(rows, several)):
        lines += ["", "What differs or is unknown", *reasons]
    if left_out := list(_left_out(facts)):
        lines += ["", "Not compared", *left_out]
    if facts["fit"]:
        lines += ["", "Latencies of the cluster"]
        for text in fit_lines(facts["fit"]):
            lines += wrap(text, terminal.WIDTH, initial_indent="  ", subsequent_indent="    ")
    lines += terminal.rejected_rows(facts["rejected"])
    lines += terminal.output_lines(facts["output"], [*facts["rows"], *facts["files"]])
    return terminal.joined(lines)


def _total(name: str, rows: Sequence[Row]) -> Iterator[str]:
    samples, inside, in_range = (
        sum(row[column] for row in rows) for column in ("samples", "inside", "in_range")
    )
    if samples:
        yield (
            f"{samples:,} {name}: {in_range / samples:.0%} in the range of their futures, "
            f"{inside / samples:.0%} between 5 and 95 %"
        )


def _kind(row: Row, several: bool) -> str:
    return f"{row['cluster']}: {row['kind']}" if several else str(row["kind"])


def _cells(row: Row, several: bool) -> Iterator[str]:
    yield _kind(row, several)
    yield "" if row["measure"] == LATENCY else row["measure"]
    yield f"{row['samples']:,}"
    for name in ("inside", "in_range"):
        yield f"{row[name] / row['samples']:.0%}"
    for name in ("observed", "simulated"):
        ms = row[f"{name}_ms_p50"]
        yield "-" if ms is None else f"{ms / 1_000:,.3f} s"
    yield row["verdict"]


def _legend() -> Iterator[str]:
    text = (
        "LAST: from a change until the last move of a queue by a client with a log. FIRST_ADD, "
        "FIRST_DROP: until a client took or revoked its first queue. GAP: how long a queue had no "
        "owner (below 0: several owners). `in range`: between the fastest and the slowest future "
        "of the same change; with 95 % of the samples there, a kind AGREES."
    )
    yield from wrap(text, terminal.WIDTH, initial_indent="  ", subsequent_indent="  ")


def _reasons(rows: Sequence[Row], several: bool) -> Iterator[str]:
    by_reason: dict[str, list[str]] = {}
    for row in rows:
        if row["reason"] is not None:
            measure = "" if row["measure"] == LATENCY else f" {row['measure']}"
            unknown = "UNKNOWN, " if row["verdict"] == UNKNOWN else ""
            of = f"{_kind(row, several)}{measure}"
            by_reason.setdefault(f"{unknown}{row['reason']}", []).append(of)
    for reason, kinds in by_reason.items():
        text = f"{reason}: {', '.join(kinds)}"
        yield from wrap(text, terminal.WIDTH, initial_indent="  ", subsequent_indent="    ")


def _left_out(facts: Row) -> Iterator[str]:
    for name, text in (
        ("unplayed", "groups without exclusive queues, or with unknown subscriptions"),
        ("unlogged", "changes after which no client's log shows a move"),
        ("partly_logged", "changes without gaps: the log of some member is missing"),
        ("strangers", "latencies of clients without a join or leave in the tables"),
    ):
        if facts[name]:
            yield f"  {text}: {facts[name]:,}"

"""The `simulate` job, from its settings to the run, its record and its summary."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from rebalance_core.cli import settings as of_settings
from rebalance_core.cli import terminal
from rebalance_core.cli.job_options import TABLE_OPTIONS, SimulateOptions
from rebalance_core.cli.jobs import JobReport
from rebalance_core.cli.run.backend import backend_of
from rebalance_core.cli.run.input_files import check_readable, fingerprint, tables_of
from rebalance_core.cli.run.run_record import outcome_of
from rebalance_core.cli.run.secrets import redact_text
from rebalance_core.cli.settings import Settings, bad_row_limits, ledger_config, settings_of
from rebalance_core.cli.terminal import RowReport, table
from rebalance_core.contracts import INPUT_TABLES, LEDGER_TABLES
from rebalance_core.contracts.run_names import STATE
from rebalance_core.engine.options import SimulationOptions, chosen_tables
from rebalance_core.model.nouns import counted
from rebalance_core.process.simulate import simulate_and_write, simulation_forecast

if TYPE_CHECKING:
    from rebalance_core.engine.table_writer import GroupTotals, LedgerTotals

TABLE_OF_OPTION = dict(zip(TABLE_OPTIONS, INPUT_TABLES, strict=True))


def run(options: SimulateOptions) -> JobReport:
    """Run the job and return the report for stdout."""
    settings = settings_of(options)
    inputs = find_inputs(options)
    simulation = _simulation_options(options, settings)
    backend = backend_of("simulate", options, settings, inputs.values() or [options.input])
    if options.dry_run:
        backend.check_free()
        forecast = backend.run(
            simulation_forecast,
            backend.opened_tables(inputs, options.state),
            simulation,
            bad_row_limits(settings),
            warn=terminal.warn,
        )
        return _dry_run(options, settings, inputs, RowReport(forecast))
    with backend.running((*LEDGER_TABLES, STATE)) as output:
        records = backend.records(inputs)
        terminal.say(f"simulating; inputs: {', '.join(record.table for record in records)}")
        written = backend.run(
            simulate_and_write,
            backend.opened_tables(inputs, options.state),
            backend.output(),
            simulation,
            ledger_config(settings),
            state_output=backend.output(STATE),
            of="groups",
            before_writing=output.clear,
            warn=terminal.warn,
        )
        outcome = outcome_of(written, records, replay_reasons=written.replay_reasons)
        output.record_below(STATE, "simulate", replace(outcome, outputs=written.state))
        record = output.finish(outcome)
    if not written.facts["groups"]:
        terminal.warn_of_nothing(
            {
                "--state": options.state,
                "--group": options.group,
                "--from": options.from_ms,
                "--to": options.to_ms,
            }
        )
    rows = {name: table.rows for name, table in written.tables.items()}
    facts = summary_facts(
        options.output,
        written.facts,
        written.rejected,
        rows,
        record.seconds,
        backend.name,
    )
    if options.state is not None:
        facts["state"] = options.state
    return JobReport(render_summary(facts), facts)


def _simulation_options(options: SimulateOptions, settings: Settings) -> SimulationOptions:
    return replace(
        of_settings.simulation_options(settings),
        engine=options.engine,
        strategy=options.strategy,
        group=options.group,
        from_ms=options.from_ms,
        to_ms=options.to_ms,
        tables=options.tables,
    )


def find_inputs(options: SimulateOptions) -> dict[str, str]:
    """Return the path or URI of each input table, reporting missing tables before the run starts.

    Raises:
        InputRefused: a path does not exist, or a folder lacks the required table.
    """
    if options.input is not None or options.input_tables is not None:
        return tables_of(options.input, options.input_format)
    inputs = {}
    for name, of_option in TABLE_OF_OPTION.items():
        location = getattr(options, name)
        if location is not None:
            option = "--" + name.replace("_", "-")
            check_readable(option, location, options.input_format)
            inputs[of_option] = location
    return inputs


def _dry_run(
    options: SimulateOptions, settings: Settings, inputs: Mapping[str, str], report: RowReport
) -> JobReport:
    """Report what a run would do and how it would end, without writing."""
    tables = chosen_tables(SimulationOptions(tables=options.tables))
    facts = {
        "job": "simulate",
        "dry_run": True,
        **report.facts(),
        "inputs": {
            table: asdict(fingerprint(table, path)) | {"path": path}
            for table, path in inputs.items()
        },
        "output": options.output,
        "tables": list(tables),
        "engine": options.engine,
        "config": settings.as_dict(),
    }
    place = redact_text(options.input or options.input_tables or "")
    shown = inputs or dict.fromkeys(report.forecast.counts, place)
    lines = [*terminal.DRY_RUN, *report.input_lines(shown)]
    lines += terminal.output_lines(options.output, tables)
    lines += ["", f"engine  {options.engine}", "", "settings"]
    lines += [f"  {key} = {value}" for key, value in of_settings.flatten(settings.as_dict())]
    return JobReport(terminal.joined([*lines, *report.lines()]), facts, report.exit_code)


WORST_HEADER = ("group", "last change", "orphaned", "shared", "failed", "moved", "what is wrong")


def summary_facts(
    output: str,
    ledger: "LedgerTotals",
    rejected: Mapping[str, int],
    rows: Mapping[str, int],
    seconds: float,
    run_on: str,
) -> dict[str, Any]:
    """Return the `--json` object of a simulation, which `render_summary` also reads.

    Args:
        output: where the ledger is.
        ledger: totals `groups`, `epochs`, `moved`, `orphaned`, `shared`, `failed_starts`,
            `first_ms`, `last_ms` and the list `worst_groups`.
        rejected: bad rows per issue code.
        rows: rows per output table.
        seconds: how long the run took.
        run_on: where it ran, `process` or `spark`.
    """
    results = {
        **ledger,
        "rejected_rows": rows.get("rejected", 0),
        "rejected": dict(rejected),
        "rows": dict(rows),
    }
    return terminal.result_facts("simulate", output, results, seconds, run_on)


def render_summary(facts: Mapping[str, Any]) -> str:
    """Return the summary as text: totals, then the worst groups and their problems.

    Orphaned and shared queues are counted in each group's last epoch, its current state.
    """
    counts = {
        "groups": facts["groups"],
        "epochs": facts["epochs"],
        "queues moved": facts["moved"],
        "without an owner": facts["orphaned"],
        "with several owners": facts["shared"],
        "failed starts": facts["failed_starts"],
        "rejected rows": facts["rejected_rows"],
    }
    begun = f"with an event after the end of {facts['state']}" if "state" in facts else ""
    notes = {
        "groups": begun,
        "queues moved": "over the whole period",
        "without an owner": "now",
        "with several owners": "now",
        "failed starts": "new owners that cannot start to pull",
        "rejected rows": terminal.by_code(facts["rejected"]),
    }
    counts = {name: count for name, count in counts.items() if count is not None}
    lines = [
        f"Ledger in {facts['output']} ({terminal.took(facts)})",
        f"Changes from {terminal.utc(facts['first_ms'])} to {terminal.utc(facts['last_ms'])}",
        "",
        *terminal.numbers(counts, notes),
    ]
    worst = facts["worst_groups"]
    if worst:
        title = "The group" if len(worst) == 1 else f"The {len(worst)} worst groups"
        title = title if facts["groups"] > len(worst) else "Groups, worst first"
        lines += ["", title, *table(WORST_HEADER, _cells(worst), text=(0, 1, -1))]
    return terminal.joined(lines)


def _cells(groups: "Sequence[GroupTotals]") -> list[list[str]]:
    clusters = {group["cluster"] for group in groups}
    return [
        [
            group["consumer_group"]
            if len(clusters) == 1
            else f"{group['cluster']}/{group['consumer_group']}",
            terminal.utc(group["last_ms"]),
            f"{group['orphaned']:,}",
            f"{group['shared']:,}",
            *("" if group[of] is None else f"{group[of]:,}" for of in ("failed_starts", "moved")),
            what_is_wrong(group),
        ]
        for group in groups
    ]


def what_is_wrong(group: "GroupTotals") -> str:
    """Return a sentence about a group's current state, the most serious problem first."""
    orphaned, shared, failed = group["orphaned"], group["shared"], group["failed_starts"]
    parts = []
    if group["status"] == "EMPTY":
        parts.append("the group has no member left to read its queues")
    elif group["status"] == "FROZEN":
        parts.append(
            "a topic cannot be allocated (no readable queue, or the strategy throws): members "
            "keep the queues that they held"
        )
    if orphaned and group["status"] != "EMPTY":
        parts.append(f"{counted(orphaned, 'queue')} of {group['queues']:,} without a reader")
    if shared:
        parts.append(f"{counted(shared, 'queue')} read by several processes at once")
    if failed:
        parts.append(f"{counted(failed, 'start')} failed")
    return "; ".join(parts) or "nothing"

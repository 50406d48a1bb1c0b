"""The `size` job, from its settings to the run, its record and its summary."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rebalance_core.cli import terminal
from rebalance_core.cli.dry_run import dry_run_report
from rebalance_core.cli.jobs import JobReport
from rebalance_core.cli.planning_options import SizeOptions
from rebalance_core.cli.run.backend import backend_of
from rebalance_core.cli.run.input_files import tables_of
from rebalance_core.cli.run.run_record import outcome_of
from rebalance_core.cli.settings import bad_row_limits, settings_of
from rebalance_core.engine.propagation import PropagationOptions
from rebalance_core.model.nouns import counted
from rebalance_core.planning.group_sizes import Demand
from rebalance_core.process.propagate import propagation_forecast
from rebalance_core.process.sizes import ROWS, WRITTEN, write_sizes

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import SizesRow


def run(options: SizeOptions) -> JobReport:
    """Run the job and return the report for stdout."""
    settings = settings_of(options)
    inputs = tables_of(options.input, options.input_format)
    backend = backend_of("size", options, settings, inputs.values() or [options.input])
    limits = bad_row_limits(settings)
    groups = PropagationOptions(
        seeds=1, group=options.group, max_queue_nums=settings.limits.max_queue_nums
    )
    if options.dry_run:
        backend.check_free()
        tables = backend.input_tables(inputs)
        rows, _ = backend.run(propagation_forecast, tables, groups, limits, warn=terminal.warn)
        return dry_run_report("size", options, inputs, rows, WRITTEN, output=options.output)
    demand = Demand(
        service_ms=options.service_time,
        threads=options.threads,
        growth=options.growth,
        outage_ms=options.outage,
        catch_up_ms=options.catch_up,
        target_lag=options.target_lag,
    )
    with backend.running(WRITTEN) as output:
        records = backend.records(inputs)
        written = backend.run(
            write_sizes,
            backend.input_tables(inputs),
            backend.output(),
            demand,
            limits,
            groups,
            before_writing=output.clear,
            warn=terminal.warn,
        )
        record = output.finish(outcome_of(written, records))
    results = {
        "sizes": written.facts[ROWS],
        "rejected": dict(written.rejected),
        "rows": {name: table.rows for name, table in written.tables.items()},
    }
    facts = terminal.result_facts("size", options.output, results, record.seconds, backend.name)
    return JobReport(_render(facts), facts)


HEADER = ("group", "msgs/s", "unread", "members", "queues", "bound", "why")


def _render(facts: Mapping[str, Any]) -> str:
    """Return the summary as text, with a row for every group."""
    rows = facts["sizes"]
    groups = counted(len(rows), "group")
    lines = [f"Sizes of {groups} in {facts['output']} ({terminal.took(facts)})", ""]
    lines += ["With any one member or broker missing; now -> needed"]
    lines += terminal.table(HEADER, [list(_cells(row)) for row in rows], text=(0, 5, 6))
    lines += terminal.rejected_rows(facts["rejected"])
    return terminal.joined(lines)


def _cells(row: "SizesRow") -> Iterator[str]:
    yield f"{row['cluster']}/{row['consumer_group']}"
    yield "-" if row["rate"] is None else f"{row['rate']:,.1f}"
    yield terminal.whole(row["unread"])
    yield f"{row['members_now']:,} -> {terminal.whole(row['members'])}"
    yield f"{row['queues_now']:,} -> {terminal.whole(row['queues'])}"
    yield row["bound"]
    yield row["reason"]

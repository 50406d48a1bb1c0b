"""A whole plan in this process: check the input, compute every variant, write the tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pyarrow as pa

from rebalance_core.checks.input_tables import InputTables
from rebalance_core.checks.row_checks import Checked, check_tables, complaints
from rebalance_core.checks.row_limits import refuse_bad_rows
from rebalance_core.contracts import PLAN_OUTPUT_TABLES, REJECTED
from rebalance_core.engine.fan_out import fan_out
from rebalance_core.engine.options import group_pattern
from rebalance_core.engine.row_forecast import RowForecast
from rebalance_core.engine.table_writer import TableWriters
from rebalance_core.planning.sweep.history_rows import EVENTS
from rebalance_core.planning.sweep.passes import Sweep, sweep_of
from rebalance_core.planning.sweep.plan_options import PlanConfig, recorded_history
from rebalance_core.planning.sweep.plan_result import PlanResult
from rebalance_core.planning.variants import Variants
from rebalance_core.process.plan.histories import Histories, first_groups
from rebalance_core.process.plan.plan_tables import PlanTables
from rebalance_core.process.plan.rejected import write_rejected
from rebalance_core.process.plan.sweep import swept_groups
from rebalance_core.process.row_forecast import row_forecast
from rebalance_core.storage.locations import Location

Progress = Callable[[int, int], object]


def run_plan(
    inputs: InputTables,
    variants: Variants,
    output: Location,
    options: PlanConfig | None = None,
    *,
    queue_rates: pa.Table | None = None,
    before_writing: Callable[[Mapping[str, int]], object] | None = None,
    warn: Callable[[str], object] | None = None,
    progress: Progress | None = None,
) -> PlanResult:
    """Compute and write a plan.

    Memory: the input, the events of one history, the rows of some groups, and ``plan_summary``.

    Args:
        inputs: The recorded history.
        variants: What to compute (`variants_of`).
        output: A folder (`place_of`), which gets ``rejected`` and the tables of a plan; none of
            them may be there.
        options: See `PlanConfig`.
        queue_rates: Rows of ``queue_rates`` (`read_queue_rates`); None: they are not known.
        before_writing: Called with the input's rows by table, once few enough are known to be bad,
            before the first table is written.
        warn: Gets a text for each input table with unknown columns, which are not read.
        progress: Told how many groups are done, of how many; a group counts in every history.

    Raises:
        InputRefused: The input has no event or too many bad rows, or an edit makes too many events
            at one instant. Events that name a member who is not there count too, and are known only
            once writing has begun.
        OutputExists: A table is in the folder already.
    """
    options = options or PlanConfig()
    checked = _checked(inputs, options, warn)
    refuse_bad_rows(checked.counts, options.bad_rows, lambda: complaints(checked.rejected))
    rows = {name: count.rows for name, count in checked.counts.items()}
    if before_writing is not None:
        before_writing(rows)
    events = checked.tables[EVENTS]
    shown = None if options.group else first_groups(events, options.ownership_groups)
    # with rates the holders of every queue are wanted
    owned = shown if queue_rates is None else None
    sweep = sweep_of(variants, options, checked.tables, {}, owned, shown)
    with TableWriters(output, (*PLAN_OUTPUT_TABLES, REJECTED.name)) as writers:
        rejected = write_rejected(writers, checked, options)
        histories = Histories(checked.tables, variants)
        tables = PlanTables(writers, variants, shown, queue_rates)
        pattern = group_pattern(recorded_history(options))
        warnings = _sweep(tables, histories, sweep, pattern, progress)
        scenarios, league = tables.finish()
    return PlanResult(
        tables=writers.written(),
        input_rows=rows,
        rejected=rejected,
        scenarios=scenarios,
        league=league,
        warnings=(*histories.unmatched(), *sorted(warnings)),
    )


def plan_forecast(
    inputs: InputTables,
    variants: Variants,
    options: PlanConfig | None = None,
    *,
    warn: Callable[[str], object] | None = None,
) -> tuple[RowForecast, tuple[str, ...]]:
    """How `run_plan` would end for the rows of its input, and its warnings; writes nothing."""
    options = options or PlanConfig()
    checked = _checked(inputs, options, warn)
    forecast = row_forecast(checked, recorded_history(options), options.bad_rows)
    if forecast.refusal is not None:
        return forecast, ()
    histories = Histories(checked.tables, variants)
    return forecast, (*histories.unmatched(), *sorted(histories.warnings()))


def _checked(
    inputs: InputTables, options: PlanConfig, warn: Callable[[str], object] | None
) -> Checked:
    if warn is not None:
        for name, columns in inputs.unknown_columns.items():
            warn(f"{name} has unknown column(s), not read: {', '.join(columns)}")
    return check_tables(inputs, max_queue_nums=options.max_queue_nums)


def _sweep(
    tables: PlanTables,
    histories: Histories,
    sweep: Sweep,
    pattern: str | None,
    progress: Progress | None,
) -> set[str]:
    """Every variant, history by history; what edits could not do."""
    done, warnings = 0, set[str]()
    for number in range(len(histories)):
        history = histories.of(number)
        warnings |= history.warnings
        grouped = fan_out(history.tables, pattern)
        total = done + (len(histories) - number) * len(grouped)
        for rows in swept_groups(grouped, replace(sweep, first_ms=history.first_ms)):
            tables.add(number, history, rows)
            if progress is not None:
                progress(done + rows.done, total)
        done += len(grouped)
    return warnings

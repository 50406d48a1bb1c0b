"""A plan in this process: the input of every history, one at a time, its ledger, and the tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.checks.input_tables import ArrowTables, read_table
from rebalance_core.checks.row_checks import Checked, Rejections, check_table, check_tables
from rebalance_core.checks.row_limits import refuse_bad_rows
from rebalance_core.contracts import PLAN_OUTPUT_TABLES, REJECTED, planning
from rebalance_core.engine.fan_out import fan_out
from rebalance_core.engine.ledger_pass import history_of
from rebalance_core.engine.options import RowForecast, engine_options, like_pattern, refuse_rejected
from rebalance_core.engine.table_writer import TableWriters
from rebalance_core.model import events
from rebalance_core.planning.sweep.plan_edits import EVENTS, EventFacts, is_type, plan_edits
from rebalance_core.planning.sweep.plan_options import (
    MOST_REASONS,
    PlanConfig,
    PlanResult,
    recorded_history,
    refuse_bad_rates,
)
from rebalance_core.planning.variants import Variants
from rebalance_core.process.plan_histories import Histories
from rebalance_core.process.plan_pass import PlanFacts, PlanPass, Progress, plan_pass
from rebalance_core.process.plan_summary import last_rates, plan_league, scenario_rows
from rebalance_core.process.simulate import checked_forecast, refuse_no_group_of, unknown_members
from rebalance_core.replay.history import GroupHistory
from rebalance_core.storage.place import Location

# A whole plan in this process: check the input, compute every variant, write the tables.

# The table ``rejected`` of a plan: what is wrong with the history as it was recorded.


def write_rejected(writers: TableWriters, checked: Checked, options: PlanConfig) -> dict[str, int]:
    """Write bad rows, and events of the recorded history about a process that is not there.

    Returns:
        How often each issue code occurs.

    Raises:
        InputRefused: There are too many.
    """
    unknown = unknown_members(checked.tables, recorded_history(options))
    rejected = Rejections()
    for rows in (*checked.rejected.to_batches(), *unknown):
        writers.write(REJECTED.name, rows)
        rejected.add(rows)
    refuse_rejected(checked.counts, rejected, options.bad_rows)
    return rejected.codes


# The optional input ``queue_rates``: messages per second of each queue.

_RATE = "messages_per_second"


def read_queue_rates(location: str, input_format: str | None = None, *, name: str = "") -> pa.Table:
    """The rows of the table.

    Args:
        location: A local path.
        input_format: Of the files; None: by their names.
        name: What the message calls the table; the location if it is empty.

    Raises:
        InputRefused: Any row is bad; rates are few, and one left out would go unnoticed.
    """
    rows, _ = read_table(planning.QUEUE_RATES, location, input_format)
    checked = check_table(planning.QUEUE_RATES.name, rows)
    return good_rates(checked.tables[planning.QUEUE_RATES.name], checked.rejected, name or location)


def good_rates(good: pa.Table, rejected: pa.Table, name: str) -> pa.Table:
    """The used rows; `model.errors.InputRefused` if any row is rejected, or a rate is none."""
    wrong = pc.or_(pc.is_nan(good[_RATE]), pc.less(good[_RATE], 0))
    negative = good[_RATE].filter(wrong).slice(0, MOST_REASONS).to_pylist()
    bad = rejected["issues"].slice(0, MOST_REASONS).to_pylist()
    refuse_bad_rates(name, [issues[0]["message"] for issues in bad], negative)
    return good


def run_plan(
    inputs: ArrowTables,
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
        progress: As of `PlanPass.rows`.

    Raises:
        InputRefused: The input has no event or too many bad rows, or an edit makes too many events
            at one instant. Events that name a member who is not there count too, and are known only
            once writing has begun.
        OutputExists: A table is in the folder already.
    """
    options = options or PlanConfig()
    checked = check_tables(inputs, max_queue_nums=options.max_queue_nums, warn=warn)
    refuse_bad_rows(checked.counts, options.bad_rows, checked.complaints)
    refuse_no_group_of(checked, options.group)
    if before_writing is not None:
        before_writing({name: count.rows for name, count in checked.counts.items()})
    rates = None if queue_rates is None else last_rates(queue_rates)
    planned = _plan_pass(checked, variants, options, rates)
    with TableWriters(output, (*PLAN_OUTPUT_TABLES, REJECTED.name)) as writers:
        rejected = write_rejected(writers, checked, options)
        facts, summary = PlanFacts(), list[pa.RecordBatch]()
        numbers = range(len(variants.histories))
        for table, batch in planned.rows(checked.tables, facts, numbers, progress=progress):
            writers.write(table, batch)
            if table == planning.PLAN_SUMMARY.name:
                summary.append(batch)
        whole = pa.Table.from_batches(summary, planning.PLAN_SUMMARY.arrow_schema())
        league = plan_league(whole, facts.sound)
        writers.write_tables({planning.PLAN_LEAGUE.name: league})
    return PlanResult(
        tables=writers.written(),
        inputs=checked.counts,
        rejected=rejected,
        scenarios=scenario_rows(whole),
        league=league.to_pylist(),
        warnings=planned.edits.told(facts.warnings),
    )


def plan_forecast(
    inputs: ArrowTables,
    variants: Variants,
    options: PlanConfig | None = None,
    *,
    warn: Callable[[str], object] | None = None,
) -> tuple[RowForecast, tuple[str, ...]]:
    """Return how `run_plan` would end for the rows of its input, and its warnings; writes
    nothing.
    """
    options = options or PlanConfig()
    checked = check_tables(inputs, max_queue_nums=options.max_queue_nums, warn=warn)
    forecast = checked_forecast(checked, recorded_history(options), options.bad_rows)
    if forecast.refusal is not None:
        return forecast, ()
    planned = _plan_pass(checked, variants, options, None)
    return forecast, planned.edits.told(planned.histories(checked.tables).warnings())


def _plan_pass(
    checked: Checked, variants: Variants, options: PlanConfig, rates: pa.Table | None
) -> PlanPass:
    tables = checked.tables
    edits = plan_edits(EventFacts.of_tables(tables), variants)
    members = tables[EVENTS].filter(is_type(tables[EVENTS], events.CONSUMER_EVENTS))
    return plan_pass(variants, edits, members, tables, options, rates)


# The histories of a plan as the replay has them, to look into one group.


def planned_histories(
    inputs: ArrowTables, variants: Variants, group: str
) -> Iterator[tuple[str, int, GroupHistory]]:
    """(scenario, first edit in epoch ms, history) of the groups wanted in each history of a plan.

    Bad rows are left out. Without a scenario the first edit is -1.

    Args:
        inputs: the recorded history.
        variants: what to compute; strategies do not matter.
        group: a name, or a glob.
    """
    tables = check_tables(inputs).tables
    edits = plan_edits(EventFacts.of_tables(tables), variants)
    histories = Histories(tables, edits, like_pattern(group))
    for number, named in enumerate(variants.histories):
        edited = histories.of(number)
        grouped = fan_out(edited.tables, like_pattern(group))
        for place in range(len(grouped)):
            history = history_of(grouped.of(place, place + 1), engine_options(edited.tables))
            yield named.name, edited.first_ms.get(history.cluster, -1), history

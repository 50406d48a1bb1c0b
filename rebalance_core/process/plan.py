"""The plan job: apply scenarios and strategies to a recorded history, with all variants in one
run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.checks.input_tables import ArrowTables
from rebalance_core.checks.rejections import Rejections
from rebalance_core.checks.row_checks import check_tables
from rebalance_core.contracts import PLAN_OUTPUT_TABLES, REJECTED, planning
from rebalance_core.engine.fan_out import fan_out, with_empty_events_if_missing
from rebalance_core.engine.group_history import history_of
from rebalance_core.engine.options import (
    RowForecast,
    engine_options,
    like_pattern,
    refuse_rejected,
    row_forecast,
)
from rebalance_core.engine.routing import (
    UNDIVIDED,
    Interests,
    Routing,
    interests_of,
    refuse_no_group,
    routing_of,
)
from rebalance_core.planning.sweep.plan_edits import (
    EventFacts,
    Lives,
    event_facts,
    interests_in,
    lives,
    plan_edits,
)
from rebalance_core.planning.sweep.plan_options import (
    MOST_REASONS,
    PlanConfig,
    PlanResult,
    recorded_history,
    refuse_bad_rates,
)
from rebalance_core.planning.variants import Variants, wants_members, with_single_losses
from rebalance_core.process.plan_expectations import (
    expectation_rows,
    groups_expected_of,
    groups_to_time,
    refuse_unjudged_plan,
)
from rebalance_core.process.plan_histories import Histories
from rebalance_core.process.plan_losses import loss_rows
from rebalance_core.process.plan_pass import OF_GROUPS, PlanFacts, PlanPass, Progress, plan_pass
from rebalance_core.process.plan_summary import last_rates, plan_league, scenario_rows
from rebalance_core.process.runtime import (
    HERE,
    CheckedInput,
    Part,
    Rows,
    Runtime,
    StatsOf,
    TableRows,
)
from rebalance_core.process.simulate import RejectedTask
from rebalance_core.replay.history import GroupHistory
from rebalance_core.storage.place import Location


@dataclass(frozen=True, slots=True)
class PlanTask:
    """`Work` that makes a plan's rows of single groups; its facts are their `PlanFacts`.

    Attributes:
        planned: The plan.
        copies: The number of tasks that receive a group's rows and share its histories.
        progress: As in `PlanPass.rows`.
    """

    VERB: ClassVar[str] = "plan"
    planned: PlanPass
    copies: int
    progress: Progress | None = None

    def __call__(self, parts: Iterable[Part], facts: PlanFacts) -> TableRows:
        """Yield the rows, as `Work`."""
        histories = len(self.planned.variants.histories)
        for number, tables in parts:
            numbers = range(number % self.copies, histories, self.copies)
            yield from self.planned.rows(_used(tables), facts, numbers, progress=self.progress)

    def warned(self, parts: Iterable[Part], facts: PlanFacts) -> TableRows:
        """Collect the warnings of the edits in the facts, and return no rows."""
        for _, tables in parts:
            facts.warnings |= self.planned.histories(_used(tables)).warnings()
        return ()


def _used(tables: dict[str, pa.Table]) -> Mapping[str, pa.Table]:
    return with_empty_events_if_missing(
        {name: rows for name, rows in tables.items() if name != REJECTED.name}
    )


_RATE = "messages_per_second"


def read_queue_rates(
    location: str,
    input_format: str | None = None,
    *,
    name: str = "",
    runtime: Runtime = HERE,
) -> pa.Table:
    """Return the checked rows of ``queue_rates``, in this process.

    Args:
        location: A path that the runtime can reach.
        input_format: The format of the files; None to infer it from their names.
        name: The table's name in messages; the location if it is empty.
        runtime: Where the job runs.

    Raises:
        InputRefused: A row or rate is bad; a missing rate would go unnoticed.
    """
    table = planning.QUEUE_RATES.name
    with runtime.check(runtime.read({table: location}, input_format)) as checked:
        good = checked.rows(table)
        bad = checked.rows(REJECTED.name, MOST_REASONS)["issues"].to_pylist()
    wrong = pc.or_(pc.is_nan(good[_RATE]), pc.less(good[_RATE], 0))
    negative = good[_RATE].filter(wrong).slice(0, MOST_REASONS).to_pylist()
    refuse_bad_rates(name or location, [issues[0]["message"] for issues in bad], negative)
    return good


_COUNTED = (interests_of, event_facts)


def _counted(variants: Variants) -> tuple[StatsOf, ...]:
    """Return what to count in the rows; members at the end are counted only if losses name them."""
    return (*_COUNTED, lives) if wants_members(variants) else _COUNTED


def run_plan(
    inputs: Any,
    variants: Variants,
    output: Location,
    options: PlanConfig | None = None,
    *,
    queue_rates: pa.Table | None = None,
    before_writing: Callable[[Mapping[str, int]], object] | None = None,
    warn: Callable[[str], object] | None = None,
    progress: Progress | None = None,
    runtime: Runtime = HERE,
) -> PlanResult:
    """Compute and write a plan.

    Memory: a task holds its input, the events of one history and the rows of some groups; the
    driver holds ``plan_summary`` and the events of brokers and topics.

    Args:
        inputs: The recorded history, in the form of the runtime.
        variants: What to compute (`variants_of`).
        output: The folder for ``rejected`` and the tables of a plan (`place_of`); none of them may
            exist in it.
        options: See `PlanConfig`.
        queue_rates: Rows of ``queue_rates`` (`read_queue_rates`); None if unknown.
        before_writing: Called with the number of input rows by table before the first table is
            written, once the bad rows are known to be within the limits.
        warn: Receives a message for each input table with unknown columns, which are ignored.
        progress: As in `PlanPass.rows`; only in-process.
        runtime: Where the job runs.

    Raises:
        UsageError: An expectation would not be judged (`refuse_unjudged_plan`), or there is no
            object of the kind that a scenario with ``each`` loses.
        InputRefused: The input has no events or too many bad rows, or an edit makes too many events
            at the same instant. Events of missing members count as bad but are only known once
            ``rejected`` is written.
        OutputExists: The folder already has one of the tables.
    """
    options = options or PlanConfig()
    with runtime.check(
        inputs, _counted(variants), max_queue_nums=options.max_queue_nums, warn=warn
    ) as checked:
        checked.refuse(options.bad_rows)
        refuse_no_group(options.group, checked.stats(Interests))
        rates = None if queue_rates is None else last_rates(queue_rates)
        dealt = _dealt(runtime, checked, variants, options, rates, progress)
        if before_writing is not None:
            before_writing({name: count.rows for name, count in checked.counts.items()})
        with runtime.tables(output, (*PLAN_OUTPUT_TABLES, REJECTED.name)) as tables:
            recorded = RejectedTask(recorded_history(options))
            rejected = tables.write(dealt.rows(1), recorded, Rejections, [REJECTED.name])
            refuse_rejected(checked.counts, rejected, options.bad_rows)
            facts = tables.write(dealt.rows(), dealt.work, PlanFacts, OF_GROUPS)
            planned = dealt.work.planned
            expected = expectation_rows(planned.variants, dealt.expected_of, facts.expected)
            tables.add(planning.EXPECTATIONS.name, expected)
            summary = facts.summary()
            losses = loss_rows(planned.variants, summary)
            tables.add(planning.LOSSES.name, losses)
            league = plan_league(summary, facts.sound)
            tables.add(planning.PLAN_LEAGUE.name, league)
            written = tables.finish()
    return PlanResult(
        tables=written,
        inputs=checked.counts,
        rejected=rejected.codes,
        scenarios=scenario_rows(summary),
        league=league.to_pylist(),
        warnings=planned.edits.all_warnings(facts.warnings),
        expectations=expected.to_pylist(),
        losses=losses.to_pylist(),
        variants=planned.variants,
    )


def plan_forecast(
    inputs: Any,
    variants: Variants,
    options: PlanConfig | None = None,
    *,
    warn: Callable[[str], object] | None = None,
    runtime: Runtime = HERE,
) -> tuple[RowForecast, tuple[str, ...]]:
    """Return how `run_plan` would judge the rows of its input, and its warnings, without
    writing.
    """
    options = options or PlanConfig()
    with runtime.check(
        inputs, _counted(variants), max_queue_nums=options.max_queue_nums, warn=warn
    ) as checked:
        dealt = _dealt(runtime, checked, variants, options, None, None)
        recorded = RejectedTask(recorded_history(options))
        forecast = row_forecast(
            checked.counts,
            checked.rejections,
            options.bad_rows,
            lambda: refuse_no_group(options.group, checked.stats(Interests)),
            lambda: runtime.run(dealt.rows(1), recorded, Rejections),
        )
        if forecast.refusal is not None:
            return forecast, ()
        facts = runtime.run(dealt.rows(1), dealt.work.warned, PlanFacts)
        return forecast, dealt.work.planned.edits.all_warnings(facts.warnings)


@dataclass(frozen=True)
class _Dealt:
    """The checked rows and the work of the tasks.

    Attributes:
        runtime: Where the job runs.
        checked: The input.
        routing: The task of each row.
        work: The work of the tasks.
        expected_of: The planned groups, if there are expectations.
    """

    runtime: Runtime
    checked: CheckedInput
    routing: Routing
    work: PlanTask
    expected_of: Sequence[tuple[str, str]]

    def rows(self, copies: int | None = None) -> Rows:
        """Return the rows of each task, by default in as many copies as the work needs."""
        return self.runtime.deal(self.checked, self.routing, copies or self.work.copies)


def _dealt(
    runtime: Runtime,
    checked: CheckedInput,
    variants: Variants,
    options: PlanConfig,
    rates: pa.Table | None,
    progress: Progress | None,
) -> _Dealt:
    """Distribute whole groups to as many tasks as rows and histories need."""
    recorded, facts = checked.stats(Interests), checked.stats(EventFacts)
    members = checked.stats(Lives).members() if wants_members(variants) else {}
    variants = with_single_losses(variants, facts.clusters(), members)
    expected_of = groups_expected_of(variants, facts.clusters(), options.group)
    refuse_unjudged_plan(variants, expected_of, checked.tables, options)
    edits = plan_edits(facts, variants)
    timed = groups_to_time(variants, expected_of)
    planned = plan_pass(variants, edits, recorded.groups, checked.tables, options, rates, timed)
    interests = interests_in(recorded, facts, edits)
    histories = len(variants.histories)
    rows = sum(count.rows for count in checked.counts.values()) * histories
    tasks = runtime.task_count(rows, wanted=options.partitions)
    # with few groups, several tasks share each group's histories
    copies = min(histories, max(1, tasks // max(1, _wanted(interests, planned.group_pattern))))
    # editing a group requires all its rows
    sharing_groups = checked.sharing_groups() if options.futures and tasks > 1 else None
    routing = routing_of(
        interests,
        -(-tasks // copies),
        planned.group_pattern,
        UNDIVIDED,
        sharing_groups,
        as_one=True,
    )
    return _Dealt(runtime, checked, routing, PlanTask(planned, copies, progress), expected_of)


def _wanted(interests: Interests, pattern: str | None) -> int:
    """Return how many groups match the pattern."""
    names = interests.groups["consumer_group"]
    return len(names) if pattern is None else pc.sum(pc.match_like(names, pattern)).as_py() or 0


def planned_histories(
    inputs: ArrowTables, variants: Variants, group: str
) -> Iterator[tuple[str, int, GroupHistory]]:
    """Yield (scenario, first edit in epoch ms, history) of the selected groups in each history.

    Bad rows are left out. Without a scenario the first edit is -1.

    Args:
        inputs: the recorded history.
        variants: what to compute; strategies do not matter.
        group: a name, or a glob.
    """
    tables = check_tables(inputs).tables
    facts = EventFacts.of_tables(tables)
    members = Lives.of_tables(tables).members() if wants_members(variants) else {}
    variants = with_single_losses(variants, facts.clusters(), members)
    edits = plan_edits(facts, variants)
    histories = Histories(tables, edits, like_pattern(group))
    for number, named in enumerate(variants.histories):
        edited = histories.history(number)
        grouped = fan_out(edited.tables, like_pattern(group))
        for place in range(len(grouped)):
            history = history_of(grouped.tables_of(place, place + 1), engine_options(edited.tables))
            yield named.name, edited.first_ms.get(history.cluster, -1), history

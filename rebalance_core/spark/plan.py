"""Plans on Spark: scenarios and strategies over a recorded history, every variant in one run."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from rebalance_core.checks.row_checks import Rejections
from rebalance_core.contracts import PLAN_OUTPUT_TABLES, REJECTED
from rebalance_core.contracts.planning import PLAN_LEAGUE, PLAN_SUMMARY, QUEUE_RATES
from rebalance_core.engine.ledger_pass import with_empty_events_if_missing
from rebalance_core.engine.options import RowForecast, refuse_rejected, row_forecast
from rebalance_core.engine.routing import (
    UNDIVIDED,
    Interests,
    Routing,
    interests_of,
    refuse_no_group,
    routing_of,
)
from rebalance_core.planning.sweep.plan_edits import (
    EVENTS,
    EventFacts,
    event_facts,
    interests_in,
    plan_edits,
)
from rebalance_core.planning.sweep.plan_options import (
    MOST_REASONS,
    PlanConfig,
    PlanResult,
    recorded_history,
)
from rebalance_core.planning.variants import Variants
from rebalance_core.process.plan import good_rates
from rebalance_core.process.plan_pass import OF_GROUPS, PlanFacts, PlanPass, plan_pass
from rebalance_core.process.plan_summary import last_rates, plan_league, scenario_rows
from rebalance_core.process.runtime import TableRows
from rebalance_core.spark import checks
from rebalance_core.spark.checks import CheckedFrames
from rebalance_core.spark.ledger import RejectedTask
from rebalance_core.spark.older_sparks import arrow_of
from rebalance_core.spark.propagate import mates_in_frame
from rebalance_core.spark.read_tables import InputTables, read_table
from rebalance_core.spark.routed_rows import routed_rows, routed_tables
from rebalance_core.spark.sources import GivenTables, task_count
from rebalance_core.spark.task_tables import make_unwritten, task_tables

# What tasks do for a plan, each with the rows of whole groups (`routed_rows`).

Batches = Iterable[pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class PlanTask:
    """Rows of the tables of a plan that are of single groups; its facts are their `PlanFacts`.

    Attributes:
        planned: What is planned.
        copies: How many tasks have the rows of a group; each takes every so many-th history.
    """

    planned: PlanPass
    copies: int

    def __call__(self, batches: Batches, facts: PlanFacts) -> TableRows:
        """`Work` of `task_tables`."""
        histories = len(self.planned.variants.histories)
        for number, tables in routed_tables(batches):
            numbers = range(number % self.copies, histories, self.copies)
            yield from self.planned.rows(_used(tables), facts, numbers)

    def warned(self, batches: Batches, facts: PlanFacts) -> TableRows:
        """The facts alone, of what the edits of the groups cannot do."""
        for _, tables in routed_tables(batches):
            facts.warnings |= self.planned.histories(_used(tables)).warnings()
        return ()


def _used(tables: dict[str, pa.Table]) -> Any:
    return with_empty_events_if_missing(
        {name: rows for name, rows in tables.items() if name != REJECTED.name}
    )


# The optional input ``queue_rates``: messages per second of each queue.


def read_queue_rates(
    session: SparkSession, location: str, input_format: str | None = None, *, name: str = ""
) -> pa.Table:
    """The rows of the table, on the driver, which makes sums of them.

    Args:
        session: Any session.
        location: Path or URI.
        input_format: Of the files; None: by their names.
        name: What the message calls the table; the location if it is empty.

    Raises:
        InputRefused: Any row is bad; rates are few, and one left out would go unnoticed.
    """
    source = read_table(session, QUEUE_RATES, location, input_format)
    with closing(checks.check_and_count(GivenTables({QUEUE_RATES.name: source}))) as checked:
        bad = arrow_of(checked.rejected.limit(MOST_REASONS))
        return good_rates(arrow_of(checked.tables[QUEUE_RATES.name]), bad, name or location)


# A whole plan: check the input, compute every variant, write the tables, sum them up.

_NOTINGS = (interests_of, event_facts)


def run_plan(
    session: SparkSession,
    inputs: InputTables,
    variants: Variants,
    output: str,
    options: PlanConfig | None = None,
    *,
    queue_rates: pa.Table | None = None,
    before_writing: Callable[[Mapping[str, int]], None] | None = None,
    warn: Callable[[str], object] | None = None,
) -> PlanResult:
    """Compute and write a plan; what is kept meanwhile is released.

    Memory: of the driver ``plan_summary`` and the events of brokers and topics; of a task as of
    `process.plan` for its groups.

    Args:
        session: Any session; its default parallelism is asked for.
        inputs: The recorded history.
        variants: What to compute (`variants_of`).
        output: Path or URI of a folder, which gets ``rejected`` and the tables of a plan; none of
            them may be there.
        options: See `PlanConfig`.
        queue_rates: Rows of ``queue_rates`` (`read_queue_rates`); None: they are not known.
        before_writing: Called with the input's rows by table, once they are counted and few enough
            are bad, before the first table is written.
        warn: Gets a text for each input table with unknown columns, which are not read.

    Raises:
        InputRefused: The input has no event or too many bad rows. Events that name a member who is
            not there count too, and are known only once ``rejected`` is written.
        OutputExists: A table is in the folder already.
    """
    options = options or PlanConfig()
    checked = checks.check_and_count(inputs, options.max_queue_nums, _NOTINGS, warn)
    with closing(checked):
        checked.refuse(options.bad_rows)
        refuse_no_group(options.group, checked.stats(Interests))
        if before_writing is not None:
            before_writing({name: count.rows for name, count in checked.counts.items()})
        rates = None if queue_rates is None else last_rates(queue_rates)
        routed = _routed(session, checked, variants, options, rates)
        with task_tables(session, output, (*PLAN_OUTPUT_TABLES, REJECTED.name)) as tables:
            recorded = RejectedTask(recorded_history(options))
            rejected = tables.make(routed.rows(1), recorded, Rejections, [REJECTED.name])
            refuse_rejected(checked.counts, rejected, options.bad_rows)
            facts = tables.make(routed.rows(), routed.work, PlanFacts, OF_GROUPS)
            summary = tables.rows_of(PLAN_SUMMARY.name)
            league = plan_league(summary, facts.sound)
            tables.add(PLAN_LEAGUE.name, league)
            written = tables.finish()
    return PlanResult(
        tables=written,
        inputs=checked.counts,
        rejected=rejected.codes,
        scenarios=scenario_rows(summary),
        league=league.to_pylist(),
        warnings=routed.work.planned.edits.told(facts.warnings),
    )


def plan_forecast(
    session: SparkSession,
    inputs: InputTables,
    variants: Variants,
    options: PlanConfig | None = None,
    *,
    warn: Callable[[str], object] | None = None,
) -> tuple[RowForecast, tuple[str, ...]]:
    """Foretell how `run_plan` would end for its input, and its warnings; writes nothing."""
    options = options or PlanConfig()
    checked = checks.check_and_count(inputs, options.max_queue_nums, _NOTINGS, warn)
    with closing(checked):
        routed = _routed(session, checked, variants, options, None)
        recorded = RejectedTask(recorded_history(options))
        forecast = row_forecast(
            checked.counts,
            checked.rejections,
            options.bad_rows,
            lambda: refuse_no_group(options.group, checked.stats(Interests)),
            lambda: make_unwritten(routed.rows(1), recorded, Rejections),
        )
        if forecast.refusal is not None:
            return forecast, ()
        facts = make_unwritten(routed.rows(1), routed.work.warned, PlanFacts)
        return forecast, routed.work.planned.edits.told(facts.warnings)


@dataclass(frozen=True)
class _Routed:
    """The checked rows, and what tasks make of them.

    Attributes:
        checked: The input.
        routing: Where its rows go.
        work: Of the tasks.
    """

    checked: CheckedFrames
    routing: Routing
    work: PlanTask

    def rows(self, copies: int | None = None) -> DataFrame:
        """The rows of each task; copies as of the work."""
        return routed_rows(self.checked, self.routing, copies or self.work.copies)


def _routed(
    session: SparkSession,
    checked: CheckedFrames,
    variants: Variants,
    options: PlanConfig,
    rates: pa.Table | None,
) -> _Routed:
    """Groups whole, in as many tasks as rows and histories need."""
    recorded, facts = checked.stats(Interests), checked.stats(EventFacts)
    edits = plan_edits(facts, variants)
    planned = plan_pass(variants, edits, recorded.groups, checked.tables, options, rates)
    interests = interests_in(recorded, facts, edits)
    histories = len(variants.histories)
    rows = sum(count.rows for count in checked.counts.values()) * histories
    tasks = options.partitions or task_count(rows, session)
    # few groups: several tasks for each, with some histories
    copies = min(histories, max(1, tasks // max(1, _wanted(interests, planned.group_pattern))))
    # the edits of a group see all its rows
    mates = mates_in_frame(checked.tables[EVENTS]) if options.futures else None
    routing = routing_of(
        interests, -(-tasks // copies), planned.group_pattern, UNDIVIDED, mates, as_one=True
    )
    return _Routed(checked, routing, PlanTask(planned, copies))


def _wanted(interests: Interests, pattern: str | None) -> int:
    """How many groups are."""
    names = interests.groups["consumer_group"]
    return len(names) if pattern is None else pc.sum(pc.match_like(names, pattern)).as_py() or 0

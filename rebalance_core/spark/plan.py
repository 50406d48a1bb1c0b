"""Plans on Spark: scenarios and strategies over a recorded history, every variant in one run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from rebalance_core.checks.row_limits import RowCounts, refuse_bad_rows, with_unknown_members
from rebalance_core.contracts import PLAN_OUTPUT_TABLES, REJECTED
from rebalance_core.contracts.planning import PLAN_LEAGUE, PLAN_SUMMARY, QUEUE_RATES
from rebalance_core.engine.ledger_pass import with_empty_events_if_missing
from rebalance_core.engine.options import RowForecast
from rebalance_core.engine.routing import (
    UNDIVIDED,
    Interests,
    Routing,
    interests_of,
    refuse_no_group,
    routing_of,
)
from rebalance_core.engine.table_writer import LedgerFacts
from rebalance_core.planning.sweep.plan_edits import (
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
    refuse_bad_rates,
)
from rebalance_core.planning.variants import Variants
from rebalance_core.process.plan_pass import OF_GROUPS, PlanFacts, PlanPass, plan_pass, summed_up
from rebalance_core.process.plan_summary import last_rates
from rebalance_core.replay.group_replay import UNKNOWN_MEMBER
from rebalance_core.spark.checks import (
    CheckCounts,
    CheckedFrames,
    check,
    check_and_count,
    complaints,
)
from rebalance_core.spark.ledger import RejectedWork, rejected_rows, row_forecast
from rebalance_core.spark.read_tables import InputTables, read_table
from rebalance_core.spark.routed_rows import routed_rows, routed_tables
from rebalance_core.spark.sources import read_written, rows_of, task_count
from rebalance_core.spark.task_tables import TableRows, TaskTables, task_tables

# What tasks do for a plan, each with the rows of whole groups (`routed_rows`).

Batches = Iterable[pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class PlanWork:
    """Rows of the tables of a plan that are of single groups; the note is their `PlanFacts`.

    Attributes:
        planned: What is planned.
        copies: How many tasks have the rows of a group; each takes every so many-th history.
    """

    planned: PlanPass
    copies: int

    def __call__(self, batches: Batches) -> tuple[TableRows, object]:
        """`Work` of `task_tables`."""
        facts = PlanFacts()
        return self._rows(batches, facts), facts

    def _rows(self, batches: Batches, facts: PlanFacts) -> Iterator[tuple[str, pa.RecordBatch]]:
        histories = len(self.planned.variants.histories)
        for number, tables in routed_tables(batches):
            numbers = range(number % self.copies, histories, self.copies)
            yield from self.planned.rows(_used(tables), facts, numbers)

    def warnings(self, batches: Batches) -> Iterator[str]:
        """What the edits of the groups cannot do."""
        for _, tables in routed_tables(batches):
            yield from self.planned.histories(_used(tables)).warnings()


def _used(tables: dict[str, pa.Table]) -> Any:
    return with_empty_events_if_missing(
        {name: rows for name, rows in tables.items() if name != REJECTED.name}
    )


# The optional input ``queue_rates``: messages per second of each queue.


def read_queue_rates(
    session: SparkSession, location: str, input_format: str | None = None, *, name: str = ""
) -> DataFrame:
    """The rows of the table.

    Args:
        session: Any session.
        location: Path or URI.
        input_format: Of the files; None: by their names.
        name: What the message calls the table; the location if it is empty.

    Raises:
        InputRefused: Any row is bad; rates are few, and one left out would go unnoticed.
    """
    checked = check({QUEUE_RATES.name: read_table(session, QUEUE_RATES, location, input_format)})
    good, bad = checked.tables[QUEUE_RATES.name], checked.rejected
    negative = good.where("isnan(messages_per_second) OR messages_per_second < 0")
    reasons = [row["issues"][0]["message"] for row in rows_of(bad.limit(MOST_REASONS))]
    rates = [row["messages_per_second"] for row in rows_of(negative.limit(MOST_REASONS))]
    refuse_bad_rates(name or location, reasons, rates)
    return good


# A whole plan: check the input, compute every variant, write the tables, sum them up.

_NOTINGS = (interests_of, event_facts)


def run_plan(
    session: SparkSession,
    inputs: InputTables,
    variants: Variants,
    output: str,
    options: PlanConfig | None = None,
    *,
    queue_rates: DataFrame | None = None,
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
    checked, counted = check_and_count(inputs, options.max_queue_nums, _NOTINGS, warn)
    counts = counted.rows
    with closing(checked):
        refuse_bad_rows(counts, options.bad_rows, lambda: complaints(checked.rejected))
        refuse_no_group(options.group, counted.stats(Interests))
        if before_writing is not None:
            before_writing({name: count.rows for name, count in counts.items()})
        rates = None if queue_rates is None else last_rates(queue_rates.toArrow())
        routed = _routed(session, checked, counted, variants, options, rates)
        with task_tables(session, output, (*PLAN_OUTPUT_TABLES, REJECTED.name)) as tables:
            rejected = _write_rejected(tables, routed, options)
            _refuse_unknown(session, output, counts, rejected, options)
            facts = PlanFacts()
            for part in tables.make(routed.rows(), routed.work, OF_GROUPS):
                facts.merge(part)
            sums = summed_up(tables.rows_of(PLAN_SUMMARY.name), facts.sound)
            tables.add(PLAN_LEAGUE.name, sums.league)
            written = tables.finish()
    return PlanResult(
        tables=written,
        inputs=counts,
        rejected={code: times for code, times in sorted(rejected.items()) if times},
        scenarios=sums.scenarios,
        league=sums.league.to_pylist(),
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
    """How `run_plan` would end for the rows of its input, and its warnings; writes nothing."""
    options = options or PlanConfig()
    checked, counted = check_and_count(inputs, options.max_queue_nums, _NOTINGS, warn)
    with closing(checked):
        routed = _routed(session, checked, counted, variants, options, None)
        forecast = row_forecast(
            checked,
            counted.rows,
            options.bad_rows,
            lambda: rejected_rows(checked, routed.routing, recorded_history(options)),
            lambda: refuse_no_group(options.group, counted.stats(Interests)),
        )
        if forecast.refusal is not None:
            return forecast, ()
        return forecast, routed.work.planned.edits.told(routed.warnings())


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
    work: PlanWork

    def rows(self, copies: int | None = None) -> DataFrame:
        """The rows of each task; copies as of the work."""
        return routed_rows(self.checked, self.routing, copies or self.work.copies)

    def warnings(self) -> set[str]:
        """What the edits of groups cannot do."""
        work = self.work

        def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            yield pa.RecordBatch.from_pydict(
                {"warning": pa.array([*work.warnings(batches)], pa.string())}
            )

        told = rows_of(self.rows(1).mapInArrow(run, "warning STRING"))
        return {row["warning"] for row in told}


def _routed(
    session: SparkSession,
    checked: CheckedFrames,
    counted: CheckCounts,
    variants: Variants,
    options: PlanConfig,
    rates: pa.Table | None,
) -> _Routed:
    """Groups whole, in as many tasks as rows and histories need."""
    recorded, facts = counted.stats(Interests), counted.stats(EventFacts)
    edits = plan_edits(facts, variants)
    planned = plan_pass(variants, edits, recorded.groups, checked.tables, options, rates)
    interests = interests_in(recorded, facts, edits)
    histories = len(variants.histories)
    rows = sum(count.rows for count in counted.rows.values()) * histories
    tasks = options.partitions or task_count(rows, session)
    # few groups: several tasks for each, with some histories
    copies = min(histories, max(1, tasks // max(1, _wanted(interests, planned.group_pattern))))
    # the edits of a group see all its rows
    routing = routing_of(interests, -(-tasks // copies), planned.group_pattern, UNDIVIDED)
    return _Routed(checked, routing, PlanWork(planned, copies))


def _wanted(interests: Interests, pattern: str | None) -> int:
    """How many groups are."""
    names = interests.groups["consumer_group"]
    return len(names) if pattern is None else pc.sum(pc.match_like(names, pattern)).as_py() or 0


def _write_rejected(tables: TaskTables, routed: _Routed, options: PlanConfig) -> dict[str, int]:
    """Write bad rows, and events about a process that is not there; how many have which code."""
    facts = LedgerFacts()
    work = RejectedWork(recorded_history(options))
    for part in tables.make(routed.rows(1), work, [REJECTED.name]):
        facts.merge(part)
    return facts.rejected


def _refuse_unknown(
    session: SparkSession,
    output: str,
    counts: Mapping[str, RowCounts],
    rejected: Mapping[str, int],
    options: PlanConfig,
) -> None:
    with_unknown = with_unknown_members(counts, rejected.get(UNKNOWN_MEMBER, 0))
    written = output.rstrip("/")
    refuse_bad_rows(
        with_unknown,
        options.bad_rows,
        lambda: complaints(read_written(session, written, REJECTED.name)),
    )

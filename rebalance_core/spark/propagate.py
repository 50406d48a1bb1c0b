"""Simulated time on Spark: a task plays groups, or parts of their seeds; the same rows as in a
process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from rebalance_core.checks.packed_rows import bucket_of, by_key, pack
from rebalance_core.checks.row_checks import Rejections
from rebalance_core.checks.row_limits import BadRowLimits
from rebalance_core.clockwork.propagation_parts import propagation
from rebalance_core.clockwork.totals import propagation_totals
from rebalance_core.contracts import REJECTED
from rebalance_core.contracts.propagation import HANDOVERS, PROPAGATION, PROPAGATION_TOTALS
from rebalance_core.engine.fan_out import GROUP, fan_out
from rebalance_core.engine.ledger_pass import (
    WHOLE,
    Giants,
    HistoriesWithMates,
    with_empty_events_if_missing,
)
from rebalance_core.engine.mates import Group
from rebalance_core.engine.options import (
    RowForecast,
    engine_options,
    like_pattern,
    refuse_rejected,
    row_forecast,
)
from rebalance_core.engine.propagation import (
    PropagationFacts,
    PropagationOptions,
    Survey,
    played,
    rejected_rows,
    survey_facts,
    surveyed,
)
from rebalance_core.engine.routing import Interests, Part, interests_of, refuse_no_group, routing_of
from rebalance_core.engine.table_writer import Written
from rebalance_core.kernels.coded_groups import EngineOptions
from rebalance_core.process.runtime import TableRows
from rebalance_core.replay.history import GroupHistory
from rebalance_core.spark.checks import CheckedFrames, check_and_count
from rebalance_core.spark.older_sparks import by_number
from rebalance_core.spark.own_pieces import in_tasks
from rebalance_core.spark.read_tables import InputTables
from rebalance_core.spark.routed_rows import ROUTED_DDL, routed_batch, routed_rows, routed_tables
from rebalance_core.spark.sources import cores_of
from rebalance_core.spark.task_tables import KeptTables, kept_tables, task_tables

# What tasks do with the rows of groups: look them over, play their futures, add up their parts.

Batches = Iterable[pa.RecordBatch]

_PARTIAL, _TOTALS = "partial", "totals"
_NO_REJECTED = REJECTED.arrow_schema().empty_table()


@dataclass(frozen=True, slots=True)
class BucketGroups:
    """The groups of buckets, from the rows that `Routing` sent there.

    Attributes:
        giants: The parts of divided groups, by bucket.
        engine: They say which input tables there are.
        mates: By group: others that share client instances with it.
        guests: By bucket: groups that are there as mates alone.
    """

    giants: Mapping[int, Giants]
    engine: EngineOptions
    mates: Mapping[Group, tuple[Group, ...]] = field(default_factory=dict)
    guests: Mapping[int, frozenset[Group]] = field(default_factory=dict)

    def groups(
        self, bucket: int, tables: Mapping[str, pa.Table]
    ) -> Iterator[tuple[GroupHistory, list[Part]]]:
        """Each group, and which of how many parts of its seeds are to be played here."""
        rows = fan_out(with_empty_events_if_missing(tables))
        divided, guests = self.giants.get(bucket, {}), self.guests.get(bucket, frozenset())
        histories = HistoriesWithMates(rows, self.mates, self.engine)
        for name in histories.numbers:
            if name not in guests:
                yield histories.of(name), divided.get(name, [WHOLE])


@dataclass(slots=True)
class SurveyStats:
    """Surveys of some groups.

    Attributes:
        surveys: One a group, without its rejected rows.
        rejected: What is wrong with rows of ``rejected``.
    """

    surveys: list[Survey] = field(default_factory=list)
    rejected: Rejections = field(default_factory=Rejections)

    def merge(self, other: SurveyStats) -> None:
        """Add what was found of other groups."""
        self.surveys += other.surveys
        self.rejected.merge(other.rejected)


@dataclass(frozen=True, slots=True)
class SurveyTask:
    """`Work` of `task_tables`: looks groups over; rows of ``rejected``, with `SurveyStats`."""

    groups: BucketGroups
    options: PropagationOptions

    def __call__(self, batches: Batches, facts: SurveyStats) -> TableRows:
        """Each group in the bucket that has its first part."""
        for bucket, tables in routed_tables(batches):
            found = [
                surveyed(history, self.options)
                for history, parts in self.groups.groups(bucket, tables)
                if parts[0][0] == 0
            ]
            unknown = rejected_rows(found)
            facts.surveys += (replace(survey, rejected=()) for survey in found)
            for rows in (tables.get(REJECTED.name, _NO_REJECTED), unknown):
                facts.rejected.add(rows)
                yield from ((REJECTED.name, batch) for batch in rows.to_batches())


@dataclass(frozen=True, slots=True)
class PlayTask:
    """Plays the parts of a bucket; what they come to goes to the bucket of their group.

    Attributes:
        groups: See there.
        options: Of the simulation.
        buckets: How many there are.
    """

    groups: BucketGroups
    options: PropagationOptions
    buckets: int

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Rows of `ROUTED_DDL`: hand-overs, and partial sums."""
        for bucket, tables in routed_tables(batches):
            for history, parts in self.groups.groups(bucket, tables):
                name = history.cluster, history.consumer_group
                of_group = bucket_of(name, self.buckets)
                # a group may have more parts than seeds
                for seeds in filter(None, (self.options.part(*part) for part in parts)):
                    for made in played(history, self.options, seeds):
                        yield routed_batch(bucket, HANDOVERS.name, pack(made.handovers))
                        yield routed_batch(of_group, _PARTIAL, pack(made.partial))
                        yield routed_batch(of_group, _TOTALS, pack(made.totals))


def add_up(batches: Batches, facts: PropagationFacts) -> TableRows:
    """`Work` of `task_tables` over what `PlayTask` gives; its facts count ``propagation``."""
    for _, tables in routed_tables(batches):
        for batch in tables[HANDOVERS.name].to_batches() if HANDOVERS.name in tables else ():
            yield HANDOVERS.name, batch
        for _, parts in by_key(tables[_PARTIAL], GROUP) if _PARTIAL in tables else ():
            rows = propagation([parts])
            facts.add(rows)
            yield from ((PROPAGATION.name, batch) for batch in rows.to_batches())
        for _, parts in by_key(tables[_TOTALS], GROUP) if _TOTALS in tables else ():
            rows = propagation_totals([parts])
            yield from ((PROPAGATION_TOTALS.name, batch) for batch in rows.to_batches())


# Simulated time on Spark: the same rows as in a process, whatever the partitions.
#
# Tasks that have all rows of a group look it over, and play its futures; those of a group with
# many queues and changes are divided among several tasks, and their parts added up in one.

PLAYED = (HANDOVERS.name, PROPAGATION.name, PROPAGATION_TOTALS.name)
WRITTEN = (*PLAYED, REJECTED.name)

PIECE_CELLS = 2_000_000
"""Consumer events x queues x seeds of a part: some seconds of work."""
TASKS_PER_CORE = 4
"""More than one: their lengths differ."""


def propagate_and_write(
    session: SparkSession,
    inputs: InputTables,
    output: str,
    options: PropagationOptions,
    limits: BadRowLimits,
    *,
    partitions: int | None = None,
    before_writing: Callable[[], object] | None = None,
    warn: Callable[[str], object] | None = None,
) -> Written:
    """Simulate the futures of every group, and write what they come to.

    Args:
        session: Any session; its default parallelism is asked for.
        inputs: The input tables.
        output: Path or URI of a folder, which gets the tables; none of them may be there.
        options: What is assumed, and how many futures.
        limits: How many rows may be bad; those that name an unknown process count.
        partitions: Tasks; None: some for each core.
        before_writing: Called before the first table is written; nothing is simulated before.
        warn: Gets a text for whatever was passed over.

    Raises:
        InputRefused: The input has no event or too many bad rows.
        OutputExists: A table is in the folder already.
    """
    with ready_groups(session, inputs, options, partitions, warn) as ready:
        ready.checked.refuse(limits)
        ready.refuse_no_group()
        with closing(ready.looked_over()) as kept:
            looked = kept.facts()
            refuse_rejected(ready.checked.counts, looked.rejected, limits)
            if before_writing is not None:
                before_writing()
            playing = PlayTask(ready.groups, options, ready.tasks)
            played = ready.routed.mapInArrow(in_tasks(playing), ROUTED_DDL)
            played = by_number(played, ready.tasks, "bucket")
            with task_tables(session, output, WRITTEN) as tables:
                kept.write(tables, [REJECTED.name])
                facts = tables.make(played, add_up, PropagationFacts, PLAYED)
                written = tables.finish()
    return Written(
        tables=written,
        facts=survey_facts(looked.surveys) | facts.totals(),
        rejected=looked.rejected.codes,
        inputs=ready.checked.counts,
    )


def propagation_forecast(
    session: SparkSession,
    inputs: InputTables,
    options: PropagationOptions,
    limits: BadRowLimits,
    warn: Callable[[str], object] | None = None,
) -> tuple[RowForecast, dict[str, Any]]:
    """Foretell how `propagate_and_write` would end for its input, and how much there is to do.

    Plays and writes nothing; `survey_facts` are empty where the rows are refused.
    """
    looked = SurveyStats()

    def rejected() -> Rejections:
        with closing(ready.looked_over()) as kept:
            looked.merge(kept.facts())
        return looked.rejected

    with ready_groups(session, inputs, options, None, warn) as ready:
        counts, known = ready.checked.counts, ready.checked.rejections
        forecast = row_forecast(counts, known, limits, ready.refuse_no_group, rejected)
    return forecast, {} if forecast.refusal is not None else survey_facts(looked.surveys)


@dataclass(frozen=True, eq=False)
class RoutedGroups:
    """A checked input, and the rows of each task; a search for a rollout begins with it, too."""

    checked: CheckedFrames
    groups: BucketGroups
    routed: DataFrame
    tasks: int
    options: PropagationOptions

    def refuse_no_group(self) -> None:
        """Raise `model.errors.InputRefused` unless a group is wanted."""
        refuse_no_group(self.options.group, self.checked.stats(Interests))

    def looked_over(self) -> KeptTables[SurveyStats]:
        """Rows of ``rejected``, those that name a process that is not there among them."""
        return kept_tables(self.routed, SurveyTask(self.groups, self.options), SurveyStats)


@contextmanager
def ready_groups(
    session: SparkSession,
    inputs: InputTables,
    options: PropagationOptions,
    partitions: int | None,
    warn: Callable[[str], object] | None,
) -> Iterator[RoutedGroups]:
    """The input; what is kept meanwhile is released."""
    tasks = partitions or TASKS_PER_CORE * cores_of(session)
    with ExitStack() as released:
        checked = check_and_count(inputs, options.max_queue_nums, (interests_of,), warn)
        released.callback(checked.close)
        pattern = None if options.group is None else like_pattern(options.group)
        cells = max(1, PIECE_CELLS // options.seeds)
        mates = checked.mates()
        routing = routing_of(checked.stats(Interests), tasks, pattern, cells, mates)
        routed = routed_rows(checked, routing).persist()
        released.callback(routed.unpersist)
        engine = engine_options(checked.tables)
        groups = BucketGroups(routing.giants, engine, mates, routing.guests)
        yield RoutedGroups(checked, groups, routed, tasks, options)

"""Simulated time on Spark: the same rows as in a process, whatever the partitions.

Tasks that have all rows of a group look it over, and play its futures; those of a group with many
queues and changes are divided among several tasks, and their parts added up in one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from rebalance_core.checks.row_counts import Complaint, RowCounts
from rebalance_core.checks.row_limits import BadRowLimits, refuse_bad_rows, with_unknown_members
from rebalance_core.contracts import REJECTED
from rebalance_core.contracts.propagation import HANDOVERS, PROPAGATION
from rebalance_core.engine.options import RowForecast, like_pattern
from rebalance_core.engine.propagation import PropagationFacts, PropagationOptions, survey_facts
from rebalance_core.engine.routing import Interests, interests_of, refuse_no_group, routing_of
from rebalance_core.engine.table_writer import PropagationForecast, PropagationWritten
from rebalance_core.kernels.codes.codes import COMMITS, OFFSETS
from rebalance_core.model.errors import InputRefused
from rebalance_core.spark.engine.routed_rows import ROUTED_DDL, routed_rows
from rebalance_core.spark.propagation.tasks import BucketGroups, Playing, Surveying, adding_up
from rebalance_core.spark.tables.check_rows import Counted, check_and_note, complaints
from rebalance_core.spark.tables.quarantine import Quarantined
from rebalance_core.spark.tables.read import InputTables
from rebalance_core.spark.tables.task_tables import KeptTables, kept_tables, task_tables
from rebalance_core.spark.task_count import cores_of

WRITTEN = (HANDOVERS.name, PROPAGATION.name, REJECTED.name)

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
) -> PropagationWritten:
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
    with _checked(session, inputs, options, partitions, warn) as checked:
        checked.refuse(limits)
        with _looked_over(checked, options) as looked:
            looked.refuse(limits)
            if before_writing is not None:
                before_writing()
            playing = Playing(checked.groups, options, checked.tasks)
            played = checked.routed.mapInArrow(playing, ROUTED_DDL)
            played = played.repartitionById(checked.tasks, sf.col("bucket"))
            facts = PropagationFacts()
            with task_tables(session, output, WRITTEN) as tables:
                looked.kept.write(tables, [REJECTED.name])
                for note in tables.make(played, adding_up, [HANDOVERS.name, PROPAGATION.name]):
                    facts.merge(note)
                written = tables.finish()
    return PropagationWritten(
        tables=written,
        facts={**looked.facts, **facts.totals()},
        rejected=dict(sorted(looked.codes.items())),
        input_rows={name: count.rows for name, count in checked.counted.rows.items()},
    )


def propagation_forecast(
    session: SparkSession,
    inputs: InputTables,
    options: PropagationOptions,
    limits: BadRowLimits,
    warn: Callable[[str], object] | None = None,
) -> PropagationForecast:
    """How `propagate_and_write` would end for the rows of its input; plays and writes nothing."""
    with _checked(session, inputs, options, None, warn) as checked:
        try:
            checked.refuse(BadRowLimits(max_bad_share=1.0))
        except InputRefused as refusal:
            known = complaints(checked.tables.rejected)
            return PropagationForecast(RowForecast(checked.counted.rows, known, refusal), {})
        with _looked_over(checked, options) as looked:
            known = looked.complaints()
            try:
                looked.refuse(limits)
            except InputRefused as refusal:
                return PropagationForecast(RowForecast(looked.counts, known, refusal), {})
            return PropagationForecast(RowForecast(looked.counts, known, None), looked.facts)


@dataclass(frozen=True, eq=False)
class _Checked:
    """A checked input, and the rows of each task."""

    tables: Quarantined
    counted: Counted
    groups: BucketGroups
    routed: DataFrame
    tasks: int
    wanted: str | None

    def refuse(self, limits: BadRowLimits) -> None:
        refuse_bad_rows(self.counted.rows, limits, lambda: complaints(self.tables.rejected))
        refuse_no_group(self.wanted, self.counted.noted(Interests))


@contextmanager
def _checked(
    session: SparkSession,
    inputs: InputTables,
    options: PropagationOptions,
    partitions: int | None,
    warn: Callable[[str], object] | None,
) -> Iterator[_Checked]:
    """The input; what is kept meanwhile is released."""
    tasks = partitions or TASKS_PER_CORE * cores_of(session)
    with ExitStack() as released:
        tables, counted = check_and_note(inputs, options.max_queue_nums, (interests_of,), warn)
        released.callback(tables.close)
        pattern = None if options.group is None else like_pattern(options.group)
        cells = max(1, PIECE_CELLS // options.seeds)
        routing = routing_of(counted.noted(Interests), tasks, pattern, giant_cells=cells)
        routed = routed_rows(tables, routing).persist()
        released.callback(routed.unpersist)
        groups = BucketGroups(routing.giants, OFFSETS in tables.tables, COMMITS in tables.tables)
        yield _Checked(tables, counted, groups, routed, tasks, options.group)


@dataclass(frozen=True, eq=False)
class _LookedOver:
    """What there is to simulate, and which rows name a process that is not there."""

    kept: KeptTables
    counts: Mapping[str, RowCounts]
    codes: Counter[str]
    facts: Mapping[str, Any]

    def refuse(self, limits: BadRowLimits) -> None:
        refuse_bad_rows(self.counts, limits, self.complaints)

    def complaints(self) -> list[Complaint]:
        return complaints(self.kept.rows(REJECTED.name))


@contextmanager
def _looked_over(checked: _Checked, options: PropagationOptions) -> Iterator[_LookedOver]:
    with closing(kept_tables(checked.routed, Surveying(checked.groups, options))) as kept:
        notes = kept.notes()
        codes: Counter[str] = Counter()
        for note in notes:
            codes.update(note.rejected)
        unknown = sum(note.unknown for note in notes)
        counts = with_unknown_members(checked.counted.rows, unknown)
        facts = survey_facts(survey for note in notes for survey in note.surveys)
        yield _LookedOver(kept, counts, codes, facts)

"""Simulated time on Spark: the same rows as in a process, whatever the partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from rebalance_core.checks.row_counts import RowCounts
from rebalance_core.checks.row_limits import BadRowLimits, refuse_bad_rows, with_unknown_members
from rebalance_core.clockwork.measure.partial import propagation
from rebalance_core.contracts import REJECTED
from rebalance_core.contracts.propagation import HANDOVERS, PROPAGATION
from rebalance_core.engine.options import like_pattern
from rebalance_core.engine.propagation.facts import LISTED, SLOWEST, survey_facts, totals
from rebalance_core.engine.propagation.options import PropagationOptions
from rebalance_core.engine.row_forecast import RowForecast
from rebalance_core.engine.units import GROUP, PART
from rebalance_core.engine.written import PropagationForecast, PropagationWritten
from rebalance_core.model.errors import InputRefused
from rebalance_core.spark.driver_rows import rows_of
from rebalance_core.spark.engine.summary import rejected_per_code
from rebalance_core.spark.engine.work_units import assign_once
from rebalance_core.spark.propagation.tasks import (
    PLAYED,
    PLAYED_DDL,
    SURVEY_DDL,
    SURVEYED,
    PlayTask,
    SurveyTask,
    survey_of,
)
from rebalance_core.spark.tables.check_rows import check_rows, complaints
from rebalance_core.spark.tables.quarantine import Quarantined
from rebalance_core.spark.tables.read import InputTables
from rebalance_core.spark.tables.write import write_table
from rebalance_core.spark.tables.written import read_written

PIECE_CELLS = 2_000_000
"""Consumer events x queues x seeds of a unit: some seconds of work."""
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
    folder = output.rstrip("/")
    partitions = partitions or TASKS_PER_CORE * session.sparkContext.defaultParallelism
    with ExitStack() as kept:
        checked, counts = check_rows(inputs, options.max_queue_nums, warn)
        kept.callback(checked.close)
        looked = _looked_over(checked, counts, options, limits, partitions)
        kept.callback(looked.close)
        if before_writing is not None:
            before_writing()
        made = _units(checked, options, partitions, options.seeds)
        made = made.mapInArrow(_body(PlayTask(options, *_given(checked))), PLAYED_DDL).persist()
        kept.callback(made.unpersist)
        frames = {
            HANDOVERS.name: _of_kind(made, HANDOVERS.name),
            PROPAGATION.name: _of_kind(made, PLAYED)
            .groupBy(*GROUP)
            .applyInArrow(_propagation, PROPAGATION.plain_ddl),
            REJECTED.name: looked.rejected,
        }
        written = {name: write_table(frame, folder, name) for name, frame in frames.items()}
        codes = rejected_per_code(looked.rejected)
        facts = {**looked.facts, **_facts(read_written(session, folder, PROPAGATION.name))}
    rows = {name: count.rows for name, count in counts.items()}
    return PropagationWritten(written, facts, codes, rows)


def propagation_forecast(
    inputs: InputTables,
    options: PropagationOptions,
    limits: BadRowLimits,
    warn: Callable[[str], object] | None = None,
) -> PropagationForecast:
    """How `propagate_and_write` would end for the rows of its input; plays and writes nothing."""
    with ExitStack() as kept:
        checked, counts = check_rows(inputs, options.max_queue_nums, warn)
        kept.callback(checked.close)
        rejected = checked.rejected
        facts: Mapping[str, Any] = {}
        try:
            looked = _looked_over(checked, counts, options, BadRowLimits(max_bad_share=1.0), None)
            kept.callback(looked.close)
            rejected, counts, facts = looked.rejected, looked.counts, looked.facts
            refuse_bad_rows(counts, limits, lambda: complaints(rejected))
        except InputRefused as refusal:
            return PropagationForecast(RowForecast(counts, complaints(rejected), refusal), {})
        return PropagationForecast(RowForecast(counts, complaints(rejected), None), facts)


@dataclass(frozen=True, eq=False)
class _LookedOver:
    """A checked input that is not refused."""

    rejected: DataFrame
    counts: Mapping[str, RowCounts]
    facts: Mapping[str, Any]
    surveys: DataFrame

    def close(self) -> None:
        self.surveys.unpersist()


def _looked_over(
    checked: Quarantined,
    counts: Mapping[str, RowCounts],
    options: PropagationOptions,
    limits: BadRowLimits,
    partitions: int | None,
) -> _LookedOver:
    refuse_bad_rows(counts, limits, lambda: complaints(checked.rejected))
    units = _units(checked, options, partitions, 1).where(sf.col(PART) == 0)
    task = SurveyTask(options, *_given(checked))
    surveys = units.mapInArrow(_body(task), SURVEY_DDL).persist()
    try:
        rows = rows_of(_of_kind(surveys, SURVEYED))
        unknown = _of_kind(surveys, REJECTED.name)
        rejected = checked.rejected.unionByName(unknown)
        counts = with_unknown_members(counts, unknown.count())
        refuse_bad_rows(counts, limits, lambda: complaints(rejected))
    except BaseException:
        surveys.unpersist()
        raise
    facts = survey_facts(survey_of(row) for row in rows)
    return _LookedOver(rejected, counts, facts, surveys)


def _units(
    checked: Quarantined, options: PropagationOptions, partitions: int | None, seeds: int
) -> DataFrame:
    """The rows of each unit together: groups, large ones once for each part of their seeds."""
    pattern = None if options.group is None else like_pattern(options.group)
    cells = max(1, PIECE_CELLS // seeds)
    return assign_once(checked.tables, pattern, partitions, giant_cells=cells)


def _given(checked: Quarantined) -> tuple[bool, bool]:
    return "queue_offsets" in checked.tables, "committed_offsets" in checked.tables


def _body(
    task: SurveyTask | PlayTask,
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from task(batches)

    return run


def _propagation(parts: pa.Table) -> pa.Table:
    """The UDF's body: the parts of one group."""
    return propagation([parts])


def _of_kind(frame: DataFrame, column: str) -> DataFrame:
    return frame.where(sf.col(column).isNotNull()).select(f"{column}.*")


def _facts(rows: DataFrame) -> dict[str, Any]:
    causes = rows.groupBy("cause").agg(
        sf.count(sf.lit(1)).alias("changes"),
        sf.max("convergence_ms_p99").alias("convergence_ms_p99"),
        sf.sum("orphan_queue_seconds").alias("orphan_queue_seconds"),
        sf.sum("double_queue_seconds").alias("double_queue_seconds"),
    )
    slowest = (
        rows.select(*LISTED)
        .orderBy(
            sf.desc("convergence_ms_p99"),
            sf.desc("orphan_queue_seconds"),
            *GROUP,
            "change_ms",
        )
        .limit(SLOWEST)
    )
    return totals(rows_of(causes), rows_of(slowest))

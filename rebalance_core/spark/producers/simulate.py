"""A model of producers simulated on Spark: producers by number, spread over the tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import SparkSession

from rebalance_core.contracts import REJECTED
from rebalance_core.contracts.producers import PRODUCER_WRITTEN
from rebalance_core.engine.table_writer import ProducersWritten
from rebalance_core.model.versions import Version
from rebalance_core.producers.simulation.answers import (
    PRODUCERS_PER_PART,
    answer_tables,
    simulated_parts,
)
from rebalance_core.producers.simulation.model import ProducerModel, Variant, variants_of
from rebalance_core.spark.producers.part_notes import DETAILED, PartNote, added
from rebalance_core.spark.tables.task_tables import Rows, task_tables


def simulate_and_write(
    session: SparkSession,
    model: ProducerModel,
    versions: Sequence[Version],
    output: str,
    *,
    partitions: int | None = None,
    before_writing: Callable[[], object] | None = None,
) -> ProducersWritten:
    """Simulate a model and write its tables; the rows are those of the run in a process.

    A producer's rows depend on the model and its number only, so partitions change nothing.

    Args:
        session: Any session.
        model: What to simulate.
        versions: To compare with the groups' own.
        output: Path or URI of a folder, which gets the tables; none of them may be there.
        partitions: Tasks; None: Spark's default parallelism.
        before_writing: Called before the first table is written.

    Raises:
        OutputExists: A table is in the folder already.
    """
    if before_writing is not None:
        before_writing()
    variants = variants_of(model, versions)
    numbers = session.range(0, model.producers, 1, partitions)
    with task_tables(session, output, (*PRODUCER_WRITTEN, REJECTED.name)) as tables:
        note = added(tables.make(numbers, _Simulating(model, variants), DETAILED))
        answers = answer_tables(model, variants, note.tallies)
        nothing = {REJECTED.name: REJECTED.arrow_schema().empty_table()}
        for name, rows in (answers | nothing).items():
            tables.add(name, rows)
        return ProducersWritten(tables.finish(), answers)


@dataclass(frozen=True, slots=True)
class _Simulating:
    """`Work` of `task_tables`: the rows of some producers; the note is a `PartNote`."""

    model: ProducerModel
    variants: Mapping[str, Sequence[Variant]]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> tuple[Rows, PartNote]:
        note = PartNote()
        return self._rows(batches, note), note

    def _rows(self, batches: Iterable[pa.RecordBatch], note: PartNote) -> Rows:
        for numbers in (batch.column(0).to_pylist() for batch in batches):
            for begin in range(0, len(numbers), PRODUCERS_PER_PART):
                some = numbers[begin : begin + PRODUCERS_PER_PART]
                yield from note.counted(simulated_parts(self.model, self.variants, some))

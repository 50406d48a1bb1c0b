"""A model of producers simulated on Spark: producers by number, spread over the tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from rebalance_core.contracts import REJECTED
from rebalance_core.contracts.producers import BROKER_ISOLATIONS, PUBLISH_CHOICES
from rebalance_core.engine.written import ProducersWritten
from rebalance_core.model.versions import Version
from rebalance_core.producers.simulation.answers import answer_tables
from rebalance_core.producers.simulation.model import ProducerModel, Variant
from rebalance_core.producers.simulation.parts import simulated_parts
from rebalance_core.producers.simulation.tagged import TAGGED_DDL, tagged
from rebalance_core.producers.simulation.variants import BOTH_GENERATIONS, variants_of
from rebalance_core.spark.producers.tables import of_kind, tallies_of, write_answers
from rebalance_core.spark.tables.write import write_table

_DETAILED = (PUBLISH_CHOICES.name, BROKER_ISOLATIONS.name)


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
    folder, variants = output.rstrip("/"), variants_of(model, versions)
    rows = tagged_rows(session, model, versions, partitions).persist()
    try:
        written = {name: write_table(of_kind(rows, name), folder, name) for name in _DETAILED}
        answers = answer_tables(model, variants, tallies_of(rows))
    finally:
        rows.unpersist()
    nothing = {REJECTED.name: REJECTED.arrow_schema().empty_table()}
    written |= write_answers(session, answers | nothing, folder)
    return ProducersWritten(written, answers)


def tagged_rows(
    session: SparkSession,
    model: ProducerModel,
    versions: Sequence[Version] = BOTH_GENERATIONS,
    partitions: int | None = None,
) -> DataFrame:
    """Rows of all producers, with the name of their table; lazy."""
    numbers = session.range(0, model.producers, 1, partitions)
    return numbers.mapInArrow(_task(model, variants_of(model, versions)), TAGGED_DDL)


def _task(
    model: ProducerModel, variants: Mapping[str, Sequence[Variant]]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The UDF's body; it captures plain values and functions of modules only."""

    def rows_of(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from tagged(simulated_parts(model, variants, batch.column(0).to_pylist()))

    return rows_of

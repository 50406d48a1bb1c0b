"""Ways to get the rows of ``ownership``: the engine, and what it is compared with."""

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from rebalance_core.contracts import LEDGER_TABLES
from rebalance_core.engine.ledger_pass import rows_of
from rebalance_core.engine.units import GROUP
from rebalance_core.kernels.codes.coded_groups import EngineOptions
from rebalance_core.spark.engine.prepared_frames import prepared_chunks
from rebalance_core.spark.engine.table_pass import ROWS_PER_BATCH, Task
from rebalance_core.spark.tables.task_tables import Rows

OPTIONS = EngineOptions(queue_offsets_given=True, committed_offsets_given=True)
OWNERSHIP = LEDGER_TABLES["ownership"]


def owned(batches: Iterable[pa.RecordBatch]) -> tuple[Rows, None]:
    """`Work` over the prepared rows of members."""
    return (
        (name, rows)
        for made in prepared_chunks(batches)
        for name, rows in rows_of(made, [OWNERSHIP.name], names_coded=True)
        if name == OWNERSHIP.name
    ), None


def per_group(rows: DataFrame) -> DataFrame:
    """The same kernel called on one group's rows at a time by applyInPandas."""
    schema = pa.schema(_arrow_fields(rows))

    def one_group(group: Any) -> Any:
        table = pa.Table.from_pandas(group, schema, preserve_index=False)
        batches = list(Task("ownership", OPTIONS).rows(table))
        return pa.Table.from_batches(batches, OWNERSHIP.arrow_schema()).to_pandas()

    return rows.groupBy(*GROUP).applyInPandas(one_group, OWNERSHIP.plain_ddl)


def from_memory(spark: SparkSession, sample: pa.RecordBatch, rows: int, tasks: int) -> DataFrame:
    """A mapInArrow that only yields: as many rows of the schema, all from memory.

    Args:
        spark: the session.
        sample: rows to yield again and again; of the table compared with.
        rows: how many in all.
        tasks: by how many tasks.
    """
    share = -(-rows // tasks)
    data = sample.serialize().to_pybytes()
    schema = sample.schema

    def give(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        batch = pa.ipc.read_record_batch(pa.py_buffer(data), schema)
        for asked in batches:
            for number in asked.column(0).to_pylist():
                left = min(share, rows - number * share)
                while left > 0:
                    yield batch.slice(0, min(left, batch.num_rows, ROWS_PER_BATCH))
                    left -= min(left, batch.num_rows, ROWS_PER_BATCH)

    numbers = spark.range(0, tasks, 1, tasks)
    ddl = ", ".join(f"`{f.name}` {t}" for f, t in zip(schema, _sql_types(schema), strict=True))
    return numbers.mapInArrow(give, ddl)


def share_of_groups(rows: DataFrame, one_in: int, number: int) -> DataFrame:
    """The rows of every n-th group, by the hash of its name; there are n such shares."""
    return rows.where(sf.pmod(sf.xxhash64(*GROUP), sf.lit(one_in)) == number % one_in)


def _arrow_fields(rows: DataFrame) -> list[pa.Field]:
    from pyspark.sql.pandas.types import to_arrow_schema

    return list(to_arrow_schema(rows.schema))


def _sql_types(schema: pa.Schema) -> list[str]:
    table = next(t for t in LEDGER_TABLES.values() if t.arrow_schema().equals(schema))
    return [column.type for column in table.columns]

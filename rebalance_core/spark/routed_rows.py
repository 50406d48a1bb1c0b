"""Moves checked rows, in packed form, to the tasks of their groups in one shuffle."""

from collections.abc import Iterable, Iterator
from itertools import groupby

import pyarrow as pa
from pyspark.sql import DataFrame

from rebalance_core.checks.packed_rows import arrow_schema_of, one_row, pack, unpack
from rebalance_core.contracts import ALL_TABLES
from rebalance_core.process.runtime import Part, RowRouting
from rebalance_core.spark.checks import CheckedFrames
from rebalance_core.spark.spark_versions import by_number

REJECTED = "rejected"
ROUTED_DDL = "bucket INT, name STRING, chunk BINARY"
ROUTED_SCHEMA = arrow_schema_of(ROUTED_DDL)


def routed_rows(
    checked: CheckedFrames,
    routing: RowRouting,
    copies: int = 1,
    more_rejected: DataFrame | None = None,
) -> DataFrame:
    """Return the used and the rejected rows, with each bucket in one task.

    Args:
        checked: The input.
        routing: The buckets of its rows; a bucket may get none.
        copies: Number of tasks that receive the used rows of a bucket; those of bucket b are
            numbered from b x copies.
        more_rejected: Rows of ``rejected`` from earlier steps.
    """
    tasks = routing.buckets * copies

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        turn = 0
        for batch in batches:
            for name, used, rejected in zip(*batch.columns, strict=True):
                if used.is_valid:
                    rows = unpack(used.as_buffer())
                    for bucket, part in routing.split(name.as_py(), rows):
                        chunk = pack(part)
                        for copy in range(copies):
                            yield routed_batch(bucket * copies + copy, name.as_py(), chunk)
                if rejected.is_valid:
                    yield routed_batch(turn % tasks, REJECTED, rejected.as_py())
                    turn += 1

    chunks = checked.chunks.select("name", "used", "rejected")
    routed = chunks.mapInArrow(run, ROUTED_DDL)
    if more_rejected is not None:
        routed = routed.unionAll(_dealt(more_rejected, tasks))
    return by_number(routed, tasks, "bucket")


def _dealt(rejected: DataFrame, tasks: int) -> DataFrame:
    """Return the rows of ``rejected``, distributed over the tasks."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for turn, batch in enumerate(batches):
            rows = pa.Table.from_batches([batch]).cast(ALL_TABLES[REJECTED].arrow_schema())
            yield routed_batch(turn % tasks, REJECTED, pack(rows))

    return rejected.mapInArrow(run, ROUTED_DDL)


def routed_tables(batches: Iterable[pa.RecordBatch]) -> Iterator[Part]:
    """Yield each bucket in a task of `routed_rows`, and its rows by table."""
    chunks = sorted(
        (row for batch in batches for row in batch.to_pylist()), key=lambda row: row["bucket"]
    )
    for bucket, of_bucket in groupby(chunks, key=lambda row: row["bucket"]):
        parts: dict[str, list[pa.Table]] = {}
        for row in of_bucket:
            parts.setdefault(row["name"], []).append(unpack(row["chunk"]))
        yield bucket, {name: pa.concat_tables(tables) for name, tables in parts.items()}


def routed_batch(bucket: int, table: str, rows: bytes) -> pa.RecordBatch:
    """Return rows of a table in packed form, as `ROUTED_DDL`."""
    return one_row(ROUTED_SCHEMA, bucket, table, rows)

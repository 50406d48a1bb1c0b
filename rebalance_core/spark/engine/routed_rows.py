"""Checked rows in the tasks of their groups: packed, and moved by one shuffle."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from rebalance_core.checks.packed_rows import pack, unpack
from rebalance_core.engine.routing import Routing
from rebalance_core.spark.tables.quarantine import Quarantined

REJECTED = "rejected"
_DDL = "bucket INT, name STRING, chunk BINARY"
_SCHEMA = pa.schema([("bucket", pa.int32()), ("name", pa.string()), ("chunk", pa.binary())])


def routed_rows(checked: Quarantined, routing: Routing, copies: int = 1) -> DataFrame:
    """The used rows, and the rejected ones among them, each bucket in one task.

    Args:
        checked: The input.
        routing: Where its rows go; a bucket may get none.
        copies: How many tasks get the used rows of a bucket; those of bucket b are numbered from
            b x copies.
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
                            yield _row(bucket * copies + copy, name.as_py(), chunk)
                if rejected.is_valid:
                    yield _row(turn % tasks, REJECTED, rejected.as_py())
                    turn += 1

    chunks = checked.chunks.select("name", "used", "rejected")
    return chunks.mapInArrow(run, _DDL).repartitionById(tasks, sf.col("bucket"))


def routed_tables(
    batches: Iterable[pa.RecordBatch],
) -> Iterator[tuple[int, dict[str, pa.Table]]]:
    """Each bucket in a task of `routed_rows`, and its rows by table."""
    chunks = sorted(
        (row for batch in batches for row in batch.to_pylist()), key=lambda row: row["bucket"]
    )
    for bucket, of_bucket in groupby(chunks, key=lambda row: row["bucket"]):
        parts: dict[str, list[pa.Table]] = {}
        for row in of_bucket:
            parts.setdefault(row["name"], []).append(unpack(row["chunk"]))
        yield bucket, {name: pa.concat_tables(tables) for name, tables in parts.items()}


def _row(bucket: int, name: str, chunk: bytes) -> pa.RecordBatch:
    arrays = [pa.array([v], f.type) for v, f in zip((bucket, name, chunk), _SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)

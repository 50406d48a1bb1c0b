"""Rows of whole units as one binary a chunk: what every pass reads is unpacked at memory speed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame

from rebalance_core.checks.packed_rows import pack, unpack
from rebalance_core.engine.units import chunks

_PACKED = pa.schema([("chunk", pa.binary())])


def packed(rows: DataFrame) -> DataFrame:
    """The rows, whose units stand together in each task, as a frame of chunks."""
    return rows.mapInArrow(_pack, "chunk BINARY")


def _pack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for chunk in chunks(batches):
        yield pa.RecordBatch.from_arrays([pa.array([pack(chunk)], pa.binary())], schema=_PACKED)


def unpacked(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The chunks of `packed`."""
    for batch in batches:
        for chunk in batch.column(0):
            yield unpack(chunk.as_buffer())

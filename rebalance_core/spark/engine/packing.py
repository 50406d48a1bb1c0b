"""Rows of whole units as one binary a chunk: what every pass reads is unpacked at memory speed.

A row of many columns costs microseconds on its way from the JVM to Python, mostly for its nulls;
packed once, the same rows cost nothing in the passes that follow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame

from rebalance_core.engine.units import chunks

_PACKED = pa.schema([("chunk", pa.binary())])


def packed(rows: DataFrame) -> DataFrame:
    """The rows, whose units stand together in each task, as a frame of chunks."""
    return rows.mapInArrow(_pack, "chunk BINARY")


def _pack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    for chunk in chunks(batches):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, chunk.schema, options=options) as writer:
            writer.write_table(chunk)
        array = pa.array([sink.getvalue().to_pybytes()], pa.binary())
        yield pa.RecordBatch.from_arrays([array], schema=_PACKED)


def unpacked(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The chunks of `packed`."""
    for batch in batches:
        for chunk in batch.column(0):
            yield pa.ipc.open_stream(chunk.as_buffer()).read_all()

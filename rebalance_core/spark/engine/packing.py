"""Rows of whole units as one binary a chunk: what every pass reads is unpacked at memory speed.

A row of many columns costs microseconds on its way from the JVM to Python, mostly for its nulls;
packed once, the same rows cost nothing in the passes that follow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from rebalance_core.spark.engine.fan_out import GROUP

PART, PARTS = "_part", "_parts"
"""Which of how many ranges of its group's queues a row is for."""

ROWS_PER_CHUNK = 20_000
"""Input rows that a worker handles at once, so that its arrays fit the cache; groups stay whole."""

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


def chunks(
    batches: Iterable[pa.RecordBatch], rows_per_chunk: int = ROWS_PER_CHUNK
) -> Iterator[pa.Table]:
    """Consecutive rows as tables of whole units, each as small as ``rows_per_chunk`` allows."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= rows_per_chunk:
            table = pa.Table.from_batches(waiting)
            whole = int(unit_starts(table)[-1])
            if whole:
                yield table.slice(0, whole)
            waiting = table.slice(whole).combine_chunks().to_batches()
            rows = table.num_rows - whole
    if waiting:
        yield pa.Table.from_batches(waiting)


def unit_starts(table: pa.Table) -> np.ndarray:
    """Where each unit begins; the rows of a unit stand together."""
    new = np.ones(table.num_rows, np.bool_)
    new[1:] = False
    for name in (*GROUP, PART):
        codes = table[name].combine_chunks()
        if pa.types.is_string(codes.type):
            codes = codes.dictionary_encode().indices
        values = codes.to_numpy()
        new[1:] |= values[1:] != values[:-1]
    return np.flatnonzero(new)


def split_units(table: pa.Table) -> Iterator[pa.Table]:
    """One table a unit."""
    if not table.num_rows:
        return
    starts = unit_starts(table)
    for start, end in zip(starts, [*starts[1:], table.num_rows], strict=True):
        yield table.slice(start, end - start)

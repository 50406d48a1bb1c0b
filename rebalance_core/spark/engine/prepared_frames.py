"""Work units prepared once for every table that needs no offsets.

What every pass for a table reads is the outcome, pickled; `pull_starts`, which needs the offsets,
prepares its own chunks.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame

from rebalance_core.contracts import LEDGER_TABLES
from rebalance_core.engine.prepared import Prepared, prepare
from rebalance_core.engine.units import chunks
from rebalance_core.kernels.codes.coded_groups import EngineOptions

WITH_OFFSETS = "pull_starts"
WITHOUT_OFFSETS = tuple(name for name in LEDGER_TABLES if name != WITH_OFFSETS)

_CHUNK = pa.schema([("size", pa.int64()), ("chunk", pa.binary())])
_DDL = "size BIGINT, chunk BINARY"
_CODEC = "lz4"


def prepared_rows(rows: DataFrame, options: EngineOptions) -> DataFrame:
    """The rows, whose units stand together in each task, as a frame of `Prepared` chunks."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for chunk in chunks(batches):
            plain = pickle.dumps(prepare(chunk, options, WITHOUT_OFFSETS), pickle.HIGHEST_PROTOCOL)
            kept = pa.compress(plain, _CODEC, asbytes=True)
            yield pa.RecordBatch.from_arrays(
                [pa.array([len(plain)]), pa.array([kept])], schema=_CHUNK
            )

    return rows.mapInArrow(run, _DDL)


def prepared_chunks(batches: Iterable[pa.RecordBatch]) -> Iterator[Prepared]:
    """The chunks of `prepared_rows`."""
    for batch in batches:
        for size, chunk in zip(batch.column(0).to_pylist(), batch.column(1), strict=True):
            yield pickle.loads(pa.decompress(chunk.as_buffer(), size, _CODEC))

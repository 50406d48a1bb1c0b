"""Packs evidence, with the number of its bucket, for the task that assembles it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter

import numpy as np
import pyarrow as pa

from rebalance_core.checks.packed_rows import bucket_of, by_bucket, by_key, pack, unpack
from rebalance_core.contracts.fact_declaration import CLUSTER
from rebalance_core.contracts.opening_state import EVIDENCE
from rebalance_core.ingest.evidence import Evidence
from rebalance_core.ingest.evidence_table import (
    COUNTED,
    REFUSED,
    Pieces,
    evidence_batches,
    pieces_of,
)
from rebalance_core.process.runtime import Part

CHUNKS_DDL = "bucket INT, chunk BINARY"
DRIVER = -1
"""The bucket of the driver, for evidence about the cluster and for counts."""

_ROWS_OF_ITS_OWN = 512
"""A group or topic with this many pieces in a batch gets a chunk of its own."""

_SCHEMA = pa.schema([("bucket", pa.int32()), ("chunk", pa.binary())])


def evidence_chunks(pieces: Pieces, buckets: int) -> Iterator[pa.RecordBatch]:
    """Yield the pieces as `CHUNKS_DDL`, with those of a group or topic in the same bucket.

    Args:
        pieces: A task's result.
        buckets: The number of buckets.
    """
    for batch in evidence_batches(pieces):
        parts, keys, sources = (batch[name].to_pylist() for name in ("part", "key", "source"))
        often = {key for key, times in Counter(keys).items() if times >= _ROWS_OF_ITS_OWN}
        numbers: dict[tuple[int, str], int] = {}
        number = []
        for part, key, source in zip(parts, keys, sources, strict=True):
            chunk = _bucket(part, key, source, buckets), f"{part} {key}" if key in often else ""
            number.append(numbers.setdefault(chunk, len(numbers)))
        rows = by_bucket(pa.Table.from_batches([batch]), np.array(number))
        columns = [bucket for bucket, _ in numbers], [pack(part) for _, part in rows]
        arrays = [pa.array(c, f.type) for c, f in zip(columns, _SCHEMA, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)


def _bucket(part: str, key: str, source: str, buckets: int) -> int:
    if part in (CLUSTER, COUNTED):
        return DRIVER
    return bucket_of((part, source if part == REFUSED else key), buckets)


def chunk_parts(batches: Iterable[pa.RecordBatch]) -> Iterator[Part]:
    """Yield the evidence of each chunk unchanged."""
    for batch in batches:
        for row in batch.to_pylist():
            yield row["bucket"], {EVIDENCE.name: unpack(row["chunk"])}


def evidence_of_buckets(
    batches: Iterable[pa.RecordBatch],
) -> Iterator[tuple[int, Iterator[tuple[str, str, Iterator[Evidence]]]]]:
    """Yield each bucket in a task, with the part, key and evidence of each group and topic in it.

    A bucket is unpacked when its first key is requested.
    """
    chunks = sorted(
        (row for batch in batches for row in batch.to_pylist()), key=itemgetter("bucket")
    )
    for bucket, of_bucket in groupby(chunks, key=itemgetter("bucket")):
        yield bucket, _by_key(row["chunk"] for row in of_bucket)


def _by_key(chunks: Iterable[bytes]) -> Iterator[tuple[str, str, Iterator[Evidence]]]:
    """Yield each group's chunks, unpacking them one group at a time, because a group may have a
    million pieces.
    """
    keys: dict[tuple[str, ...], list[bytes | pa.Table]] = {}
    for chunk in chunks:
        split = [*by_key(unpack(chunk), ("part", "key"))]
        for name, rows in split:
            keys.setdefault(name, []).append(chunk if len(split) == 1 else rows)
    for part, key in sorted(keys):
        yield part, key, pieces_of(_batches(keys.pop((part, key))))


def _batches(parts: list[bytes | pa.Table]) -> Iterator[pa.RecordBatch]:
    for part in parts:
        yield from (unpack(part) if isinstance(part, bytes) else part).to_batches()

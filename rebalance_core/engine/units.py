"""Work units: a group, or a range of a giant group's queues; their rows stand together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

GROUP = ("cluster", "consumer_group")
PART, PARTS = "_part", "_parts"
"""Which of how many ranges of its group's queues a row is for."""

ROWS_PER_CHUNK = 20_000
"""Input rows that are handled at once, so that their arrays fit the cache; groups stay whole."""


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

"""Groups as consecutive rows of a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

GROUP = ("cluster", "consumer_group")
ROWS_PER_CHUNK = 20_000
"""Input rows that are handled at once, so that their arrays fit the cache; groups stay whole."""


def chunks(
    batches: Iterable[pa.RecordBatch], rows_per_chunk: int = ROWS_PER_CHUNK
) -> Iterator[pa.Table]:
    """Consecutive rows as tables of whole groups, each as small as ``rows_per_chunk`` allows."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= rows_per_chunk:
            table = pa.Table.from_batches(waiting)
            whole = int(group_starts(table)[-1])
            if whole:
                yield table.slice(0, whole)
            waiting = table.slice(whole).combine_chunks().to_batches()
            rows = table.num_rows - whole
    if waiting:
        yield pa.Table.from_batches(waiting)


def group_starts(table: pa.Table) -> np.ndarray:
    """Where each group begins; the rows of a group stand together."""
    new = np.ones(table.num_rows, np.bool_)
    new[1:] = False
    for name in GROUP:
        values = table[name].combine_chunks().dictionary_encode().indices.to_numpy()
        new[1:] |= values[1:] != values[:-1]
    return np.flatnonzero(new)

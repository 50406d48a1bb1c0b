"""Rows in buckets by their keys, so that rows with the same key meet wherever they were read."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from rebalance_core.checks.digest import column_hashes
from rebalance_core.checks.duplicate_keys import has_key
from rebalance_core.contracts import Table


def key_buckets(table: Table, rows: pa.Table, buckets: int) -> np.ndarray:
    """Return the bucket of each conformed row, from 0 on; rows without a key rotate over all."""
    turn = np.arange(len(rows)) % buckets
    if not table.key or not len(rows):
        return turn
    key = [column for column in table.columns if column.name in table.key]
    hashes = [column_hashes(key, batch) for batch in rows.to_batches()]
    by_key = np.concatenate(hashes) % np.uint64(buckets)
    return np.where(has_key(table, rows), by_key.astype(np.int64), turn)

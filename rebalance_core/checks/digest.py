"""Count and fingerprint of a table's rows while they are written."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from rebalance_core.checks.hashing.row_hash import row_hashes
from rebalance_core.contracts import Table

DIGEST_HEX_DIGITS = 32
_LOW = np.uint64(0xFFFFFFFF)


@dataclass(frozen=True, slots=True)
class TableWritten:
    """Rows written, and a digest that depends on the rows alone, not on their order or files."""

    rows: int
    digest: str


def table_written(rows: int, total: int) -> TableWritten:
    """The record of so many rows whose 64-bit hashes, with sign, add up to ``total``."""
    text = f"{rows}:{total}".encode()
    return TableWritten(rows, hashlib.sha256(text).hexdigest()[:DIGEST_HEX_DIGITS])


@dataclass(slots=True)
class TableDigest:
    """Takes batches of a table's rows in any order; digests of parts can be added.

    Attributes:
        table: the contract; batches have its columns, maybe among others.
        rows: how many were added.
        total: sum of their hashes.
    """

    table: Table
    rows: int = field(default=0)
    total: int = field(default=0)

    def add(self, rows: pa.RecordBatch | pa.Table) -> None:
        """Add rows; values of other types are cast to the contract's."""
        batches = [rows] if isinstance(rows, pa.RecordBatch) else rows.to_batches()
        for batch in batches:
            hashes = row_hashes(self.table, batch)
            self.rows += len(batch)
            # the sum of 64-bit numbers does not fit into 64 bits, that of their halves does
            high = int((hashes >> 32).sum())
            low = int((hashes.view(np.uint64) & _LOW).sum())
            self.total += (high << 32) + low

    def merge(self, other: TableDigest) -> None:
        """Add the rows that another digest of the same table took."""
        self.rows += other.rows
        self.total += other.total

    @property
    def result(self) -> TableWritten:
        """Rows and digest of what was added."""
        return table_written(self.rows, self.total)

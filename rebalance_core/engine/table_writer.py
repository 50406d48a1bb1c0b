"""A table into one Parquet file of a fresh folder, counted and fingerprinted while written."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Self

import pyarrow as pa
import pyarrow.parquet as pq

from rebalance_core.checks.digest import TableDigest, TableWritten
from rebalance_core.contracts import ALL_TABLES
from rebalance_core.model.errors import OutputExists

ROWS_PER_ROW_GROUP = 1 << 17
FILE_NAME = "part-00000.zstd.parquet"
_CODEC = "zstd"


class TableWriter:
    """Writes the rows of one table of the contract, all columns in order; a context manager.

    Args:
        folder: What the table's own folder is made in.
        table: Its name.

    Raises:
        OutputExists: The table's folder is there already.
    """

    def __init__(self, folder: Path, table: str) -> None:
        target = folder / table
        try:
            target.mkdir(parents=True)
        except FileExistsError as error:
            raise OutputExists(f"{target} exists already; write into a fresh folder") from error
        self._schema = ALL_TABLES[table].arrow_schema()
        self._digest = TableDigest(ALL_TABLES[table])
        self._waiting: list[pa.RecordBatch] = []
        self._rows = 0
        self._writer = pq.ParquetWriter(target / FILE_NAME, self._schema, compression=_CODEC)

    def write(self, rows: pa.RecordBatch) -> None:
        """Add some rows."""
        if not rows.num_rows:
            return
        self._waiting.append(rows)
        self._rows += rows.num_rows
        if self._rows >= ROWS_PER_ROW_GROUP:
            self._flush()

    def close(self) -> None:
        """Write what is left; the file is complete then."""
        self._flush()
        self._writer.close()

    @property
    def digest(self) -> TableDigest:
        """Of the rows that are in the file."""
        return self._digest

    def _flush(self) -> None:
        if self._waiting:
            table = pa.Table.from_batches(self._waiting, self._schema).combine_chunks()
            self._digest.add(table)
            self._writer.write_table(table)
        self._waiting, self._rows = [], 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class TableWriters:
    """One writer a table; a context manager.

    Args:
        folder: As of `TableWriter`.
        tables: Names of the tables; each gets a file, even without a row.
    """

    def __init__(self, folder: Path, tables: tuple[str, ...]) -> None:
        self._writers = {name: TableWriter(folder, name) for name in tables}

    def write(self, table: str, rows: pa.RecordBatch) -> None:
        """Add some rows of a table."""
        self._writers[table].write(rows)

    def written(self) -> Mapping[str, TableWritten]:
        """Rows and digest of every table."""
        return {name: digest.result for name, digest in self.digests().items()}

    def digests(self) -> Mapping[str, TableDigest]:
        """The digests of every table, which those of other files can be merged with."""
        return {name: writer.digest for name, writer in self._writers.items()}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        with ExitStack() as closing:
            for writer in self._writers.values():
                closing.callback(writer.close)

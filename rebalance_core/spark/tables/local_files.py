"""Files under a path that driver and executors share: the tasks read them themselves.

The JVM would decode every column and hand the rows to Python one by one, which costs more than to
check them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyspark.sql import SparkSession

from rebalance_core.checks.conform import conform, refuse_missing_columns
from rebalance_core.checks.reading.json_rows import ReadRows
from rebalance_core.checks.reading.locations import unknown_names
from rebalance_core.checks.reading.parquet_rows import ParquetTable, Piece, pieces_of
from rebalance_core.contracts import Table
from rebalance_core.contracts.table import TECHNICAL
from rebalance_core.spark.tables.sources import Batches, Source
from rebalance_core.spark.task_count import cores_of

_BYTES_PER_TASK = 128 << 20
"""As Spark's own spark.sql.files.maxPartitionBytes."""


def parquet_source(spark: SparkSession, table: Table, path: str, files: Sequence[str]) -> Source:
    """The rows of Parquet files.

    Args:
        spark: A session with a context.
        table: The contract.
        path: What the table is called.
        files: Local paths, one at least.

    Raises:
        InputRefused: The first file is no Parquet, or columns are missing. What is wrong with
            others is raised by the tasks.
    """
    stored = ParquetTable.of(path, files)
    refuse_missing_columns(table, stored.schema.names)
    shares = _shares(pieces_of(path, files), cores_of(spark))

    def read(batches: Batches) -> Iterator[ReadRows]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for piece in shares[number]:
                    for rows in stored.rows(piece):
                        yield ReadRows(conform(table, rows), frozenset())

    numbers = spark.range(0, len(shares), 1, len(shares))
    return Source(table, numbers, read, unknown_names(table, stored.names, TECHNICAL))


def _shares(pieces: Sequence[Piece], cores: int) -> list[list[Piece]]:
    """The pieces of each task: as many tasks as cores, more if they had too much to read."""
    size = sum(piece.size for piece in pieces)
    tasks = min(len(pieces), max(cores, -(-size // _BYTES_PER_TASK)))
    falling = sorted(pieces, key=lambda piece: -piece.size)
    return [falling[number::tasks] for number in range(tasks)] or [[]]

"""A collection as a Python data source, ``spark.read.format("rocketmq_log")``; from Spark 4.0."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader

from rebalance_core.contracts import COLLECTED_TABLES
from rebalance_core.contracts.table import batch_of_rows
from rebalance_core.ingest.in_process import ingest_collection
from rebalance_core.kernels.table_columns import EVENTS
from rebalance_core.model.errors import UsageError, did_you_mean
from rebalance_core.storage.place import Place, place_of

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS = 10_000  # of a batch: some MB


class RocketmqLogSource(DataSource):
    """The tables that `rebalance ingest` makes from a collection, read by one task.

    Options: ``path``, the folder with ``collection.toml``, which every worker can reach (a store
    with the credentials of this process); ``table``, the table's name (default:
    ``cluster_events``). One task reads all files, as `rebalance_core.ingest.in_process` does; for a
    collection of several GB use `read_logs`, which distributes them.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "rocketmq_log"

    def schema(self) -> str:
        """Return the columns of the table.

        Raises:
            UsageError: ``table`` is unknown.
        """
        return COLLECTED_TABLES[_table_of(self.options)].plain_ddl

    def reader(self, schema: Any) -> DataSourceReader:
        """Return the reader.

        Raises:
            UsageError: ``path`` is missing, or only Spark can reach it.
        """
        location = self.options.get("path")
        if not location:
            raise UsageError("rocketmq_log: name a collection: load(FOLDER)")
        return _Reader(place_of(location), _table_of(self.options))


def _table_of(options: Mapping[str, str]) -> str:
    table = options.get("table", EVENTS)
    if table not in COLLECTED_TABLES:
        names = sorted(COLLECTED_TABLES)
        raise UsageError(
            f"rocketmq_log: no table {table}{did_you_mean(table, names)}; valid: {', '.join(names)}"
        )
    return table


class _Reader(DataSourceReader):
    """Reads one table; pickled to the task."""

    def __init__(self, folder: Place, table: str) -> None:
        self._folder, self._table = folder, table

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        table = COLLECTED_TABLES[self._table]
        tables: Mapping[str, Any] = ingest_collection(self._folder).tables
        rows = tables.get(self._table, [])
        for begin in range(0, len(rows), _ROWS):
            yield batch_of_rows(table, rows[begin : begin + _ROWS])

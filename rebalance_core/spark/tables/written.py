"""Tables that a job of ours wrote, as frames; from an object store through pyarrow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from rebalance_core.contracts import ALL_TABLES
from rebalance_core.contracts.table import SOURCE
from rebalance_core.engine.fan_out import GROUP
from rebalance_core.process.written_tables import GroupName, ReadWritten
from rebalance_core.process.written_tables import reader_of as reader_here
from rebalance_core.storage.place import Place, is_here, object_store
from rebalance_core.storage.table_files import batches_of_file


def read_written(session: SparkSession, folder: str, table: str) -> DataFrame:
    """The table in the folder, with the contract's columns; lazy.

    Args:
        session: Any session.
        folder: Path or URI.
        table: Its name.
    """
    place = object_store(folder)
    if place is None:
        location = f"{folder.rstrip('/')}/{table}"
        return session.read.schema(ALL_TABLES[table].ddl).parquet(location)
    return _stored(session, place / table, table, numbered=False)


def reader_of(session: SparkSession, folder: str) -> ReadWritten:
    """Reads the tables of a folder on the driver: by itself, where it reaches them as tasks do."""
    if is_here(folder):
        return reader_here(folder)

    def read(table: str, group: GroupName | None) -> pa.Table:
        rows = read_written(session, folder, table)
        for name, value in zip(GROUP, group or (), strict=False):
            rows = rows.where(sf.col(name) == value)
        return rows.toArrow().cast(ALL_TABLES[table].arrow_schema())

    return read


def read_numbered(session: SparkSession, folder: Place, table: str) -> DataFrame:
    """The table in a folder of an object store, each row with where it stands in `SOURCE`."""
    return _stored(session, folder / table, table, numbered=True)


def _stored(session: SparkSession, place: Place, name: str, *, numbered: bool) -> DataFrame:
    schema = ALL_TABLES[name].arrow_schema()

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for file in batch["file"].to_pylist():
                rows = batches_of_file(place / file, schema)
                yield from _numbered(file, rows) if numbered else rows

    files = session.createDataFrame([(file.name,) for file in place.files()], "file STRING")
    ddl = ALL_TABLES[name].plain_ddl
    return files.mapInArrow(read, f"{ddl}, {SOURCE} STRING" if numbered else ddl)


def _numbered(file: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    before = 0
    for batch in batches:
        numbers = pa.array(np.arange(before + 1, before + len(batch) + 1)).cast(pa.string())
        yield batch.append_column(SOURCE, pc.binary_join_element_wise(file, numbers, ":"))
        before += len(batch)

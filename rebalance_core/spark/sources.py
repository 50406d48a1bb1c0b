"""Brings rows of frames to the driver, and decides the number of tasks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from typing import Any, Protocol
from urllib.parse import unquote

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from rebalance_core.checks.conform import conform, refuse_missing_columns, refuse_repeated_columns
from rebalance_core.checks.packed_rows import pack, unpack
from rebalance_core.checks.table_files import unknown_names
from rebalance_core.checks.text_rows import ReadRows, names_of_line
from rebalance_core.contracts import ALL_TABLES, Table
from rebalance_core.contracts.paths import is_local, local_path
from rebalance_core.contracts.table import (
    ISSUES_TYPE,
    RAW,
    READ_ISSUES,
    SOURCE,
    TECHNICAL,
    rows_of_arrow,
)
from rebalance_core.contracts.time_ranges import TIME_RANGES
from rebalance_core.engine.fan_out import GROUP
from rebalance_core.engine.table_writer import GroupName, ReadWritten, batches_of_file
from rebalance_core.engine.table_writer import reader_of as reader_here
from rebalance_core.model.errors import InputRefused
from rebalance_core.spark.hadoop_folder import HadoopPlace
from rebalance_core.spark.spark_versions import arrow_of, context_of
from rebalance_core.storage import run_folder as run_folders
from rebalance_core.storage.place import Place, is_direct, object_store, place_of


# Rows of frames on the driver.
#
# `DataFrame.collect` ends early without an error if the JVM runs out of memory while passing rows;
# ``toArrow`` waits for it and raises.
def rows_of(frame: DataFrame) -> list[dict[str, Any]]:
    """Return a small number of rows as dicts, including structs, in the frame's order.

    Raises:
        PySparkException: Not all rows arrived.
    """
    return rows_of_arrow(arrow_of(frame))


def frame_of(session: SparkSession, rows: pa.Table, ddl: str) -> DataFrame:
    """Return rows from the driver as a frame, which sends them to one task as a single cell.

    Args:
        session: Any session.
        rows: Few rows, since all travel in one message to Spark.
        ddl: Their columns.
    """
    cell = session.createDataFrame([(bytearray(pack(rows)),)], "chunk BINARY")
    return cell.mapInArrow(unpacked, ddl)


def unpacked(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows packed in the only column."""
    for batch in batches:
        for chunk in batch.column(0):
            yield from unpack(chunk.as_buffer()).to_batches()


ROWS_PER_TASK = 100_000
_MOST_CORES = 1 << 16
"""The length of the range that `cores_of` lets Spark divide."""


def cores_of(session: SparkSession) -> int:
    """Return the default parallelism of any session; under Spark Connect, this runs a small job."""
    context = context_of(session)
    if context is not None:
        return int(context.defaultParallelism)
    # Connect has no context, but it divides a range among the cores.
    parts = session.range(_MOST_CORES).select(sf.spark_partition_id().alias("part"))
    (last,) = rows_of(parts.agg(sf.max("part").alias("part")))
    return int(last["part"]) + 1


def task_count(
    amount: int, session: SparkSession, per_task: int | None = None, per_core: int = 1
) -> int:
    """Return the number of tasks for the work: at least one per core, but few, because each takes
    25 ms to start.

    Args:
        amount: Number of rows or other items.
        session: Any session.
        per_task: Items per task; None for the default of rows.
        per_core: Minimum number of tasks per core.
    """
    return max(per_core * cores_of(session), -(-amount // (per_task or ROWS_PER_TASK)))


def task_count_of(sources: Iterable[Source], session: SparkSession) -> int:
    """Return the number of tasks for sources of unknown size; with a frame, as many as Spark's own
    shuffles use.
    """
    about = [source.about_rows for source in sources]
    tasks = task_count(sum(rows or 0 for rows in about), session)
    return max(tasks, tasks_of_shuffles(session)) if None in about else tasks


def tasks_of_shuffles(session: SparkSession) -> int:
    """Return the number of tasks of Spark's own shuffles, or one per core if it is unknown."""
    of_shuffles = str(session.conf.get("spark.sql.shuffle.partitions"))
    # some platforms set auto
    return int(of_shuffles) if of_shuffles.isdecimal() else cores_of(session)


# A table before it is conformed: a frame, and a task's function of its batches.
#
# A task that processes the rows further takes both, so that wide rows do not pass through the JVM.
Batches = Iterable[pa.RecordBatch]
Read = Callable[[Batches], Iterator[ReadRows]]
"""Turns the batches of a task into conformed rows, and reports unknown columns."""


@dataclass(frozen=True, eq=False)
class Source:
    """A table to read.

    Attributes:
        table: The contract.
        frame: The raw input: lines of text, columns of any type, or numbers of shares of files.
        read: Turns a task's part into rows.
        extras: Unknown columns in a header or schema, sorted; None if only `read` finds them.
        about_rows: The approximate number of rows, judging by file sizes; None if unknown.
    """

    table: Table
    frame: DataFrame
    read: Read
    extras: list[str] | None
    about_rows: int | None = None

    @cached_property
    def conformed(self) -> DataFrame:
        """The lazy rows, with the contract's columns and `TECHNICAL`."""
        read = self.read

        def run(batches: Batches) -> Iterator[pa.RecordBatch]:
            for part in read(batches):
                yield from part.rows.combine_chunks().to_batches()

        return self.frame.mapInArrow(run, conformed_ddl(self.table))


class Inputs(Protocol):
    """Tables that go through the row checks together."""

    @property
    def state_end_ms(self) -> int | None:
        """The end of the opening state whose rows are among them, if any."""

    def sources(self) -> Mapping[str, Source]:
        """Return the existing sources, by table name."""


@dataclass(frozen=True)
class GivenTables:
    """Tables by name."""

    tables: Mapping[str, Source]
    state_end_ms: int | None = None

    def sources(self) -> Mapping[str, Source]:
        """Return the sources, as `Inputs`."""
        return self.tables


def source_of(table: Table, frame: DataFrame) -> Source:
    """Return a frame as a source; see `checks.conform.conform` for what is accepted.

    Raises:
        InputRefused: Columns exist twice or non-null columns are missing; the message names all of
            them. A time is a TIMESTAMP_NTZ.
    """
    refuse_repeated_columns(table.name, frame.columns)
    refuse_missing_columns(table, frame.columns)
    refuse_no_time_zone(table, frame)
    with_raw = RAW in frame.columns

    def read(batches: Batches) -> Iterator[ReadRows]:
        for batch in batches:
            names = _names_in(batch.column(RAW)) if with_raw else ()
            rows = pa.Table.from_batches([batch])
            yield ReadRows(conform(table, rows), frozenset(unknown_names(table, names, ())))

    extras = None if with_raw else unknown_names(table, frame.columns, TECHNICAL)
    return Source(table, addressable(table, frame), read, extras)


_NEEDS_QUOTES = re.compile("[.`]")


def addressable(table: Table, frame: DataFrame) -> DataFrame:
    """Return the frame with other names for unknown columns that `mapInArrow` cannot address.

    It addresses all by name: one with a dot would be a field of another, and one that differs from
    another only in case is ambiguous.
    """
    known = {*table.column_names, *TECHNICAL}
    taken = {name.lower() for name in frame.columns if name in known}
    given = {name.lower() for name in frame.columns}
    names = []
    for number, name in enumerate(frame.columns):
        if name not in known and (name.lower() in taken or _NEEDS_QUOTES.search(name)):
            name = next(name for n in count(number) if (name := f"_column_{n}") not in given)
            given.add(name)
        names.append(name)
        taken.add(name.lower())
    return frame if names == frame.columns else frame.toDF(*names)


def refuse_no_time_zone(table: Table, frame: DataFrame) -> None:
    """Raise `InputRefused` for a time in a frame whose type has no time zone."""
    times = {column.name for column in table.columns if column.type == "BIGINT"} & {*TIME_RANGES}
    for field in frame.schema:
        if field.name in times and field.dataType.typeName() == "timestamp_ntz":
            raise InputRefused(
                f"{table.name}.{field.name} is a TIMESTAMP_NTZ, which has no time zone; pass epoch "
                "milliseconds, or cast it to TIMESTAMP while spark.sql.session.timeZone is its "
                "zone (in a catalog, name a view that casts it)"
            )


def _names_in(lines: pa.Array) -> set[str]:
    return set().union(*map(names_of_line, lines.drop_null().to_pylist()))


def conformed_ddl(table: Table) -> str:
    """Return the columns of a conformed frame."""
    return f"{table.plain_ddl}, {SOURCE} STRING, {RAW} STRING, {READ_ISSUES} {ISSUES_TYPE}"


def run_folder(session: SparkSession, folder: str) -> Place | HadoopPlace:
    """Return the folder of a run, for its record and the footers of its tables.

    Spark's own readers skip names that begin with _, so remote records are read through Hadoop.

    Raises:
        UsageError: Only Hadoop can reach it, and Spark Connect has no Hadoop.
    """
    if is_local(folder):
        # a file: URI comes from Spark, which encodes it, or from this program, which does not
        paths = (local_path(folder), local_path(unquote(folder)))
        path = next((path for path in paths if path.is_dir()), paths[0])
        return replace(place_of(path), url=folder.rstrip("/") or "/")
    return object_store(folder) or HadoopPlace(folder, session)


def refuse_changed(session: SparkSession, folder: str, tables: Iterable[str]) -> None:
    """Apply `storage.run_folder.refuse_changed` if the driver reaches the folder.

    Under Spark Connect, only the server may be able to reach a folder; an object store may have
    different keys for Spark and for this process.
    """
    local, with_hadoop = is_local(folder), context_of(session) is not None
    if not local and not with_hadoop and object_store(folder) is None:
        return
    place = run_folder(session, folder)
    if not local and with_hadoop and isinstance(place, Place):
        try:
            place.names()
        except OSError:
            place = HadoopPlace(folder, session)
    run_folders.refuse_changed(place, tables)


def read_written(session: SparkSession, folder: str, table: str) -> DataFrame:
    """Return, lazily, the table in the folder with the contract's columns.

    Args:
        session: Any session.
        folder: Path or URI.
        table: Its name.
    """
    place = object_store(folder)
    if place is None:
        location = f"{folder.rstrip('/')}/{table}"
        return session.read.schema(ALL_TABLES[table].ddl).parquet(location)
    return _stored(session, place / table, table)


def reader_of(session: SparkSession, folder: str) -> ReadWritten:
    """Return a reader, for the driver, of the tables in a folder, without Spark where the driver
    can reach them itself.
    """
    if is_direct(folder):
        return reader_here(folder)

    def read(
        table: str, group: GroupName | None = None, columns: Sequence[str] | None = None
    ) -> pa.Table:
        rows, schema = read_written(session, folder, table), ALL_TABLES[table].arrow_schema()
        for name, value in zip(GROUP, group or (), strict=False):
            rows = rows.where(sf.col(name) == value)
        if columns is not None:
            rows = rows.select(*columns)
            schema = pa.schema([schema.field(name) for name in columns])
        return arrow_of(rows).cast(schema)

    return read


def _stored(session: SparkSession, place: Place, name: str) -> DataFrame:
    schema = ALL_TABLES[name].arrow_schema()

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for file in batch["file"].to_pylist():
                yield from batches_of_file(place / file, schema)

    files = session.createDataFrame([(file.name,) for file in place.files()], "file STRING")
    return files.mapInArrow(read, ALL_TABLES[name].plain_ddl)

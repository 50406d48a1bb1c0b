"""Reads input tables from JSON lines, CSV or Parquet, with the source of every row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import PurePath
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from rebalance_core.checks import text_lines, text_rows
from rebalance_core.checks.conform import conform, refuse_missing_columns
from rebalance_core.checks.parquet_rows import (
    ParquetRows,
    ParquetTable,
    has_types_of_spark,
    pieces_of,
)
from rebalance_core.checks.table_files import (
    entries_of,
    format_of_table,
    local_files,
    not_found,
    unknown_names,
)
from rebalance_core.checks.text_rows import Lines, ReadRows
from rebalance_core.contracts import (
    ALL_TABLES,
    COVERAGE_TABLES,
    FINDING_TABLES,
    INPUT_TABLES,
    OBSERVED_TABLES,
    Table,
)
from rebalance_core.contracts.packed_files import CODECS, unreadable_file
from rebalance_core.contracts.paths import SHARE_IT, is_local, local_path
from rebalance_core.contracts.table import RAW, SOURCE, TECHNICAL
from rebalance_core.model.errors import InputRefused
from rebalance_core.spark.catalogs import database_tables
from rebalance_core.spark.failures import OF_SPARK
from rebalance_core.spark.hadoop_folder import remote_files
from rebalance_core.spark.sources import (
    Batches,
    Read,
    Source,
    addressable,
    cores_of,
    refuse_changed,
    rows_of,
    source_of,
)
from rebalance_core.spark.spark_versions import context_of, is_condition
from rebalance_core.storage.place import Location, Place

# Tasks themselves read files that both the driver and the executors can reach.
#
# The JVM would decode every column and pass rows to Python one by one, which would cost more than
# the checks.
_BYTES_PER_TASK = 128 << 20
"""The default of spark.sql.files.maxPartitionBytes."""


def parquet_source(
    spark: SparkSession, table: Table, path: str, files: Sequence[Location]
) -> Source:
    """Return the rows of Parquet files.

    Args:
        spark: Any session.
        table: The contract.
        path: The name of the table.
        files: At least one file, which the driver and the tasks reach at the same location.

    Raises:
        InputRefused: The first file is not Parquet, or columns are missing. Tasks raise errors in
            other files.
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


def stored_tables(spark: SparkSession, folder: Place, names: Iterable[str]) -> dict[str, Source]:
    """Return, lazily, the tables that a job wrote into a folder of an object store."""
    return {
        name: parquet_source(spark, ALL_TABLES[name], str(place), place.files())
        for name, place in ((name, folder / name) for name in names)
    }


def _shares(pieces: Sequence[ParquetRows], cores: int) -> list[list[ParquetRows]]:
    """Return the pieces of each task, with at least as many tasks as cores."""
    size = sum(piece.size for piece in pieces)
    tasks = min(len(pieces), max(cores, -(-size // _BYTES_PER_TASK)))
    falling = sorted(pieces, key=lambda piece: -piece.size)
    return [falling[number::tasks] for number in range(tasks)] or [[]]


_FILE, _ROW = "_source_file", "_source_row"
"""The columns with the file and row number of a Parquet row."""


def parquet_frame(spark: SparkSession, table: Table, path: str) -> Source:
    """Return the rows of Parquet files that only Spark can reach."""
    rows = spark.read.parquet(path)
    names = [name for name in rows.columns if name not in TECHNICAL]
    columns = [sf.col("`" + name.replace("`", "``") + "`") for name in names]
    place = [sf.col("_metadata.file_name").alias(_FILE), sf.col("_metadata.row_index").alias(_ROW)]
    refuse_missing_columns(table, [*names, SOURCE])

    def read(batches: Batches) -> Iterator[ReadRows]:
        for batch in batches:
            content = pa.Table.from_batches([batch]).drop_columns([_FILE, _ROW])
            numbered = content.append_column(SOURCE, _places(batch[_FILE], batch[_ROW]))
            yield ReadRows(conform(table, numbered), frozenset())

    unknown = unknown_names(table, names, TECHNICAL)
    return Source(table, addressable(table, rows.select(*columns, *place)), read, unknown)


def _places(files: pa.Array, rows: pa.Array) -> pa.Array:
    """Return ``file:row`` from Spark's ``_metadata``, where names are as in a URI."""
    of_files = files.dictionary_encode()
    names = pa.array([unquote(name) for name in of_files.dictionary.to_pylist()], pa.string())
    number = pc.add(rows, 1).cast(pa.string())
    return pc.binary_join_element_wise(names.take(of_files.indices), number, ":")


def json_source(spark: SparkSession, table: Table, path: str) -> Source:
    """Return the rows of JSON lines."""
    return Source(table, _lines(spark, path), _reading(partial(text_rows.json_rows, table)), None)


def csv_source(spark: SparkSession, table: Table, path: str) -> Source:
    """Return the rows of CSV files, all of which must have the header of the first."""
    text = spark.read.option("recursiveFileLookup", True).text(path).limit(1)
    lines = rows_of(text.select(sf.col("value").cast("BINARY").alias("value")))
    header = lines[0]["value"].decode(errors="replace").lstrip("\ufeff") if lines else ""
    names = text_rows.header_names(path, header)
    if not lines:
        return _nothing(spark, table)
    refuse_missing_columns(table, names)
    unknown = unknown_names(table, names, TECHNICAL)
    parse = partial(text_rows.csv_rows, table, names)
    return Source(table, _lines(spark, path), _reading(parse, header), unknown)


def _lines(spark: SparkSession, path: str) -> DataFrame:
    """Return the lines of text files as bytes.

    ``split`` is ``file@byte``, because a large file is read in splits and the task of a later split
    does not know the line numbers.
    """
    text = spark.read.option("recursiveFileLookup", True).text(path)
    return text.select(
        sf.col("value").cast("BINARY").alias("value"),
        sf.concat_ws("@", "_metadata.file_path", "_metadata.file_block_start").alias("split"),
    )


def _reading(parse: Callable[[Lines], ReadRows], header: str | None = None) -> Read:
    """Return a reader that applies ``parse`` to `_lines`.

    ``_source`` is ``file:line``, or ``file@byte`` for a later split. With a ``header``, the first
    line of every file must be that line and is left out.
    """

    def read(batches: Batches) -> Iterator[ReadRows]:
        for numbered in text_lines.number_lines(map(_texts, batches), header):
            batch = numbered.filter(text_lines.not_blank(numbered[RAW]))
            if batch.num_rows:
                yield parse(Lines(batch[RAW], batch[SOURCE], batch[text_lines.UTF8]))

    return read


def _texts(batch: pa.RecordBatch) -> pa.RecordBatch:
    raw, utf8 = text_lines.as_text(batch["value"])
    return pa.RecordBatch.from_arrays([batch["split"], raw, utf8], ["split", RAW, text_lines.UTF8])


@dataclass(frozen=True, eq=False)
class InputTables:
    """The input tables of a simulation, read or built by hand (see `conform` for what is accepted).

    ``paths`` has the location of each table that was read, and ``read_from`` how it was read;
    ``state_end_ms`` is the end of the opening state whose rows the tables include.
    """

    cluster_events: DataFrame
    consumer_groups: DataFrame | None = None
    queue_offsets: DataFrame | None = None
    committed_offsets: DataFrame | None = None
    paths: Mapping[str, str] = field(default_factory=dict)
    read_from: Mapping[str, Source] = field(default_factory=dict)
    state_end_ms: int | None = None

    @classmethod
    def read(
        cls,
        spark: SparkSession,
        path: str | None = None,
        *,
        cluster_events: str | None = None,
        consumer_groups: str | None = None,
        queue_offsets: str | None = None,
        committed_offsets: str | None = None,
        input_format: str | None = None,
    ) -> InputTables:
        """Read the tables in ``path`` by name; paths passed for single tables take precedence.

        A table is a file or a folder of part files: ``cluster_events.jsonl``, ``.json``, ``.csv``
        (each also ``.gz``) or ``.parquet``. JSON has one object per line. CSV has a header in every
        part, RFC 4180 quoting, one record per line, and arrays as JSON text. Blank lines are
        skipped. Each frame has the contract columns and `TECHNICAL`. Frames are lazy, except that
        CSV headers and Parquet schemas are read at once.

        Raises:
            InputRefused: a path does not exist, or a required table is missing or lacks columns.
            UsageError: the format is unknown.
        """
        paths = {
            "cluster_events": cluster_events,
            "consumer_groups": consumer_groups,
            "queue_offsets": queue_offsets,
            "committed_offsets": committed_offsets,
        }
        locations = located_inputs(spark, path, paths)
        read = {
            n: read_table(spark, INPUT_TABLES[n], p, input_format) for n, p in locations.items()
        }
        frames: dict[str, Any] = {name: source.conformed for name, source in read.items()}
        return cls(**frames, paths=locations, read_from=read)

    @classmethod
    def from_catalog(
        cls,
        spark: SparkSession,
        database: str,
        where: str | None = None,
        *,
        warn: Callable[[str], object] | None = None,
    ) -> InputTables:
        """Return, lazily, the input tables in a database of a catalog.

        Args:
            spark: Any session.
            database: ``catalog.database``, or ``database`` of the current catalog.
            where: A condition in SQL for the rows, e.g. ``cluster = 'a'``; a table that lacks one
                of its columns is read in full.
            warn: Receives a message for each table that is read in full.

        Raises:
            InputRefused: ``cluster_events`` is missing, or a table lacks columns.
            UsageError: The database does not exist, or the condition applies to no table.
        """
        read = {
            name: source_of(INPUT_TABLES[name], frame)
            for name, frame in database_tables(spark, database, INPUT_TABLES, where, warn).items()
        }
        for table in INPUT_TABLES.values():
            if table.required and table.name not in read:
                raise InputRefused(f"{database} has no table {table.name}")
        paths = {name: f"{database}.{name}" for name in read}
        frames: dict[str, Any] = {name: source.conformed for name, source in read.items()}
        return cls(**frames, paths=paths, read_from=read)

    @classmethod
    def read_stored(cls, spark: SparkSession, folder: Place) -> InputTables:
        """Return, lazily, the tables that a job wrote into a folder of an object store."""
        read = stored_tables(spark, folder, INPUT_TABLES)
        frames: dict[str, Any] = {name: source.conformed for name, source in read.items()}
        paths = {name: str(folder / name) for name in frames}
        return cls(**frames, paths=paths, read_from=read)

    def tables(self) -> dict[str, DataFrame]:
        """Return the existing frames, by table name."""
        frames = {name: getattr(self, name) for name in INPUT_TABLES}
        return {name: frame for name, frame in frames.items() if frame is not None}

    def sources(self) -> dict[str, Source]:
        """Return the existing tables as read, or from the frames passed."""
        sources = {}
        for name, frame in self.tables().items():
            read = self.read_from.get(name)
            if read is None or read.conformed is not frame:
                read = source_of(INPUT_TABLES[name], frame)
            sources[name] = read
        return sources


def _files(spark: SparkSession, path: str) -> list[str]:
    """Return every data file under the path that Spark sees (local, HDFS, store, Connect)."""
    if _is_here(spark, path):  # saves the JVM seconds
        return [f"file://{file}" for file in local_files(path)]
    try:
        # twice: Spark first looks up a single path as the folder of a stream, and logs a page of
        # stack trace if it is a pattern or does not exist
        reader = spark.read.format("binaryFile").option("recursiveFileLookup", True)
        listing = reader.load([path, path])
        return sorted({unquote(uri) for uri in listing.inputFiles()})
    except AnalysisException as error:
        if is_condition(error, "PATH_NOT_FOUND"):
            on_driver = is_local(path) and local_path(path).exists()
            where = f" where Spark runs; {SHARE_IT}" if on_driver else ""
            raise InputRefused(f"{path} does not exist{where}") from error
        raise


def _is_here(spark: SparkSession, path: str) -> bool:
    """Return True for a path that this process and Spark interpret in the same way."""
    of_driver = path.startswith("file:") and context_of(spark) is not None
    return of_driver and "%" not in path


def tables_in(spark: SparkSession, folder: str, names: Iterable[str]) -> dict[str, str]:
    """Return the path of every table directly in the folder.

    Raises:
        InputRefused: a table exists twice, or differs from the folder's record.
    """
    wanted = tuple(names)
    refuse_changed(spark, folder, wanted)
    # a single listing, because a Connect server prints a stack trace for every missing name
    patterns = wanted if _is_here(spark, folder) else (f"{{{','.join(wanted)}}}",)
    files: list[str] = []
    for pattern in patterns:
        with suppress(InputRefused):
            files += _files(spark, f"{folder.rstrip('/')}/{pattern}*")
    if not files:
        _files(spark, folder)  # refuses a folder that does not exist
    entries = {name: entries_of(files, folder, name) for name in wanted}
    return {name: entry for name, entry in entries.items() if entry is not None}


def located_inputs(
    spark: SparkSession, folder: str | None, given: Mapping[str, str | None]
) -> dict[str, str]:
    """Return the path of every input table, by name.

    Args:
        spark: Any session.
        folder: Contains tables by name; None for no folder.
        given: The wanted tables, with paths that take precedence.

    Raises:
        InputRefused: as for `tables_in`, or a required table is missing.
    """
    locations = tables_in(spark, str(folder), given) if folder is not None else {}
    locations |= {name: str(path) for name, path in given.items() if path is not None}
    for name in given:
        table = INPUT_TABLES[name]
        if table.required and name not in locations:
            files = () if folder is None else _files(spark, str(folder))
            raise InputRefused(not_found(table, folder, files))
    return locations


def read_table(
    spark: SparkSession,
    table: Table,
    path: str,
    input_format: str | None = None,
    *,
    by_spark: bool = False,
) -> Source:
    """Return the table at a location.

    Args:
        spark: Any session.
        table: The contract.
        path: A file, or a folder of part files.
        input_format: As in `InputTables.read`.
        by_spark: Let Spark read local Parquet if its reader supports the types, so that its UI and
            listeners see files, bytes and rows; otherwise Python tasks read it, which costs less.

    Raises:
        InputRefused: the table cannot be read, or differs from the record beside it.
    """
    whole = path if not is_local(path) or ":" in path else str(local_path(path).absolute())
    folder, _, last = whole.rstrip("/").rpartition("/")
    if last == table.name:
        refuse_changed(spark, folder or "/", [last])
    files = _files(spark, path)
    kind = format_of_table(path, files, input_format)
    if kind is None or not files:
        return _nothing(spark, table)
    about = _about_rows(spark, path, kind)
    local = [file.removeprefix("file://") for file in files]
    by_spark = by_spark or not _is_here(spark, path)
    if _is_local_parquet(spark, kind, files) and not (by_spark and has_types_of_spark(path, local)):
        return replace(parquet_source(spark, table, path, local), about_rows=about)
    try:
        read = {"json": json_source, "csv": csv_source, "parquet": parquet_frame}[kind]
        return replace(read(spark, table, path), about_rows=about)
    except OF_SPARK as error:
        damage = None if kind == "parquet" else unreadable_file(str(error))
        if damage is not None:
            raise InputRefused(damage) from error
        lines = str(error).strip().splitlines()
        causes = [line for line in lines if line.startswith("Caused by: ")]
        raise InputRefused(
            f"{path} cannot be read as {kind}: {[*lines[:1], *causes][-1]}"
        ) from error


def _is_local_parquet(spark: SparkSession, kind: str, files: Iterable[str]) -> bool:
    local = all(file.startswith("file:///") for file in files)
    return kind == "parquet" and local and context_of(spark) is not None


_BYTES_OF_ROW = {"json": 200, "csv": 100, "parquet": 10}
"""The approximate size of a row in generated fleets and recordings."""
_UNPACKED = 10
"""The approximate compression ratio of text."""


def _about_rows(spark: SparkSession, path: str, kind: str) -> int | None:
    if is_local(path):
        # a Connect server may have the folder elsewhere, and fails when it reads
        path_here = local_path(path)
        files = [path_here] if path_here.is_file() else path_here.rglob("*")
        listed = [(file.name, file.stat().st_size) for file in files if file.is_file()]
    else:
        listed = remote_files(path, spark) or []
    if not listed:
        return None
    packed = sum(size for file, size in listed if PurePath(file).suffix in CODECS)
    return (sum(size for _, size in listed) + packed * (_UNPACKED - 1)) // _BYTES_OF_ROW[kind]


def _nothing(spark: SparkSession, table: Table) -> Source:
    return source_of(table, spark.createDataFrame([], table.plain_ddl))


READ_TABLES = (*OBSERVED_TABLES, *FINDING_TABLES, *COVERAGE_TABLES)


def read_observed(spark: SparkSession, folder: str) -> dict[str, Source]:
    """Return, lazily, the observed tables in a folder, as `InputTables.read` does for input tables.

    Raises:
        InputRefused: a table lacks columns, appears twice or is not readable.
    """
    locations = tables_in(spark, folder, READ_TABLES)
    return {name: read_table(spark, ALL_TABLES[name], path) for name, path in locations.items()}


def observed(frames: Mapping[str, DataFrame]) -> dict[str, Source]:
    """Return the observed tables among frames by name.

    Raises:
        InputRefused: a table lacks columns.
    """
    names = [name for name in READ_TABLES if name in frames]
    return {name: source_of(ALL_TABLES[name], frames[name]) for name in names}

"""Input tables from JSON lines, CSV or Parquet, every row with the place it came from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from rebalance_core.checks.conform import refuse_missing_columns
from rebalance_core.checks.reading.csv_rows import header_names
from rebalance_core.checks.reading.locations import (
    entries_of,
    format_of_table,
    local_files,
    not_found,
)
from rebalance_core.contracts import INPUT_TABLES, Table
from rebalance_core.contracts.paths import unreadable_file
from rebalance_core.model.errors import InputRefused
from rebalance_core.spark.driver_rows import rows_of
from rebalance_core.spark.tables.local_files import parquet_source
from rebalance_core.spark.tables.parquet_frames import parquet_frame
from rebalance_core.spark.tables.sources import Source, source_of
from rebalance_core.spark.tables.text_frames import csv_source, json_source
from rebalance_core.spark.tables.written import read_numbered
from rebalance_core.storage.place import Place


@dataclass(frozen=True, eq=False)
class InputTables:
    """The tables of one simulation, as read or made by hand (see `conform` for what is accepted).

    ``paths`` says where a table was read from, ``read_from`` how.
    """

    cluster_events: DataFrame
    consumer_groups: DataFrame | None = None
    queue_offsets: DataFrame | None = None
    committed_offsets: DataFrame | None = None
    paths: Mapping[str, str] = field(default_factory=dict)
    read_from: Mapping[str, Source] = field(default_factory=dict)

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
        """Read the tables found by name in ``path``; the paths given by name go first.

        A table is a file or a folder of part files: ``cluster_events.jsonl``, ``.json``, ``.csv``
        (each also ``.gz``) or ``.parquet``. JSON has one object a line; CSV has a header in every
        part, RFC 4180 quoting, one record a line, arrays as JSON text. Blank lines are skipped.
        Each frame has the contract columns and `TECHNICAL`. Lazy, but for one look at a
        CSV's header and a Parquet's schema.

        Raises:
            InputRefused: a path does not exist, a required table is not there or lacks columns.
            UsageError: the format is unknown.
        """
        paths = {
            "cluster_events": cluster_events,
            "consumer_groups": consumer_groups,
            "queue_offsets": queue_offsets,
            "committed_offsets": committed_offsets,
        }
        locations = tables_in(spark, str(path), INPUT_TABLES) if path is not None else {}
        locations |= {name: str(given) for name, given in paths.items() if given is not None}
        for table in INPUT_TABLES.values():
            if table.required and table.name not in locations:
                files = () if path is None else _files(spark, str(path))
                raise InputRefused(not_found(table, path, files))
        read = {
            n: read_table(spark, INPUT_TABLES[n], p, input_format) for n, p in locations.items()
        }
        frames = {name: source.conformed for name, source in read.items()}
        return cls(**frames, paths=locations, read_from=read)

    @classmethod
    def read_stored(cls, spark: SparkSession, folder: Place) -> InputTables:
        """The tables that a job of ours wrote into a folder of an object store; lazy."""
        frames = {name: read_numbered(spark, folder, name) for name in INPUT_TABLES}
        return cls(
            frames["cluster_events"],
            frames["consumer_groups"],
            frames["queue_offsets"],
            frames["committed_offsets"],
            paths={name: str(folder / name) for name in frames},
        )

    def tables(self) -> dict[str, DataFrame]:
        """The frames that are there, by table name."""
        frames = {name: getattr(self, name) for name in INPUT_TABLES}
        return {name: frame for name, frame in frames.items() if frame is not None}

    def sources(self) -> dict[str, Source]:
        """The tables that are there as they were read, or from the frames given."""
        found = {}
        for name, frame in self.tables().items():
            read = self.read_from.get(name)
            if read is None or read.conformed is not frame:
                read = source_of(INPUT_TABLES[name], frame)
            found[name] = read
        return found

    def unknown_columns(self) -> dict[str, list[str]]:
        """Columns (sorted) that are read past, by table; a job for each that its rows tell of."""
        found = {name: source.unknown_columns() for name, source in self.sources().items()}
        return {name: names for name, names in found.items() if names}


def _files(spark: SparkSession, path: str) -> list[str]:
    """Every data file under the path, as Spark sees it (local, HDFS, object store, Connect)."""
    if _is_here(spark, path):  # seconds of the JVM's time cheaper
        return [f"file://{file}" for file in local_files(path)]
    try:
        listing = spark.read.format("binaryFile").option("recursiveFileLookup", True).load(path)
        return sorted(unquote(uri) for uri in listing.inputFiles())
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            raise InputRefused(f"{path} does not exist") from error
        raise


def _is_here(spark: SparkSession, path: str) -> bool:
    """True for a path that means the same to this process and to Spark."""
    of_driver = path.startswith("file:") and getattr(spark, "sparkContext", None) is not None
    return of_driver and "%" not in path


def tables_in(spark: SparkSession, folder: str, names: Iterable[str]) -> dict[str, str]:
    """The path of every table that lies right in the folder; `InputRefused` if one is twice."""
    locations: dict[str, str] = {}
    for name in names:
        try:
            files = _files(spark, f"{folder.rstrip('/')}/{name}*")
        except InputRefused:
            continue
        entry = entries_of(files, folder, name)
        if entry is not None:
            locations[name] = entry
    if not locations:
        _files(spark, folder)  # refuses a folder that does not exist
    return locations


def read_table(
    spark: SparkSession, table: Table, path: str, input_format: str | None = None
) -> Source:
    """The table that lies there."""
    files = _files(spark, path)
    kind = format_of_table(path, files, input_format)
    if kind is None or not files:
        return _nothing(spark, table)
    if kind == "parquet" and _is_here(spark, path):
        return parquet_source(spark, table, path, [f.removeprefix("file://") for f in files])
    try:
        return {"json": json_source, "csv": _csv, "parquet": parquet_frame}[kind](
            spark, table, path
        )
    except (PySparkException, Py4JJavaError) as error:
        damage = None if kind == "parquet" else unreadable_file(str(error))
        if damage is not None:
            raise InputRefused(damage) from error
        lines = str(error).strip().splitlines()
        causes = [line for line in lines if line.startswith("Caused by: ")]
        raise InputRefused(
            f"{path} cannot be read as {kind}: {[*lines[:1], *causes][-1]}"
        ) from error


def _nothing(spark: SparkSession, table: Table) -> Source:
    return source_of(table, spark.createDataFrame([], table.plain_ddl))


def _csv(spark: SparkSession, table: Table, path: str) -> Source:
    lines = rows_of(spark.read.option("recursiveFileLookup", True).text(path).limit(1))
    header = lines[0]["value"].lstrip("\ufeff") if lines else ""
    names = header_names(path, header)
    if not lines:
        return _nothing(spark, table)
    refuse_missing_columns(table, names)
    return csv_source(spark, table, path, header, names)

"""Input tables from JSON lines, CSV or Parquet, every row with the place it came from."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from rebalance_core.contracts import INPUT_TABLES, Table
from rebalance_core.model.errors import InputRefused, UsageError
from rebalance_core.spark.conform import (
    RAW,
    READ_ISSUES,
    SOURCE,
    TECHNICAL,
    conform,
    found_issues,
    issue,
)

FORMATS = {".jsonl": "json", ".json": "json", ".csv": "csv", ".parquet": "parquet"}


@dataclass(frozen=True, eq=False)
class InputTables:
    """The tables of one simulation, as read or made by hand (see `conform` for what is accepted).

    ``paths`` says where a table was read from, ``known_extras`` which unknown columns its header
    or schema has.
    """

    cluster_events: DataFrame
    consumer_groups: DataFrame | None = None
    queue_offsets: DataFrame | None = None
    committed_offsets: DataFrame | None = None
    paths: Mapping[str, str] = field(default_factory=dict)
    known_extras: Mapping[str, list[str]] = field(default_factory=dict)

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
        Each frame has the contract columns and `conform.TECHNICAL`. Lazy, but for one look at a
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
        found = _tables_in(spark, str(path)) if path is not None else {}
        found |= {name: str(given) for name, given in paths.items() if given is not None}
        for table in INPUT_TABLES.values():
            if table.required and table.name not in found:
                raise InputRefused(_not_found(spark, table, path))
        read = {n: _read_table(spark, INPUT_TABLES[n], p, input_format) for n, p in found.items()}
        frames = {name: conform(INPUT_TABLES[name], frame) for name, (frame, _) in read.items()}
        extras = {name: known for name, (_, known) in read.items() if known is not None}
        return cls(**frames, paths=found, known_extras=extras)

    def tables(self) -> dict[str, DataFrame]:
        """The frames that are there, by table name."""
        frames = {name: getattr(self, name) for name in INPUT_TABLES}
        return {name: frame for name, frame in frames.items() if frame is not None}

    def unknown_columns(self) -> dict[str, list[str]]:
        """Columns (sorted) that are read past, by table. One aggregate per table read from JSON."""
        unknown = {}
        for name, frame in self.tables().items():
            extra = self.known_extras.get(name)
            if extra is None:
                keys = _json_keys(frame) if RAW in frame.columns else frame.columns
                extra = _extras(INPUT_TABLES[name], keys)
            if extra:
                unknown[name] = extra
        return unknown


def _extras(table: Table, names: Iterable[str]) -> list[str]:
    return sorted(set(names) - set(table.column_names) - set(TECHNICAL))


def _json_keys(frame: DataFrame) -> list[str]:
    keys = F.explode(F.json_object_keys(RAW)).alias("key")
    return [row.key for row in frame.select(keys).distinct().collect()]


def _files(spark: SparkSession, path: str) -> list[str]:
    """Every data file under the path, as Spark sees it (local, HDFS, object store, Connect)."""
    try:
        listing = spark.read.format("binaryFile").option("recursiveFileLookup", True).load(path)
        return sorted(unquote(uri) for uri in listing.inputFiles())
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            raise InputRefused(f"{path} does not exist") from error
        raise


def _entries(spark: SparkSession, path: str) -> set[str]:
    """Names of the files and folders right in the folder ``path``."""
    files = _files(spark, path)
    plain = unquote(path.rstrip("/").split(":", 1)[-1]).replace("//", "/").lstrip("./")
    inside = [file.rsplit(f"{plain}/", 1)[-1] if plain else file for file in files]
    return {name.split("/", 1)[0] for name in inside}


def _tables_in(spark: SparkSession, path: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for entry in sorted(_entries(spark, path)):
        name = entry.split(".", 1)[0]
        if name not in INPUT_TABLES or (entry != name and _format_of(entry) is None):
            continue
        if name in found:
            raise InputRefused(
                f"{path} holds {name} twice: {found[name].rsplit('/', 1)[-1]} and {entry}; "
                "keep one, or name the one to read"
            )
        found[name] = f"{path.rstrip('/')}/{entry}"
    return found


def _not_found(spark: SparkSession, table: Table, path: str | None) -> str:
    names = ", ".join(f"{table.name}{suffix}" for suffix in FORMATS)
    if path is None:
        return f"no path for {table.name} was given"
    there = ", ".join(sorted(_entries(spark, str(path)))[:20]) or "nothing"
    return f"{table.name} is not in {path}: looked for {names} (or .gz), found {there}"


def _format_of(name: str) -> str | None:
    plain = name.rstrip("/").removesuffix(".gz")
    return next((kind for suffix, kind in FORMATS.items() if plain.endswith(suffix)), None)

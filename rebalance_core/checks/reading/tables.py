"""One table read from its files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.checks.conform import conform, refuse_missing_columns
from rebalance_core.checks.issue_arrays import conformed_schema
from rebalance_core.checks.reading.lines import UTF8, lines_of_file, not_blank, number_lines
from rebalance_core.checks.reading.locations import (
    format_of_table,
    hidden,
    local_files,
    unknown_names,
)
from rebalance_core.checks.reading.packed_files import open_unpacked
from rebalance_core.checks.reading.parquet_rows import ParquetTable
from rebalance_core.checks.reading.text_rows import Lines, csv_rows, header_names, json_rows
from rebalance_core.contracts import Table
from rebalance_core.contracts.table import RAW, SOURCE, TECHNICAL
from rebalance_core.storage.place import Location, Place


def read_table(
    table: Table, path: str, input_format: str | None = None
) -> tuple[pa.Table, list[str]]:
    """The table's rows as `conform` returns them, and its unknown columns, sorted.

    Args:
        table: the contract.
        path: a file, a folder of part files or a pattern.
        input_format: ``json``, ``csv`` or ``parquet``; None: as the names tell.

    Raises:
        InputRefused: nothing is there, columns are missing or a file cannot be read.
        UsageError: the format is unknown.
    """
    files = local_files(path)
    kind = format_of_table(path, files, input_format)
    if kind is None or not files:
        return conformed_schema(table).empty_table(), []
    if kind == "parquet":
        return _parquet(table, path, files)
    return (_json if kind == "json" else _csv)(table, path, files)


def stored_table(table: Table, folder: Place) -> tuple[pa.Table, list[str]]:
    """As `read_table`, of the folder that a job wrote the table into, wherever that is."""
    files = [file for file in folder.files() if not hidden(file.name)]
    if not files:
        return conformed_schema(table).empty_table(), []
    return _parquet(table, folder.url, files)


def _parquet(table: Table, path: str, files: Sequence[Location]) -> tuple[pa.Table, list[str]]:
    read = ParquetTable.of(path, files)
    return conform(table, read.whole(files)), unknown_names(table, read.names, TECHNICAL)


def _json(table: Table, path: str, files: Sequence[str]) -> tuple[pa.Table, list[str]]:
    unknown: set[str] = set()
    parts = [conformed_schema(table).empty_table()]
    for lines in _lines(files):
        read = json_rows(table, lines)
        parts.append(read.rows)
        unknown |= read.unknown
    return pa.concat_tables(parts), unknown_names(table, unknown, TECHNICAL)


def _csv(table: Table, path: str, files: Sequence[str]) -> tuple[pa.Table, list[str]]:
    header = _first_line(files)
    if header is None:
        return conformed_schema(table).empty_table(), []
    names = header_names(path, header)
    refuse_missing_columns(table, names)
    parts = [conformed_schema(table).empty_table()]
    for lines in _lines(files, header):
        parts.append(csv_rows(table, names, lines).rows)
    return pa.concat_tables(parts), unknown_names(table, names, TECHNICAL)


def _lines(files: Sequence[str], header: str | None = None) -> Iterator[Lines]:
    """The numbered lines of all files that are not blank."""
    for file in files:
        with open_unpacked(file) as opened:
            for batch in number_lines(lines_of_file(Path(file).name, opened), header):
                filled = not_blank(batch[RAW])
                if pc.any(filled).as_py():
                    some = batch if pc.all(filled).as_py() else batch.filter(filled)
                    yield Lines(some[RAW], some[SOURCE], some[UTF8])


def _first_line(files: Sequence[str]) -> str | None:
    """The first line of the largest file that has one: Spark's tasks begin with it."""
    by_size = sorted(files, key=os.path.getsize, reverse=True)
    for file in by_size:
        with open_unpacked(file) as opened:
            for batch in lines_of_file(file, opened):
                if len(batch):
                    return str(batch[RAW][0].as_py()).lstrip("\ufeff")
    return None

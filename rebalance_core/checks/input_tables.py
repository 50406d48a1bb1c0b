"""Tables read from their files, and those of one simulation, as read or made by hand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.checks.conform import conform, conformed_schema, refuse_missing_columns
from rebalance_core.checks.lines import UTF8, lines_of_file, not_blank, number_lines, open_unpacked
from rebalance_core.checks.locations import (
    data_files,
    format_of_table,
    hidden,
    not_found,
    tables_at,
    unknown_names,
)
from rebalance_core.checks.parquet_rows import ParquetTable
from rebalance_core.checks.text_rows import Lines, csv_rows, header_names, json_rows, names_of_line
from rebalance_core.contracts import INPUT_TABLES, Table
from rebalance_core.contracts.table import RAW, SOURCE, TECHNICAL
from rebalance_core.model.errors import InputRefused
from rebalance_core.storage.place import Location, Place, place_of

# One table read from its files.


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
    files = data_files(path)
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
    by_size = sorted(files, key=lambda file: place_of(file).size(), reverse=True)
    for file in by_size:
        with open_unpacked(file) as opened:
            for batch in lines_of_file(file, opened):
                if len(batch):
                    return str(batch[RAW][0].as_py()).lstrip("\ufeff")
    return None


# The input tables of one simulation, as read from files or made by hand.

_NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, eq=False)
class InputTables:
    """The tables of one simulation that are there, by name.

    Attributes:
        tables: as `conform` returns them: the contract's columns and `TECHNICAL`.
        paths: where a table was read from.
        unknown_columns: names, sorted, that are no columns and are read past.
    """

    tables: Mapping[str, pa.Table]
    paths: Mapping[str, str] = field(default_factory=dict)
    unknown_columns: Mapping[str, list[str]] = field(default_factory=dict)


def read_input_tables(
    folder: str | None = None,
    *,
    paths: Mapping[str, str] = _NOTHING,
    input_format: str | None = None,
) -> InputTables:
    """Read the tables found by name in ``folder``; the paths given by name go first.

    A table is a file or a folder of part files: ``cluster_events.jsonl``, ``.json``, ``.csv``
    (each also ``.gz``) or ``.parquet``. JSON has one object a line; CSV has a header in every
    part, RFC 4180 quoting, one record a line, arrays as JSON text. Blank lines are skipped.

    Args:
        folder: one that is reached from here.
        paths: files, folders of part files or, of local ones, patterns, by name of the table.
        input_format: ``json``, ``csv`` or ``parquet``; None: as the names tell.

    Raises:
        InputRefused: a path does not exist, a required table is not there or lacks
            columns, a file cannot be read.
        UsageError: the format is unknown.
    """
    locations = tables_at(str(folder), INPUT_TABLES) if folder is not None else {}
    locations |= {name: str(path) for name, path in paths.items()}
    for table in INPUT_TABLES.values():
        if table.required and table.name not in locations:
            files = () if folder is None else data_files(str(folder))
            raise InputRefused(not_found(table, folder, files))
    read = {n: read_table(INPUT_TABLES[n], p, input_format) for n, p in locations.items()}
    return InputTables(
        tables={name: rows for name, (rows, _) in read.items()},
        paths=locations,
        unknown_columns={name: unknown for name, (_, unknown) in read.items() if unknown},
    )


def stored_input_tables(folder: Place) -> InputTables:
    """The tables that a job wrote into a folder, wherever that is, as `read_input_tables` does.

    Raises:
        InputRefused: a table lacks columns, or a file cannot be read.
    """
    read = {name: stored_table(table, folder / name) for name, table in INPUT_TABLES.items()}
    return InputTables(
        tables={name: rows for name, (rows, _) in read.items()},
        paths={name: str(folder / name) for name in read},
        unknown_columns={name: unknown for name, (_, unknown) in read.items() if unknown},
    )


def input_tables_of(tables: Mapping[str, pa.Table]) -> InputTables:
    """Tables made by hand, conformed: of other types, with columns missing or too many.

    Raises:
        InputRefused: ``cluster_events`` or columns that may not be null are missing.
    """
    if "cluster_events" not in tables:
        raise InputRefused(not_found(INPUT_TABLES["cluster_events"], None, ()))
    unknown = {}
    for name, rows in tables.items():
        names = _names_in_raw(rows) if RAW in rows.column_names else rows.column_names
        unknown[name] = unknown_names(INPUT_TABLES[name], names, TECHNICAL)
    return InputTables(
        tables={name: conform(INPUT_TABLES[name], rows) for name, rows in tables.items()},
        unknown_columns={name: names for name, names in unknown.items() if names},
    )


def _names_in_raw(rows: pa.Table) -> set[str]:
    lines = rows.column(RAW).drop_null().to_pylist()
    return set().union(*map(names_of_line, lines))

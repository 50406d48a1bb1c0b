"""Input tables: where their files lie, and their rows as read or as made by hand."""

import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from glob import glob
from os import PathLike, fspath
from pathlib import Path
from types import MappingProxyType
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.checks import text_rows
from rebalance_core.checks.conform import conform, conformed_schema, refuse_missing_columns
from rebalance_core.checks.parquet_rows import ParquetTable
from rebalance_core.checks.text_rows import Lines
from rebalance_core.contracts import ALL_TABLES, INPUT_TABLES, Table
from rebalance_core.contracts.inputs import FORMATS, format_of, untold_format
from rebalance_core.contracts.paths import hidden, is_local, special_file
from rebalance_core.contracts.table import RAW, SOURCE, TECHNICAL
from rebalance_core.model.errors import InputRefused, UsageError
from rebalance_core.storage.place import Location, Place, place_of, refusal
from rebalance_core.storage.run_folder import refuse_changed

# Where tables lie: the rules that both carriers share, and local files found by them.

_MOST_NAMES = 20
_PATTERN_SIGNS = "*?[{"


def format_of_table(path: str, files: Sequence[str], input_format: str | None) -> str | None:
    """``json``, ``csv`` or ``parquet``; None if there are no files and nothing tells.

    Raises:
        UsageError: the format given is unknown.
        InputRefused: none is given, and neither the path nor a file tells one.
    """
    kind = FORMATS.get(f".{(input_format or '').lstrip('.').lower()}")
    if input_format is not None and kind is None:
        raise UsageError(f"input format {input_format!r} is unknown; known: json, csv, parquet")
    kind = kind or format_of(path) or next(filter(None, map(format_of, files)), None)
    if kind is None and files:
        raise InputRefused(untold_format(path))
    return kind


def entries_of(files: Iterable[str], folder: str, table: str) -> str | None:
    """The one file or folder among those of the files' paths that is the table; None: none is.

    Raises:
        InputRefused: there are two.
    """
    entries = sorted({entry for file in files if (entry := _entry(file, table)) is not None})
    if len(entries) > 1:
        twice = " and ".join(entry.rsplit("/", 1)[-1] for entry in entries)
        raise InputRefused(f"{folder} holds {table} more than once: {twice}; keep one")
    return entries[0] if entries else None


def _entry(file: str, table: str) -> str | None:
    """The file, or the folder above it, that bears the table's name and a known suffix or none."""
    parts = file.split("/")
    for end in range(len(parts), 0, -1):
        name = parts[end - 1]
        if name == table or (name.split(".", 1)[0] == table and format_of(name)):
            return "/".join(parts[:end])
    return None


def not_found(table: Table, folder: str | None, files: Iterable[str]) -> str:
    """Text about a required table that is not in the folder with these files."""
    if folder is None:
        return f"no path for {table.name} was given"
    names = ", ".join(f"{table.name}{suffix}" for suffix in FORMATS)
    found = sorted({file.rsplit("/", 1)[-1] for file in files})
    return (
        f"{table.name} is not in {folder}: looked for {names} (.gz too, or a folder of that name), "
        f"found {', '.join(found[:_MOST_NAMES]) or 'nothing'}"
    )


def unknown_names(table: Table, names: Iterable[str], technical: Iterable[str]) -> list[str]:
    """The names, sorted, that are no columns."""
    return sorted(set(names) - set(table.column_names) - set(technical))


def data_files(location: Location) -> list[str]:
    """Paths, or URLs in a store, of the data files under a location, sorted; see `local_files`.

    A `Place` is no pattern, whatever signs are in its name.

    Raises:
        InputRefused: nothing is there, or it may not be read.
        StoreFailed: the store does not answer.
        UsageError: the location is not reached without Spark.
    """
    text = location if isinstance(location, Place) else fspath(location)
    if isinstance(text, str) and is_local(text):
        return local_files(text)
    place = place_of(location)
    try:
        found = place.files() or ([place] if place.exists() else [])
    except OSError as error:
        raise refusal(error, f"{location} cannot be read", InputRefused) from error
    if not found:
        raise InputRefused(f"{location} does not exist")
    below = len(place.url) + 1
    return [str(file) for file in found if not any(map(hidden, file.url[below:].split("/")))]


def tables_at(folder: Location, names: Iterable[str]) -> Mapping[str, Location]:
    """The place of every table that lies right in the folder; see `local_tables`.

    A `Place` is of a job of ours, which wrote each table into a folder of its name.

    Raises:
        InputRefused: a table is there twice or not as the folder's record has it, or the folder
            may not be read.
        StoreFailed: the store does not answer.
    """
    if isinstance(folder, Place):
        return {name: folder / name for name in names}
    names = tuple(names)
    refuse_changed(place_of(_plain_path(folder)), names)
    if is_local(folder := fspath(folder)):
        return local_tables(folder, names)
    files = data_files(folder)
    found = {name: entries_of(files, folder, name) for name in names}
    return {name: entry for name, entry in found.items() if entry is not None}


def local_files(location: str) -> list[str]:
    """Absolute paths of the data files under a path, ``file:`` URI or pattern, sorted.

    Hidden files and folders are passed over as Spark does.

    Raises:
        InputRefused: nothing is there, or the location is not local.
    """
    roots = _roots(location)
    if not roots:
        raise InputRefused(f"{location} does not exist")
    return sorted({file for root in roots for file in _data_files(Path(root))})


def _roots(location: str) -> list[str]:
    """What is at a path or matches a pattern, links to nothing too; nothing if none does."""
    path = _local_path(location)
    if any(sign in path for sign in _PATTERN_SIGNS):
        return sorted(_matches(path))
    return [path] if os.path.lexists(path) else []


def _local_path(location: str) -> str:
    parts = urlsplit(location)
    if len(parts.scheme) > 1 and parts.scheme != "file":
        raise InputRefused(f"{location} is not a local path; only Spark reads it")
    path = unquote(parts.path) if parts.scheme == "file" and "%" in location else location
    path = path.removeprefix("file://").removeprefix("file:")
    return os.path.abspath(path)  # noqa: PTH100  # a pattern is no path


def _plain_path(location: str | PathLike[str]) -> str:
    text = fspath(location)
    return _local_path(text) if is_local(text) else text


def _matches(pattern: str) -> list[str]:
    """Files and folders of a pattern of Hadoop's: Python's signs, and {alternatives}."""
    opening = pattern.find("{")
    closing = pattern.find("}", opening)
    if opening < 0 or closing < 0:
        return glob(pattern, include_hidden=True)  # noqa: PTH207  # absolute patterns
    return [
        match
        for choice in pattern[opening + 1 : closing].split(",")
        for match in _matches(pattern[:opening] + choice + pattern[closing + 1 :])
    ]


def _data_files(root: Path) -> Iterable[str]:
    try:
        mode = root.stat().st_mode
        if not stat.S_ISDIR(mode):
            if (special := special_file(mode)) is not None:
                raise InputRefused(f"{root} cannot be read: it is no plain file but {special}")
            return [] if hidden(root.name) else [str(root)]
        entries = [entry for entry in root.iterdir() if not hidden(entry.name)]
    except OSError as error:
        raise InputRefused(f"{root} cannot be read: {error.strerror or error}") from error
    return [file for entry in entries for file in _data_files(entry)]


def local_tables(folder: str, names: Iterable[str]) -> dict[str, str]:
    """The URI of every table that lies right in the folder.

    Raises:
        InputRefused: one is there twice or cannot be read, or there is no such folder.
    """
    locations: dict[str, str] = {}
    for name in names:
        roots = [one for one in _roots(f"{folder.rstrip('/')}/{name}*") if _entry(one, name)]
        files = sorted({file for root in roots for file in _data_files(Path(root))})
        entry = entries_of((f"file://{file}" for file in files), folder, name)
        if entry is not None:
            locations[name] = entry
    if not locations:
        local_files(folder)  # refuses a folder that does not exist
    return locations


# One table read from its files.


def read_table(
    table: Table, path: Location, input_format: str | None = None
) -> tuple[pa.Table, list[str]]:
    """The table's rows as `conform` returns them, and its unknown columns, sorted.

    Args:
        table: the contract.
        path: a file, a folder of part files or a pattern; a `Place` is never one.
        input_format: ``json``, ``csv`` or ``parquet``; None: as the names tell.

    Raises:
        InputRefused: nothing is there, columns are missing, a file cannot be read, or the rows are
            not those that the record beside the table has.
        UsageError: the format is unknown.
    """
    if not isinstance(path, Place):
        folder, _, last = _plain_path(path).rstrip("/").rpartition("/")
        if last == table.name:
            refuse_changed(place_of(folder or "/"), [last])
    files, path = data_files(path), str(path)
    kind = format_of_table(path, files, input_format)
    if kind is None or not files:
        return conformed_schema(table).empty_table(), []
    if kind == "parquet":
        return _parquet(table, path, files)
    return (_json if kind == "json" else _csv)(table, path, files)


def _parquet(table: Table, path: str, files: Sequence[str]) -> tuple[pa.Table, list[str]]:
    read = ParquetTable.of(path, files)
    return conform(table, read.whole(files)), unknown_names(table, read.names, TECHNICAL)


def _json(table: Table, path: str, files: Sequence[str]) -> tuple[pa.Table, list[str]]:
    unknown: set[str] = set()
    parts = [conformed_schema(table).empty_table()]
    for lines in _lines(files):
        read = text_rows.json_rows(table, lines)
        parts.append(read.rows)
        unknown |= read.unknown
    return pa.concat_tables(parts), unknown_names(table, unknown, TECHNICAL)


def _csv(table: Table, path: str, files: Sequence[str]) -> tuple[pa.Table, list[str]]:
    header = _first_line(files)
    if header is None:
        return conformed_schema(table).empty_table(), []
    names = text_rows.header_names(path, header)
    refuse_missing_columns(table, names)
    parts = [conformed_schema(table).empty_table()]
    for lines in _lines(files, header):
        parts.append(text_rows.csv_rows(table, names, lines).rows)
    return pa.concat_tables(parts), unknown_names(table, names, TECHNICAL)


def _lines(files: Sequence[str], header: str | None = None) -> Iterator[Lines]:
    """The numbered lines of all files that are not blank."""
    for file in files:
        with text_rows.open_unpacked(file) as opened:
            for batch in text_rows.number_lines(
                text_rows.lines_of_file(Path(file).name, opened), header
            ):
                filled = text_rows.not_blank(batch[RAW])
                if pc.any(filled).as_py():
                    some = batch if pc.all(filled).as_py() else batch.filter(filled)
                    yield Lines(some[RAW], some[SOURCE], some[text_rows.UTF8])


def _first_line(files: Sequence[str]) -> str | None:
    """The first line of the largest file that has one: Spark's tasks begin with it."""
    by_size = sorted(files, key=lambda file: place_of(file).size(), reverse=True)
    for file in by_size:
        with text_rows.open_unpacked(file) as opened:
            for batch in text_rows.lines_of_file(file, opened):
                if len(batch):
                    return str(batch[RAW][0].as_py()).lstrip("\ufeff")
    return None


# The input tables of one simulation, as read from files or made by hand.

_NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, eq=False)
class ArrowTables:
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
    folder: Location | None = None,
    *,
    paths: Mapping[str, str] = _NOTHING,
    input_format: str | None = None,
) -> ArrowTables:
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
    found = {} if folder is None else tables_at(folder, INPUT_TABLES)
    locations: dict[str, Location] = {**found, **paths}
    for table in INPUT_TABLES.values():
        if table.required and table.name not in locations:
            files = () if folder is None else data_files(folder)
            raise InputRefused(not_found(table, None if folder is None else str(folder), files))
    return read_tables(locations, input_format)


def read_tables(locations: Mapping[str, Location], input_format: str | None = None) -> ArrowTables:
    """Any tables by name, from where they lie; see `read_table`."""
    read = {name: read_table(ALL_TABLES[name], p, input_format) for name, p in locations.items()}
    return ArrowTables(
        tables={name: rows for name, (rows, _) in read.items()},
        paths={name: str(path) for name, path in locations.items()},
        unknown_columns={name: unknown for name, (_, unknown) in read.items() if unknown},
    )


def input_tables_of(tables: Mapping[str, pa.Table]) -> ArrowTables:
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
    return ArrowTables(
        tables={name: conform(INPUT_TABLES[name], rows) for name, rows in tables.items()},
        unknown_columns={name: names for name, names in unknown.items() if names},
    )


def _names_in_raw(rows: pa.Table) -> set[str]:
    lines = rows.column(RAW).drop_null().to_pylist()
    return set().union(*map(text_rows.names_of_line, lines))

"""Locations of tables: the rules that both runtimes share, and the local files that they match."""

import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from glob import glob
from os import PathLike, fspath
from pathlib import Path
from urllib.parse import unquote, urlsplit

from rebalance_core.contracts import Table
from rebalance_core.contracts.input_formats import FORMATS, format_of, untold_format
from rebalance_core.contracts.paths import hidden, is_local, special_file
from rebalance_core.model.errors import InputRefused, UsageError
from rebalance_core.storage.place import Location, Place, place_of
from rebalance_core.storage.run_folder import refuse_changed
from rebalance_core.storage.store_answers import refusal

_MOST_NAMES = 20
_PATTERN_SIGNS = "*?[{"


def format_of_table(path: str, files: Sequence[str], input_format: str | None) -> str | None:
    """Return ``json``, ``csv`` or ``parquet``, or None if neither files nor a format are found.

    Raises:
        UsageError: the given format is unknown.
        InputRefused: no format is given, and neither the path nor a file shows one.
    """
    kind = FORMATS.get(f".{(input_format or '').lstrip('.').lower()}")
    if input_format is not None and kind is None:
        raise UsageError(f"unknown input format {input_format!r}; valid: json, csv, parquet")
    kind = kind or format_of(path) or next(filter(None, map(format_of, files)), None)
    if kind is None and files:
        raise InputRefused(untold_format(path))
    return kind


def entries_of(files: Iterable[str], folder: str, table: str) -> str | None:
    """Return the file or folder in these paths that is the table, or None.

    Raises:
        InputRefused: there are two candidates.
    """
    entries = sorted({entry for file in files if (entry := _entry(file, table)) is not None})
    if len(entries) > 1:
        twice = " and ".join(entry.rsplit("/", 1)[-1] for entry in entries)
        raise InputRefused(f"{folder} contains {table} more than once: {twice}; keep one")
    return entries[0] if entries else None


def _entry(file: str, table: str) -> str | None:
    """Return the file, or the folder above it, that has the table's name and a known or no
    suffix.
    """
    parts = file.split("/")
    for end in range(len(parts), 0, -1):
        name = parts[end - 1]
        if name == table or (name.split(".", 1)[0] == table and format_of(name)):
            return "/".join(parts[:end])
    return None


def not_found(table: Table, folder: str | None, files: Iterable[str]) -> str:
    """Return text about a required table that is missing from the folder with these files."""
    if folder is None:
        return f"the path for {table.name} is missing"
    names = ", ".join(f"{table.name}{suffix}" for suffix in FORMATS)
    present = sorted({file.rsplit("/", 1)[-1] for file in files})
    return (
        f"{table.name} is not in {folder}: expected {names} (also as .gz or as a folder of that "
        f"name), found {', '.join(present[:_MOST_NAMES]) or 'nothing'}"
    )


def unknown_names(table: Table, names: Iterable[str], technical: Iterable[str]) -> list[str]:
    """Return, sorted, the names that are not columns."""
    return sorted(set(names) - set(table.column_names) - set(technical))


def data_files(location: Location) -> list[str]:
    """Return sorted paths, or URLs in a store, of the data files at a location; see `local_files`.

    A `Place` is never a pattern, whatever characters its name contains.

    Raises:
        InputRefused: nothing exists there, or permission to read it is missing.
        StoreFailed: the store does not answer.
        UsageError: only Spark can reach the location.
    """
    text = location if isinstance(location, Place) else fspath(location)
    if isinstance(text, str) and is_local(text):
        return local_files(text)
    place = place_of(location)
    try:
        files = place.files() or ([place] if place.exists() else [])
    except OSError as error:
        raise refusal(error, f"{location} cannot be read", InputRefused) from error
    if not files:
        raise InputRefused(f"{location} does not exist")
    below = len(place.url) + 1
    return [str(file) for file in files if not any(map(hidden, file.url[below:].split("/")))]


def tables_at(folder: Location, names: Iterable[str]) -> Mapping[str, Location]:
    """Return the place of every table directly in the folder; see `local_tables`.

    A `Place` is the output of one of this program's jobs, with each table in a folder of its name.

    Raises:
        InputRefused: a table appears twice or differs from the folder's record, or permission to
            read the folder is missing.
        StoreFailed: the store does not answer.
    """
    if isinstance(folder, Place):
        return {name: folder / name for name in names}
    names = tuple(names)
    refuse_changed(place_of(plain_path(folder)), names)
    if is_local(folder := fspath(folder)):
        return local_tables(folder, names)
    files = data_files(folder)
    entries = {name: entries_of(files, folder, name) for name in names}
    return {name: entry for name, entry in entries.items() if entry is not None}


def local_files(location: str) -> list[str]:
    """Return sorted absolute paths of the data files at a path, ``file:`` URI or pattern.

    Hidden files and folders are skipped, as in Spark.

    Raises:
        InputRefused: nothing exists there, or the location is not local.
    """
    roots = _roots(location)
    if not roots:
        raise InputRefused(f"{location} does not exist")
    return sorted({file for root in roots for file in _data_files(Path(root))})


def _roots(location: str) -> list[str]:
    """Return what exists at a path or matches a pattern, including dangling links."""
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


def plain_path(location: str | PathLike[str]) -> str:
    """Return the path of a location in the local file system; return any other location
    unchanged.
    """
    text = fspath(location)
    return _local_path(text) if is_local(text) else text


def _matches(pattern: str) -> list[str]:
    """Return files and folders that match a Hadoop pattern: Python's wildcards and
    {alternatives}.
    """
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
                raise InputRefused(f"{root} cannot be read: it is {special}, not a plain file")
            return [] if hidden(root.name) else [str(root)]
        entries = [entry for entry in root.iterdir() if not hidden(entry.name)]
    except OSError as error:
        raise InputRefused(f"{root} cannot be read: {error.strerror or error}") from error
    return [file for entry in entries for file in _data_files(entry)]


def local_tables(folder: str, names: Iterable[str]) -> dict[str, str]:
    """Return the URI of every table directly in the folder.

    Raises:
        InputRefused: a table appears twice or cannot be read, or there is no such folder.
    """
    locations: dict[str, str] = {}
    for name in names:
        roots = [path for path in _roots(f"{folder.rstrip('/')}/{name}*") if _entry(path, name)]
        files = sorted({file for root in roots for file in _data_files(Path(root))})
        entry = entries_of((f"file://{file}" for file in files), folder, name)
        if entry is not None:
            locations[name] = entry
    if not locations:
        local_files(folder)  # refuses a folder that does not exist
    return locations

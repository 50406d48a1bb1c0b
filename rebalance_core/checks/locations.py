"""Where tables lie: the rules that both carriers share, and local files found by them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from glob import glob
from pathlib import Path
from urllib.parse import unquote, urlsplit

from rebalance_core.contracts import Table
from rebalance_core.contracts.inputs import FORMATS, format_of, untold_format
from rebalance_core.contracts.paths import is_local
from rebalance_core.model.errors import InputRefused, UsageError
from rebalance_core.storage.access import refusal
from rebalance_core.storage.place import Place, place_of

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
    """What to say of a required table that is not in the folder with these files."""
    if folder is None:
        return f"no path for {table.name} was given"
    names = ", ".join(f"{table.name}{suffix}" for suffix in FORMATS)
    there = sorted({file.rsplit("/", 1)[-1] for file in files})
    return (
        f"{table.name} is not in {folder}: looked for {names} (.gz too, or a folder of that name), "
        f"found {', '.join(there[:_MOST_NAMES]) or 'nothing'}"
    )


def unknown_names(table: Table, names: Iterable[str], technical: Iterable[str]) -> list[str]:
    """The names, sorted, that are no columns."""
    return sorted(set(names) - set(table.column_names) - set(technical))


def data_files(location: str) -> list[str]:
    """Paths, or URLs in a store, of the data files under a location, sorted; see `local_files`.

    Raises:
        InputRefused: nothing is there, or it may not be read.
        StoreFailed: the store does not answer.
        UsageError: the location is not reached without Spark.
    """
    return local_files(location) if is_local(location) else [*map(str, _stored_files(location))]


def _stored_files(location: str) -> list[Place]:
    place = place_of(location)
    try:
        found = place.files() or ([place] if place.exists() else [])
    except OSError as error:
        raise refusal(error, f"{location} cannot be read", InputRefused) from error
    if not found:
        raise InputRefused(f"{location} does not exist")
    below = len(place.url) + 1
    return [file for file in found if not any(map(hidden, file.url[below:].split("/")))]


def tables_at(folder: str, names: Iterable[str]) -> dict[str, str]:
    """The path or URL of every table that lies right in the folder; see `local_tables`.

    Raises:
        InputRefused: a table is there twice, or the folder may not be read.
        StoreFailed: the store does not answer.
    """
    if is_local(folder):
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
    path = _local_path(location)
    roots = sorted(_matches(path)) if any(s in path for s in _PATTERN_SIGNS) else [path]
    roots = [root for root in roots if os.path.exists(root)]  # noqa: PTH110  # patterns are texts
    if not roots:
        raise InputRefused(f"{location} does not exist")
    return sorted({file for root in roots for file in _data_files(Path(root))})


def _local_path(location: str) -> str:
    parts = urlsplit(location)
    if len(parts.scheme) > 1 and parts.scheme != "file":
        raise InputRefused(f"{location} is not a local path; only Spark reads it")
    path = unquote(parts.path) if parts.scheme == "file" and "%" in location else location
    path = path.removeprefix("file://").removeprefix("file:")
    return os.path.abspath(path)  # noqa: PTH100  # a pattern is no path


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
    if root.is_file():
        return [] if hidden(root.name) else [str(root)]
    found: list[str] = []
    for entry in root.iterdir():
        if not hidden(entry.name):
            found += _data_files(entry)
    return found


def hidden(name: str) -> bool:
    """True for names that Spark passes over (InMemoryFileIndex.shouldFilterOutPathName)."""
    if name.startswith(("_common_metadata", "_metadata")):
        return False
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def local_tables(folder: str, names: Iterable[str]) -> dict[str, str]:
    """The URI of every table that lies right in the folder; `InputRefused` if one is twice."""
    locations: dict[str, str] = {}
    for name in names:
        try:
            files = local_files(f"{folder.rstrip('/')}/{name}*")
        except InputRefused:
            continue
        entry = entries_of((f"file://{file}" for file in files), folder, name)
        if entry is not None:
            locations[name] = entry
    if not locations:
        local_files(folder)  # refuses a folder that does not exist
    return locations

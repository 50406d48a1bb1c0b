"""The input files of a run: located before Spark starts, and fingerprinted for the record."""

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from glob import glob
from pathlib import Path, PurePosixPath
from typing import Any

from rebalance_core.cli.run.run_record import InputRecord
from rebalance_core.cli.run.secrets import redact_text
from rebalance_core.contracts import INPUT_TABLES, packed_files, paths
from rebalance_core.contracts.input_formats import format_of, untold_format
from rebalance_core.contracts.unpacking import READ_PACKED
from rebalance_core.model.errors import InputRefused, did_you_mean
from rebalance_core.storage.place import is_direct, is_reachable, place_of
from rebalance_core.storage.run_folder import refuse_changed

WHOLE_CONTENT_UP_TO = 4 * 1024**3  # bytes; beyond this, reading twice costs more than it is worth
_REQUIRED = tuple(name for name, table in INPUT_TABLES.items() if table.required)
_HEAD = 16  # bytes; no codec's magic number is longer
BYTES_OF_PARQUET_ROW = 128
"""The weight of a Parquet row: a process needs four times this in memory, however few bytes the row
has in the file (4,000,000 commits: 344 kB, 1.7 GiB).
"""


def tables_in(
    folder: Path,
    input_format: str | None = None,
    tables: Iterable[str] = tuple(INPUT_TABLES),
    required: Iterable[str] = _REQUIRED,
) -> dict[str, Path]:
    """Return the input tables in `folder` by name, e.g. `cluster_events.jsonl`.

    Args:
        folder: a local folder.
        input_format: as the operator names it.
        tables: the tables to read; other files do not matter.
        required: the tables without which there is no input.

    Raises:
        InputRefused: the folder does not exist, or a table appears twice, is required but missing,
            differs from the folder's record, or is refused by `check_readable`.
    """
    paths.refuse_no_folder("--input", folder)
    tables = tuple(tables)
    refuse_changed(place_of(folder), tables)
    path_of: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        name = path.name.partition(".")[0]
        if name not in tables:
            continue
        if name in path_of:
            raise InputRefused(
                f"--input {folder}: {name} exists twice: {path_of[name].name} and {path.name}"
            )
        path_of[name] = path
    for name in required:
        if name not in path_of:
            names = ", ".join(path.name for path in sorted(folder.iterdir())) or "nothing"
            meant = _folder_below(folder, name)
            hint = f"; did you mean {meant}?" if meant else ""
            raise InputRefused(f"--input {folder}: contains no {name}; it has {names}{hint}")
    for path in path_of.values():
        check_readable("--input", str(path), input_format)
    return path_of


def tables_of(
    location: str | None,
    input_format: str | None = None,
    tables: Iterable[str] = tuple(INPUT_TABLES),
    required: Iterable[str] = _REQUIRED,
) -> dict[str, str]:
    """Return the path by table in a local folder; empty for folders listed by the reader, or
    without one.

    Raises:
        InputRefused: as for `tables_in`.
    """
    if location is None or not paths.is_local(location):
        return {}
    path_of = tables_in(paths.local_path(location), input_format, tables, required)
    return {table: str(path) for table, path in path_of.items()}


def _folder_below(folder: Path, table: str) -> Path | None:
    """Return a subfolder that has the table, such as ``ingested`` in an audit's output."""
    folders = (path for path in sorted(folder.iterdir()) if path.is_dir())
    for below in folders:
        inside = below.iterdir() if os.access(below, os.R_OK) else ()
        if any(path.name.partition(".")[0] == table for path in inside):
            return below
    return None


def check_readable(option: str, location: str, input_format: str | None = None) -> None:
    """Raise `InputRefused` for a local path that cannot be an input; any remote path can be.

    This reports errors that would otherwise appear only after a session starts: a missing file
    (with the closest name), a file that is unreadable or does not match its suffix, and a format
    that no name shows.

    Args:
        option: the option whose value it is, for the message.
        location: path or URI of a file, a folder of part files, or a pattern.
        input_format: as the operator names it; if given, the suffix does not matter.
    """
    if not paths.is_local(location):
        return
    path = paths.local_path(location)
    pattern = any(sign in location for sign in "*?[{")
    try:
        exists = path.exists()
    except OSError as error:
        raise InputRefused(f"{option} {location} cannot be read: {error.strerror}") from error
    if not exists and path.is_symlink():
        raise InputRefused(f"{option} {location} cannot be read: it links to a missing file")
    if not exists and not pattern:
        beside = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
        raise InputRefused(f"{option} {location}: no such file{did_you_mean(path.name, beside)}")
    if "{" in location and not exists:
        return  # Hadoop's alternatives, which Python's glob does not support
    if pattern and not exists and not glob(str(path)):  # noqa: PTH207  # absolute patterns
        raise InputRefused(f"{option} {location}: no file matches")
    files = _data_files(path, option)
    for file in files:
        _check_head(file)
    if files and input_format is None and not any(map(format_of, (path.name, *map(str, files)))):
        raise InputRefused(untold_format(location))


def _data_files(path: Path, option: str) -> list[Path]:
    """Return the files that Spark reads under a path or pattern, which excludes hidden files.

    Raises:
        InputRefused: a pipe, socket, device or dangling link is among them.
    """
    matches = [Path(match) for match in glob(str(path))] or [path]  # noqa: PTH207  # as above
    below = (p for folder in matches for p in folder.rglob("*") if not _hidden(p, folder))
    files = []
    for file in (*matches, *below):
        try:
            mode = file.stat().st_mode
        except OSError as error:
            raise InputRefused(f"{option} {file} cannot be read: {error.strerror}") from error
        if (special := paths.special_file(mode)) is not None:
            raise InputRefused(f"{option} {file} cannot be read: it is {special}, not a plain file")
        if not stat.S_ISDIR(mode):
            files.append(file)
    return files


def _hidden(file: Path, folder: Path) -> bool:
    return any(part.startswith((".", "_")) for part in file.relative_to(folder).parts)


def _check_head(file: Path) -> None:
    """Refuse a file that this user cannot open or whose name does not fit in a `source`.

    Also refuse a file whose compression differs from its suffix.
    """
    if not paths.is_utf8(file.name):
        raise InputRefused(f"{str(file)!r} cannot be read: its name is not UTF-8")
    try:
        with file.open("rb") as opened:
            wrong = packed_files.wrong_head(file.name, opened.read(_HEAD))
    except OSError as error:
        raise InputRefused(f"{file} cannot be read: {error.strerror or error}") from error
    if wrong is not None:
        raise InputRefused(f"{file} cannot be read: {wrong}")


def fingerprint(table: str, location: str, session: Any = None) -> InputRecord:
    """Return the record of an input: its size and a hash of its content or file list.

    Args:
        table: name of the input table.
        location: path or URI.
        session: only needed for a remote location, which has no hash without it.
    """
    shown = redact_text(location)
    if paths.is_local(location):
        path = paths.local_path(location)
        if path.is_file() and path.stat().st_size <= WHOLE_CONTENT_UP_TO:
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            return InputRecord(table, shown, bytes=path.stat().st_size, sha256=digest)
        files = _local_files(path)
    elif session is None and is_reachable(location):
        place = place_of(location)
        files = place.sizes() or [("", place.size())]
    elif session is not None:
        from rebalance_core.spark.hadoop_folder import remote_files  # needs pyspark

        remote = remote_files(location, session)
        if remote is None:
            raise InputRefused(f"{shown}: no such file")
        files = remote
    else:
        return InputRecord(table, shown)
    listing = "".join(f"{name}\t{size}\n" for name, size in sorted(files))
    return InputRecord(
        table,
        shown,
        bytes=sum(size for _, size in files),
        file_list_sha256=hashlib.sha256(os.fsencode(listing)).hexdigest(),
    )


def collection_fingerprint(name: str, location: str, session: Any) -> InputRecord:
    """Return the record of a collection, which tasks read without Spark's connectors if possible.

    Args:
        name: the name of the input.
        location: path or URI of the folder.
        session: for a folder that only Spark can reach.
    """
    return fingerprint(name, location, None if is_direct(location) else session)


def is_larger(locations: Iterable[str], most: int) -> bool:
    """Return True if files, folders and local patterns unpack to more than ``most`` bytes.

    A Parquet row counts as `BYTES_OF_PARQUET_ROW`, or as its size in the file if that is larger.

    Cost: at most this many bytes are unpacked, and Parquet footers are read up to the same limit in
    rows.

    Raises:
        OSError: the store does not reveal the size.
    """
    left, packed = most, list[str]()
    for location in locations:
        for path, size in _files_at(location):
            if PurePosixPath(path).suffix in READ_PACKED:
                packed.append(path)
            else:
                left -= size
                if PurePosixPath(path).suffix == ".parquet" and left >= 0:
                    left -= max(0, BYTES_OF_PARQUET_ROW * _parquet_rows(path) - size)
    if packed and left >= 0:
        from rebalance_core.checks.unpacked_text import unpacked_size

        for path in packed:
            left -= unpacked_size(path, left) if left >= 0 else 0
    return left < 0


def _parquet_rows(path: str) -> int:
    """Return the number of rows in a file's footer; 0 if it is not Parquet, as the job will refuse
    it.
    """
    import pyarrow as pa  # takes a tenth of a second, which text inputs do not need here
    import pyarrow.parquet as pq

    file = place_of(path)
    try:
        return int(pq.read_metadata(file.path, filesystem=file.file_system).num_rows)
    except pa.ArrowInvalid:
        return 0


def _files_at(location: str) -> list[tuple[str, int]]:
    """Return the files of a location with their sizes in bytes."""
    if paths.is_local(location):
        matches = _matches(paths.local_path(location))
        return [(str(path), path.stat().st_size) for path, _ in matches]
    place = place_of(location)
    inside = [(f"{location.rstrip('/')}/{name}", size) for name, size in place.sizes()]
    return inside or [(location, place.size())]


def _local_files(pattern: Path) -> list[tuple[str, int]]:
    return [
        (path.relative_to(match.parent).as_posix(), path.stat().st_size)
        for path, match in _matches(pattern)
    ]


def _matches(pattern: Path) -> Iterator[tuple[Path, Path]]:
    """Yield the files of all matches of a pattern, each with its match."""
    for match in map(Path, glob(str(pattern))):  # noqa: PTH207  # absolute patterns
        for path in [match] if match.is_file() else match.rglob("*"):
            if path.is_file():
                yield path, match

"""Places that operators read and write: folders of this machine, S3 and HDFS.

A file system is opened from plain values that can be sent to tasks. Importing this module does not
need pyarrow.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import BufferedReader
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from rebalance_core.contracts.paths import hidden, is_local, local_path, without_user
from rebalance_core.model.errors import UsageError
from rebalance_core.storage.access import (
    SETTLE_SECONDS,
    Access,
    HadoopAccess,
    LocalAccess,
    S3Access,
    opened,
    s3_access,
    why_not_opened,
)

if TYPE_CHECKING:
    from pyarrow import fs


@dataclass(frozen=True)
class Place:
    """A file or a folder: its usual name and how to reach it; picklable.

    Methods raise `OSError` if the file system does (`reason_of` explains it).

    Attributes:
        url: The name that operators use, without a trailing slash.
        path: The path within its file system.
        access: How the file system is opened.
    """

    url: str
    path: str
    access: Access

    def __truediv__(self, name: str) -> Place:
        """Return the place with this name in the folder."""
        return replace(self, url=f"{self.url}/{name}", path=f"{self.path.rstrip('/')}/{name}")

    def __str__(self) -> str:
        return self.url

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rsplit("/", 1)[-1]

    @property
    def is_local(self) -> bool:
        """True on a file system of this machine."""
        return isinstance(self.access, LocalAccess)

    @property
    def file_system(self) -> fs.FileSystem:
        """Return the file system that pyarrow's readers and writers take together with `path`."""
        return opened(self.access)

    def exists(self) -> bool:
        """Return True if there is a file or a folder."""
        return bool(self._info().type)

    def is_folder(self) -> bool:
        """Return True for a folder or, in an object store, for a prefix of some object."""
        return not (info := self._info()).is_file and bool(info.type)

    def names(self) -> list[str]:
        """Return the names directly in the folder, sorted; none if there is no such folder."""
        return sorted(info.base_name for info in self._entries(recursive=False))

    def files(self) -> list[Place]:
        """Return all files in the folder and its subfolders, sorted by path."""
        paths = sorted(info.path for info in self._entries(recursive=True) if info.is_file)
        below = len(self.path.rstrip("/")) + 1
        return [self / path[below:] for path in paths]

    def size(self) -> int:
        """Return the size in bytes of a file or of all files in a folder; 0 if there is none."""
        info = self._info()
        return int(info.size) if info.is_file else sum(size for _, size in self.sizes())

    def sizes(self) -> list[tuple[str, int]]:
        """Return the relative path and size in bytes of every file in this folder, sorted."""
        below = len(self.path.rstrip("/")) + 1
        files = [info for info in self._entries(recursive=True) if info.is_file]
        return sorted((info.path[below:], int(info.size)) for info in files)

    def parquet_rows(self) -> int | None:
        """Return the number of rows in the folder's Parquet files, from their footers; None if
        there is no such folder.

        Raises:
            ArrowException: a file that is not hidden is not Parquet; the text names it.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        if not self.is_folder():
            return None
        rows, below = 0, len(self.url) + 1
        for file in self.files():
            if any(map(hidden, file.url[below:].split("/"))):
                continue
            try:
                metadata = pq.read_metadata(file.path, filesystem=file.file_system)
            except pa.ArrowInvalid as error:
                first = str(error).partition("\n")[0]
                raise pa.ArrowInvalid(f"{file.url[below:]} is not Parquet: {first}") from error
            rows += metadata.num_rows
        return rows

    def open(self, at: int = 0) -> BinaryIO:
        """Open a file's raw bytes, whatever its suffix, for sequential reading.

        Args:
            at: The first byte to read.
        """
        opened = self.file_system.open_input_file(self.path)
        opened.seek(at)
        return cast("BinaryIO", BufferedReader(opened, _READ_BYTES))

    def head(self, size: int) -> bytes:
        """Return up to this number of bytes from the start of a file."""
        with self.file_system.open_input_file(self.path) as file:
            return bytes(file.read(size))

    def read_bytes(self) -> bytes:
        """Return the bytes of a file."""
        with self.file_system.open_input_file(self.path) as file:
            return bytes(file.read())

    def read_text(self) -> str | None:
        """Return a small file's text, or None if the file does not exist."""
        try:
            with self.file_system.open_input_stream(self.path) as file:
                return str(file.read().decode("utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            return None

    def write_text(self, text: str) -> None:
        """Write a small file, replacing an earlier file; not atomic on HDFS."""
        with self.file_system.open_output_stream(self.path) as file:
            file.write(text.encode("utf-8"))

    def create_text(self, text: str) -> None:
        """Create a small file; raise `FileExistsError` if it exists or another writer was later."""
        if self.read_text() is not None:
            raise FileExistsError(self.url)
        self.write_text(text)
        time.sleep(SETTLE_SECONDS)
        if self.read_text() != text:
            raise FileExistsError(self.url)

    def make_folder(self) -> None:
        """Create the folder and its parents; object stores have no folders to create."""
        if not isinstance(self.access, S3Access):
            self.file_system.create_dir(self.path)

    def make_new_folder(self) -> None:
        """Create a folder as `make_folder` does; raise `FileExistsError` if anything already
        exists.
        """
        if self.exists():
            raise FileExistsError(self.url)
        self.make_folder()

    def delete(self) -> None:
        """Remove a file, or a folder with its contents; do nothing if it does not exist."""
        info = self._info()
        if info.is_file:
            self.file_system.delete_file(self.path)
        elif info.type:
            self.file_system.delete_dir(self.path)

    def move_to(self, target: Place) -> None:
        """Move a file to a place in the same file system; an object store copies and deletes it.

        Raises:
            FileNotFoundError: The file does not exist.
        """
        try:
            self.file_system.move(self.path, target.path)
        except OSError as error:
            if "NO_SUCH_KEY" in str(error) or "RESOURCE_NOT_FOUND" in str(error):
                raise FileNotFoundError(self.url) from error
            raise

    def _info(self) -> fs.FileInfo:
        return self.file_system.get_file_info(self.path)

    def _entries(self, *, recursive: bool) -> list[fs.FileInfo]:
        from pyarrow import fs

        try:
            # a missing bucket is an error but a missing folder is not; allow_not_found hides both
            return list(
                self.file_system.get_file_info(fs.FileSelector(self.path, recursive=recursive))
            )
        except (FileNotFoundError, NotADirectoryError):
            return []


_READ_BYTES = 4 << 20
"""Bytes per request to a store, each of which costs a round trip."""


_ASIDE = re.compile(r"\.(?P<name>.+)\.[0-9a-f]{32}")
"""The name of a small file while it is being written, beside the file that it becomes."""


@dataclass(frozen=True)
class LocalPlace(Place):
    """A file or folder on this machine, or mounted here; its name need not be UTF-8."""

    def names(self) -> list[str]:
        """Return the names directly in the folder, sorted; none if there is no such folder."""
        folder = Path(self.path)
        return sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []

    def open(self, at: int = 0) -> BinaryIO:
        """Open a file's bytes for sequential reading; see `Place.open`."""
        opened = Path(self.path).open("rb")  # noqa: SIM115  # the caller closes it
        opened.seek(at)
        return opened

    def head(self, size: int) -> bytes:
        """Return up to this number of bytes from the start of a file."""
        with self.open() as file:
            return file.read(size)

    def read_bytes(self) -> bytes:
        """Return the bytes of a file."""
        return Path(self.path).read_bytes()

    def read_text(self) -> str | None:
        """Return a small file's text, or None if the file does not exist."""
        path = Path(self.path)
        try:
            if path.is_fifo() or path.is_char_device():
                raise OSError(errno.EINVAL, "not a regular file", self.path)
            return path.read_text("utf-8")
        except (FileNotFoundError, NotADirectoryError):
            return None

    def write_text(self, text: str) -> None:
        """Replace a small file atomically: a reader sees either the old or the new content."""
        with self._written_aside(text) as whole:
            whole.replace(self.path)

    def create_text(self, text: str) -> None:
        """Create a small file, completely or not at all; raise `FileExistsError` if it exists."""
        with self._written_aside(text) as whole:
            try:
                os.link(whole, self.path)
            except FileExistsError:
                raise
            except OSError:
                # Some mounts have no links: this is still exclusive, but a crash could leave a
                # partial file
                with Path(self.path).open("x", encoding="utf-8") as file:
                    file.write(text)

    def make_folder(self) -> None:
        """Create the folder and its parents."""
        Path(self.path).mkdir(parents=True, exist_ok=True)

    def make_new_folder(self) -> None:
        """Create a folder as `make_folder` does; raise `FileExistsError` if anything already
        exists.
        """
        Path(self.path).mkdir(parents=True)

    def check_makeable(self) -> None:
        """Raise the `OSError` that `make_folder` and the first file would raise, without changing
        anything.
        """
        path = Path(self.path)
        nearest = next(path for path in (path, *path.parents) if path.exists())
        if not nearest.is_dir():
            code = errno.EEXIST if nearest == path else errno.ENOTDIR
            raise OSError(code, os.strerror(code), str(nearest))
        if not os.access(nearest, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(nearest))

    def delete(self) -> None:
        """Remove a file, or a folder with its contents; do nothing if it does not exist."""
        path = Path(self.path)
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)

    def delete_leftovers(self, names: Collection[str]) -> None:
        """Remove from the folder what killed writers left of small files with these names.

        A running writer notices this and either writes again or gives up its lock's heartbeat.
        """
        for path in map(Path(self.path).joinpath, self.names()):
            aside = _ASIDE.fullmatch(path.name)
            if aside is not None and aside["name"] in names and not path.is_dir():
                path.unlink(missing_ok=True)

    @contextmanager
    def _written_aside(self, text: str) -> Iterator[Path]:
        """Yield a file that is removed at the end, even on a full disk or after a signal."""
        aside = Path(self.path).with_name(f".{self.name}.{os.urandom(16).hex()}")
        try:
            with aside.open("x", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            yield aside
        finally:
            aside.unlink(missing_ok=True)


Location = str | PathLike[str] | Place
"""The kinds of places."""


class NotReached(UsageError):
    """A place that cannot be reached without Spark."""


_URI = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+)://(?P<host>[^/]*)(?P<path>.*)", re.DOTALL)
_OBJECT_STORES = ("s3", "s3a")
_ADDRESS = re.compile(r"(?P<host>[^:]+)(?::(?P<port>\d+))?")


def place_of(location: Location) -> Place:
    """Return the place.

    Args:
        location: A path, a ``file:`` URI, ``s3://`` or ``s3a://`` with a bucket, or ``hdfs://``.

    Raises:
        NotReached: The scheme is another one, or pyarrow lacks its requirements.
        UsageError: The address is wrong.
    """
    if isinstance(location, Place):
        return location
    text = fspath(location)
    if is_local(text):
        path = str(local_path(text).absolute())
        return LocalPlace(path, path, LocalAccess())
    uri = _URI.fullmatch(text.rstrip("/")) or _URI.fullmatch(text)
    maker = None if uri is None else _MAKERS.get(uri["scheme"].lower())
    if uri is None or maker is None:
        raise NotReached(f"{without_user(text)}: without Spark only {reachable()} can be reached")
    return maker(uri)


def is_reachable(location: str) -> bool:
    """Return True if `place_of` returns a place; raise `UsageError` if the address is wrong."""
    try:
        place_of(location)
    except NotReached:
        return False
    return True


def object_store(location: Location) -> Place | None:
    """Return the place if it is in an object store that this process can reach.

    Tasks of a cluster write there themselves. They may not share a local folder, and for HDFS each
    of their Python processes would start a JVM; Spark has its own access to both.
    """
    if isinstance(location, Place):
        return location if isinstance(location.access, S3Access) else None
    text = fspath(location)
    in_store = text.partition("://")[0].lower() in _OBJECT_STORES
    return place_of(text) if in_store and is_reachable(text) else None


def is_direct(location: str) -> bool:
    """Return True for a place that the driver and tasks can reach without Spark: local or in a
    store.
    """
    return is_local(location) or object_store(location) is not None


def reachable() -> str:
    """Return the kinds of places, in words."""
    return "local folders, " + ", ".join(f"{scheme}://" for scheme in _MAKERS)


def _s3_place(uri: re.Match[str]) -> Place:
    bucket, shown = uri["host"], without_user(uri[0])
    if "@" in bucket:
        raise UsageError(
            f"{shown}: keep keys out of addresses; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        )
    if not bucket:
        raise UsageError(f"{shown} names no bucket; write {uri['scheme']}://BUCKET/FOLDER")
    try:
        from pyarrow.fs import S3FileSystem  # noqa: F401  # some builds of pyarrow lack it
    except ImportError as error:
        raise NotReached(f"{shown}: the installed pyarrow is built without S3 ({error})") from error
    return Place(uri[0], f"{bucket}{uri['path']}", s3_access(bucket))


def _hadoop_place(uri: re.Match[str]) -> Place:
    address = _ADDRESS.fullmatch(uri["host"])
    if uri["host"] and address is None:
        raise UsageError(f"{without_user(uri[0])}: write hdfs://HOST:PORT/FOLDER")
    access = HadoopAccess()
    if address is not None:
        access = HadoopAccess(address["host"], int(address["port"] or 0))
    reason = why_not_opened(access)
    if reason is not None:
        raise NotReached(
            f"{uri[0]}: HDFS is reached through Hadoop's libhdfs, which does not work here "
            f"({reason}); set JAVA_HOME, HADOOP_HOME and CLASSPATH=$(hadoop classpath --glob), or "
            "leave it to Spark: --run-on spark"
        )
    return Place(uri[0], uri["path"] or "/", access)


_MAKERS: dict[str, Callable[[re.Match[str]], Place]] = {
    "s3": _s3_place,
    "s3a": _s3_place,
    "hdfs": _hadoop_place,
}

"""Places of what operators write: folders of this machine, S3 and HDFS, through pyarrow."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from rebalance_core.contracts.paths import is_local, local_path, without_user
from rebalance_core.model.errors import UsageError
from rebalance_core.storage.access import (
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


# A file or a folder, wherever it is.


@dataclass(frozen=True)
class Place:
    """A file or a folder: what people call it, and how it is reached; picklable.

    Methods raise `OSError` where the file system does (`store_errors.reason_of` explains it).

    Attributes:
        url: As operators name it, without a slash at the end.
        path: In its file system.
        access: How that is opened.
    """

    url: str
    path: str
    access: Access

    def __truediv__(self, name: str) -> Place:
        """What lies in this folder under a name."""
        return Place(f"{self.url}/{name}", f"{self.path.rstrip('/')}/{name}", self.access)

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
        """What pyarrow's readers and writers take beside `path`."""
        return opened(self.access)

    def exists(self) -> bool:
        """True for a file and for a folder."""
        return bool(self._info().type)

    def is_folder(self) -> bool:
        """True for a folder; in an object store, for a prefix of some object."""
        return not (info := self._info()).is_file and bool(info.type)

    def names(self) -> list[str]:
        """What lies right in the folder, sorted; nothing if there is none."""
        return sorted(info.base_name for info in self._entries(recursive=False))

    def files(self) -> list[Place]:
        """Every file in the folder and below, sorted by path; nothing if there is none."""
        found = sorted(info.path for info in self._entries(recursive=True) if info.is_file)
        below = len(self.path.rstrip("/")) + 1
        return [self / path[below:] for path in found]

    def size(self) -> int:
        """Bytes of a file, or of all files in a folder; 0 if there is none."""
        info = self._info()
        return int(info.size) if info.is_file else sum(size for _, size in self.sizes())

    def sizes(self) -> list[tuple[str, int]]:
        """Path below this folder and bytes of every file in it, sorted."""
        below = len(self.path.rstrip("/")) + 1
        files = [info for info in self._entries(recursive=True) if info.is_file]
        return sorted((info.path[below:], int(info.size)) for info in files)

    def open(self) -> BinaryIO:
        """A file's bytes as they are, whatever its suffix says, to be read in order."""
        opened = self.file_system.open_input_stream(self.path, compression=None)
        return cast("BinaryIO", opened)

    def read_text(self) -> str | None:
        """A small file's text; None if it is not there."""
        try:
            with self.file_system.open_input_stream(self.path) as file:
                return str(file.read().decode("utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            return None

    def write_text(self, text: str) -> None:
        """Write a small file, over an earlier one; in an object store, whole or not at all."""
        with self.file_system.open_output_stream(self.path) as file:
            file.write(text.encode("utf-8"))

    def make_folder(self) -> None:
        """Make the folder and those above it; object stores have none to make."""
        if not isinstance(self.access, S3Access):
            self.file_system.create_dir(self.path)

    def make_new_folder(self) -> None:
        """As `make_folder`; `FileExistsError` if anything is there already."""
        if self.is_local:
            Path(self.path).mkdir(parents=True)
            return
        if self.exists():
            raise FileExistsError(self.url)
        self.make_folder()

    def delete(self) -> None:
        """Remove a file, or a folder with all in it; nothing to do if it is not there."""
        info = self._info()
        if info.is_file:
            self.file_system.delete_file(self.path)
        elif info.type:
            self.file_system.delete_dir(self.path)

    def move_to(self, target: Place) -> None:
        """Move a file to a place of the same file system; an object store copies and deletes.

        Raises:
            FileNotFoundError: It is not there.
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
            # a missing bucket is an error, a missing folder is not: allow_not_found hides both
            return list(
                self.file_system.get_file_info(fs.FileSelector(self.path, recursive=recursive))
            )
        except (FileNotFoundError, NotADirectoryError):
            return []


# Places of what operators write: paths, and URIs of what pyarrow reaches.

Location = str | PathLike[str] | Place
"""What is taken for a place."""


class NotReached(UsageError):
    """A place that is not reached without Spark."""


_URI = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+)://(?P<host>[^/]*)(?P<path>.*)", re.DOTALL)
_OBJECT_STORES = ("s3", "s3a")
_ADDRESS = re.compile(r"(?P<host>[^:]+)(?::(?P<port>\d+))?")


def place_of(location: Location) -> Place:
    """The place.

    Args:
        location: A path, a ``file:`` URI, ``s3://`` or ``s3a://`` with a bucket, or ``hdfs://``.

    Raises:
        NotReached: Another scheme, or what pyarrow needs for this one is not there.
        UsageError: The address is wrong.
    """
    if isinstance(location, Place):
        return location
    text = fspath(location)
    if is_local(text):
        path = str(local_path(text).absolute())
        return Place(path, path, LocalAccess())
    uri = _URI.fullmatch(text.rstrip("/"))
    maker = None if uri is None else _MAKERS.get(uri["scheme"].lower())
    if uri is None or maker is None:
        raise NotReached(f"{without_user(text)}: only {reached()} are reached without Spark")
    return maker(uri)


def is_reached(location: str) -> bool:
    """True if `place_of` gives a place; `UsageError` if the address is wrong."""
    try:
        place_of(location)
    except NotReached:
        return False
    return True


def object_store(location: Location) -> Place | None:
    """The place, if it is in an object store that is reached from here.

    Tasks of a cluster write there themselves. A local folder they may not share, and for HDFS each
    of their Python processes would start a JVM: Spark has its own way to both.
    """
    if isinstance(location, Place):
        return location if isinstance(location.access, S3Access) else None
    text = fspath(location)
    in_store = text.partition("://")[0].lower() in _OBJECT_STORES
    return place_of(text) if in_store and is_reached(text) else None


def is_here(location: str) -> bool:
    """True for a place that driver and tasks reach without Spark: local, or an object store."""
    return is_local(location) or object_store(location) is not None


def reached() -> str:
    """The kinds of places, in words."""
    return "local folders, " + ", ".join(f"{scheme}://" for scheme in _MAKERS)


def _s3_place(uri: re.Match[str]) -> Place:
    bucket, shown = uri["host"], without_user(uri[0])
    if "@" in bucket:
        raise UsageError(
            f"{shown}: keys do not belong into an address; set AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY"
        )
    if not bucket:
        raise UsageError(f"{shown}: names no bucket; write {uri['scheme']}://BUCKET/FOLDER")
    try:
        from pyarrow.fs import S3FileSystem  # noqa: F401  # some builds of pyarrow have none
    except ImportError as error:
        raise NotReached(f"{shown}: this pyarrow is built without S3 ({error})") from error
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
            f"({reason}); set JAVA_HOME, HADOOP_HOME and CLASSPATH=$(hadoop classpath --glob), "
            "or leave it to Spark: --run-on spark"
        )
    return Place(uri[0], uri["path"] or "/", access)


_MAKERS: dict[str, Callable[[re.Match[str]], Place]] = {
    "s3": _s3_place,
    "s3a": _s3_place,
    "hdfs": _hadoop_place,
}

"""An output folder on any file system that Spark's Hadoop supports: hdfs, s3a, abfs, gs.

Exclusive creation is only as strong as the store: HDFS refuses a second writer, but S3 without
conditional writes may accept both. The lock is therefore read back after its creation.
"""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader, RawIOBase
from typing import Any, BinaryIO, Self, cast
from urllib.parse import urlsplit

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from rebalance_core.contracts.packed_files import unreadable_file
from rebalance_core.contracts.paths import without_user
from rebalance_core.model.errors import UsageError
from rebalance_core.spark.failures import OF_SPARK, cause_of
from rebalance_core.spark.spark_versions import arrow_of, context_of, is_condition
from rebalance_core.storage.store_answers import HadoopFailed


@contextmanager
def _os_errors() -> Iterator[None]:
    """Raise `OSError` if Hadoop or Spark cannot read, as a `storage.place.Place` does.

    Raises:
        FileNotFoundError: There is no such file.
        HadoopFailed: The store denies access, throttles or does not answer: any other
            ``IOException``.
        OSError: The name is invalid, or Spark cannot read a file.
    """
    try:
        yield
    except OF_SPARK as error:
        damaged = unreadable_file(str(error))
        reason = without_user(damaged or cause_of(error))
        kinds = set() if damaged else _java_classes(error)
        if kinds & _NOT_FOUND:
            raise FileNotFoundError(errno.ENOENT, reason) from error
        raise (HadoopFailed if "java.io.IOException" in kinds else OSError)(reason) from error


_NOT_FOUND = {"java.io.FileNotFoundException", "java.nio.file.NoSuchFileException"}


def _java_classes(error: Exception) -> set[str]:
    """Return the class of the Java exception behind an error, and its superclasses."""
    exception = getattr(error, "java_exception", None)
    kind: Any = None if exception is None else exception.getClass()
    names = set()
    while kind is not None:
        names.add(str(kind.getName()))
        kind = kind.getSuperclass()
    return names


_READ_BYTES = 1 << 20
"""Bytes per call to the JVM, which costs 0.1 ms and a copy as text."""


class _HadoopFile(RawIOBase):
    """A Hadoop stream as a Python file."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read the next bytes and return their number."""
        with _os_errors():
            read = bytes(self._stream.readNBytes(len(buffer)))
        buffer[: len(read)] = read
        return len(read)

    def close(self) -> None:
        """Close the stream."""
        if not self.closed:
            self._stream.close()
        super().close()


class HadoopPlace:
    """A file or folder that the driver's JVM reaches, with the methods of `storage.place.Place`.

    It requires a session other than Spark Connect.
    """

    def __init__(self, location: str, session: Any) -> None:
        self.url = location.rstrip("/")
        context = context_of(session)
        if context is None:
            raise UsageError(
                f"{self} is reached through Hadoop in the driver's own JVM, which Spark "
                "Connect does not have; name a folder that this host and the executors share, or "
                "s3://"
            )
        jvm: Any = context._jvm
        self._session, self._jvm = session, jvm
        self._path = jvm.org.apache.hadoop.fs.Path(self.url)
        self._files = self._path.getFileSystem(context._jsc.hadoopConfiguration())

    def __str__(self) -> str:
        return without_user(self.url)

    def __truediv__(self, name: str) -> Self:
        """Return the place with this name in the folder."""
        return type(self)(f"{self.url}/{name}", self._session)

    @property
    def path(self) -> str:
        """The path in its file system, without scheme and host."""
        return str(self._path.toUri().getPath())

    @property
    def is_local(self) -> bool:
        """False: local folders are reached without Hadoop."""
        return False

    @property
    def qualified(self) -> str:
        """The URL with the scheme and host that Spark shows."""
        return str(self._files.makeQualified(self._path).toString())

    def sizes(self) -> list[tuple[str, int]]:
        """Return the path below this folder and the size in bytes of every file in it, sorted; none
        if the folder does not exist.

        Raises:
            NotADirectoryError: It is a file.
        """
        with _os_errors():
            if not self._files.exists(self._path):
                return []
            if not self._files.getFileStatus(self._path).isDirectory():
                raise NotADirectoryError(errno.ENOTDIR, "is a file; name the folder", str(self))
            below = len(self.qualified.rstrip("/")) + 1
            listed, found = self._files.listFiles(self._path, True), []
            while listed.hasNext():
                status = listed.next()
                found.append((str(status.getPath().toString())[below:], int(status.getLen())))
            return sorted(found)

    def head(self, size: int) -> bytes:
        """Return the first bytes of a file, up to this number."""
        with self._opened(0) as file:
            return file.read(size) or b""

    def read_bytes(self) -> bytes:
        """Return the bytes of a file."""
        with self.open() as file:
            return file.read()

    def open(self, at: int = 0) -> BinaryIO:
        """Open a file's raw bytes for reading in order, starting at the given byte."""
        return cast("BinaryIO", BufferedReader(self._opened(at), _READ_BYTES))

    def _opened(self, at: int) -> _HadoopFile:
        with _os_errors():
            if not self._files.exists(self._path):
                raise FileNotFoundError(errno.ENOENT, "no such file", str(self))
            stream = self._files.open(self._path)
            stream.seek(at)
            return _HadoopFile(stream)

    def make_folder(self) -> None:
        """Create the folder; a no-op where folders are only prefixes."""
        self._files.mkdirs(self._path)

    def parquet_rows(self) -> int | None:
        """Return the number of rows in the folder's Parquet files, or None if it does not exist."""
        with _os_errors():
            if not self._files.exists(self._path):
                return None
            try:
                return int(self._session.read.parquet(self.url).count())
            except AnalysisException as error:
                if is_condition(error, "UNABLE_TO_INFER_SCHEMA"):
                    return 0
                raise

    def names(self) -> list[str]:
        """Return the names in the folder, empty if it does not exist."""
        with _os_errors():
            if not self._files.exists(self._path):
                return []
            return sorted(entry.getPath().getName() for entry in self._files.listStatus(self._path))

    def read_text(self) -> str | None:
        """Return the text of a small file, or None if it does not exist."""
        with _os_errors():
            if not self._files.exists(self._path):
                return None
            stream = self._files.open(self._path)
            try:
                return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
            finally:
                stream.close()

    def create_text(self, text: str) -> None:
        """Create a small file; `FileExistsError` if it exists."""
        if self._files.exists(self._path):
            raise FileExistsError(self.url)
        try:
            self.write_text(text, overwrite=False)
        except Exception as error:
            if "FileAlreadyExists" in str(error):
                raise FileExistsError(self.url) from error
            raise

    def write_text(self, text: str, *, overwrite: bool = True) -> None:
        """Write a small file, replacing an earlier one."""
        stream = self._files.create(self._path, overwrite)
        try:
            stream.write(bytearray(text.encode("utf-8")))
        finally:
            stream.close()

    def delete(self) -> None:
        """Remove a file or a table."""
        self._files.delete(self._path, True)


def remote_files(location: str, session: SparkSession) -> list[tuple[str, int]] | None:
    """Return the path and size of each file at a location that Spark reads, or None if there is
    none.

    Hidden files are skipped, and no file is read.
    """
    files = session.read.format("binaryFile").option("recursiveFileLookup", True)
    try:
        rows = arrow_of(files.load(location).select("path", "length")).to_pylist()
    except AnalysisException as error:
        if is_condition(error, "PATH_NOT_FOUND"):
            return None
        raise
    return [(urlsplit(row["path"]).path, row["length"]) for row in rows]

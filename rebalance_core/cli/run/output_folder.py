"""The output folder as the lock and the record see it: a place for small files and tables.

A path without a scheme is local, whatever Spark's default file system is; S3 and HDFS are reached
through pyarrow, other places through Hadoop (`spark.tables.hadoop_folder`).
"""

import errno
import os
import shutil
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from rebalance_core.contracts.paths import is_local, is_utf8, local_path
from rebalance_core.model.errors import OutputExists, UsageError
from rebalance_core.storage.place import Place, place_of

SETTLE_SECONDS = 0.5
"""How long a file that was made must stay as it is: longer than a writer takes to look and write.

pyarrow knows no exclusive creation there. Of two writers the last one stays, and the other sees it.
"""


class OutputFolder(Protocol):
    """Small files and whole tables directly in one folder; nothing is ever renamed into place."""

    location: str

    def table_location(self, name: str) -> str:
        """The URI under which Spark writes or reads the table `name`."""

    def make(self) -> None:
        """Create the folder and those above it."""

    def names(self) -> list[str]:
        """What lies in it; nothing if there is no such folder."""

    def read_text(self, name: str) -> str | None:
        """A small file, or None if it is not there."""

    def create_text(self, name: str, text: str) -> None:
        """Create a small file, whole or not at all; `FileExistsError` if it is there."""

    def replace_text(self, name: str, text: str) -> None:
        """Write a small file over an earlier one."""

    def delete(self, name: str) -> None:
        """Remove a file or a table; nothing to do if it is not there."""


def spark_location(location: str) -> str:
    """The location as Spark gets it: local stays local where Spark's default is a cluster's.

    Hadoop decodes no %20, so the scheme is put before the path as it is.
    """
    return f"file://{local_path(location).absolute()}" if is_local(location) else location


class LocalFolder:
    """A folder of this machine, or one mounted here."""

    def __init__(self, location: str) -> None:
        self.location = location
        self.path = local_path(location).absolute()

    def table_location(self, name: str) -> str:
        """The URI of the table `name`."""
        return spark_location(str(self.path / name))

    def make(self) -> None:
        """Create the folder and those above it."""
        self.path.mkdir(parents=True, exist_ok=True)

    def check_makeable(self) -> None:
        """Raise the `OSError` that `make` and the first file would, and touch nothing."""
        there = next(path for path in (self.path, *self.path.parents) if path.exists())
        if not there.is_dir():
            code = errno.EEXIST if there == self.path else errno.ENOTDIR
            raise OSError(code, os.strerror(code), str(there))
        if not os.access(there, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(there))

    def names(self) -> list[str]:
        """What lies in the folder; nothing if there is none."""
        return sorted(entry.name for entry in self.path.iterdir()) if self.path.is_dir() else []

    def read_text(self, name: str) -> str | None:
        """A small file, or None if it is not there."""
        try:
            return (self.path / name).read_text("utf-8")
        except (FileNotFoundError, NotADirectoryError):
            return None

    def create_text(self, name: str, text: str) -> None:
        """Create a small file, whole or not at all; `FileExistsError` if it is there."""
        with self._written_aside(name, text) as whole:
            try:
                os.link(whole, self.path / name)
            except FileExistsError:
                raise
            except OSError:
                # Some mounts know no links: exclusive still, though a crash could leave half a file
                with (self.path / name).open("x", encoding="utf-8") as file:
                    file.write(text)

    def replace_text(self, name: str, text: str) -> None:
        """Write a small file over an earlier one, whole at every moment."""
        with self._written_aside(name, text) as whole:
            whole.replace(self.path / name)

    def delete(self, name: str) -> None:
        """Remove a file or a table."""
        target = self.path / name
        if target.is_dir() and not target.is_symlink():
            shutil.rmtree(target)
        else:
            target.unlink(missing_ok=True)

    @contextmanager
    def _written_aside(self, name: str, text: str) -> Iterator[Path]:
        """A file that is gone in the end, on a full disk and after a signal too."""
        aside = self.path / f".{name}.{uuid.uuid4().hex}"
        try:
            with aside.open("x", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            yield aside
        finally:
            aside.unlink(missing_ok=True)


class StoreFolder:
    """Small files and tables under a place that is not local."""

    def __init__(self, place: Place) -> None:
        self.location = place.url
        self.place = place

    def table_location(self, name: str) -> str:
        """The URI of the table `name`."""
        return f"{self.location}/{name}"

    def make(self) -> None:
        """Create the folder; nothing to do where folders are only prefixes."""
        self.place.make_folder()

    def names(self) -> list[str]:
        """What lies in the folder; nothing if there is none."""
        return self.place.names()

    def read_text(self, name: str) -> str | None:
        """A small file, or None if it is not there."""
        return (self.place / name).read_text()

    def create_text(self, name: str, text: str) -> None:
        """Create a small file; `FileExistsError` if it is there, or another writer was later."""
        file = self.place / name
        if file.read_text() is not None:
            raise FileExistsError(file.url)
        file.write_text(text)
        time.sleep(SETTLE_SECONDS)
        if file.read_text() != text:
            raise FileExistsError(file.url)

    def replace_text(self, name: str, text: str) -> None:
        """Write a small file over an earlier one."""
        (self.place / name).write_text(text)

    def delete(self, name: str) -> None:
        """Remove a file or a table."""
        (self.place / name).delete()


def folder_here(location: str) -> LocalFolder | StoreFolder:
    """The folder at a place that this process reaches.

    Raises:
        UsageError: it does not, or the path is not UTF-8.
    """
    if is_local(location) and not is_utf8(local_path(location).absolute()):
        raise UsageError(f"--output {location}: the folder it is in is not UTF-8; name another")
    place = place_of(location)
    return LocalFolder(location) if place.is_local else StoreFolder(place)


# A run must not overwrite what it reads.

READ = (
    "input",
    "events",
    "consumer_groups",
    "queue_offsets",
    "committed_offsets",
    "queue_rates",
    "previous",
    "propagation",
)
"""Options that may name tables which a job of ours wrote; a collection is nobody's output."""


def refuse_own_input(folder: OutputFolder, options: object) -> None:
    """Raise `OutputExists` if --overwrite would remove what another option names.

    Args:
        folder: the output.
        options: of the job.
    """
    if not getattr(options, "overwrite", False):
        return
    for name in READ:
        given = getattr(options, name, None)
        if given and _is_within(given, folder.location):
            option = "--" + name.replace("_", "-")
            raise OutputExists(
                f"{option} {given} is in --output {folder.location}, which --overwrite would "
                "remove; name another --output"
            )


def _is_within(inner: str, outer: str) -> bool:
    if is_local(inner) != is_local(outer):
        return False
    if is_local(inner):
        # realpath, as resolve fails on links that name each other
        real_inner, real_outer = (Path(os.path.realpath(local_path(p))) for p in (inner, outer))
        return real_inner.is_relative_to(real_outer)
    return f"{_plain(inner)}/".startswith(f"{_plain(outer)}/")


def _plain(location: str) -> str:
    return location.rstrip("/").replace("s3a://", "s3://", 1)

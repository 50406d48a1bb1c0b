"""Files that a run reads byte by byte, wherever they lie."""

from __future__ import annotations

from typing import BinaryIO, Protocol, Self


class FileToRead(Protocol):
    """A file: a `storage.place.Place`, or bytes that Spark read; methods raise `OSError`."""

    def open(self, at: int = 0) -> BinaryIO:
        """Open the bytes as they are, for reading in order from a byte on."""

    def read_bytes(self) -> bytes:
        """Return all bytes."""


class FolderToRead(FileToRead, Protocol):
    """A folder or a file in it: a `storage.place.Place`, or a folder that only Spark reaches."""

    @property
    def url(self) -> str:
        """The folder as operators name it."""

    @property
    def path(self) -> str:
        """The path in its file system."""

    @property
    def is_local(self) -> bool:
        """True on a file system of this machine."""

    def __truediv__(self, name: str) -> Self: ...

    def __str__(self) -> str:
        """Return `url` as messages show it, without a password."""

    def head(self, size: int) -> bytes:
        """Return the first bytes of the file, up to this number."""

    def sizes(self) -> list[tuple[str, int]]:
        """Return path below this folder and bytes of every file in it, sorted."""

"""Files that a run reads byte by byte, wherever they are stored."""

from __future__ import annotations

from typing import BinaryIO, Protocol, Self


class FileToRead(Protocol):
    """A file: a `storage.place.Place`, or bytes that Spark read; methods raise `OSError`."""

    def open(self, at: int = 0) -> BinaryIO:
        """Open the raw bytes for sequential reading, from a given byte on."""

    def read_bytes(self) -> bytes:
        """Return all bytes."""


class FolderToRead(FileToRead, Protocol):
    """A folder or a file in it: a `storage.place.Place`, or a folder that only Spark can reach."""

    @property
    def url(self) -> str:
        """The folder as operators name it."""

    @property
    def path(self) -> str:
        """The path within its file system."""

    @property
    def is_local(self) -> bool:
        """True on a file system of this machine."""

    def __truediv__(self, name: str) -> Self: ...

    def __str__(self) -> str:
        """Return `url` as messages show it, without a password."""

    def head(self, size: int) -> bytes:
        """Return up to this number of bytes from the start of the file."""

    def sizes(self) -> list[tuple[str, int]]:
        """Return the relative path and size in bytes of every file in this folder, sorted."""

"""A file or a folder, wherever it is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rebalance_core.storage.access import Access, LocalAccess, S3Access, opened

if TYPE_CHECKING:
    from pyarrow import fs


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

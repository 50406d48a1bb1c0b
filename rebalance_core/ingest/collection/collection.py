"""A folder of files that operators collected: what is in it, how logs were rotated, what is
refused of it.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from rebalance_core.contracts.paths import refuse_no_folder
from rebalance_core.ingest.collection.collected_file import (
    OLDER,
    PROXIES,
    CollectedFile,
    asked_at,
    identify,
    is_answer,
    is_other,
    with_newest,
)
from rebalance_core.ingest.collection.collection_settings import (
    SETTINGS_NAME,
    CollectionSettings,
    read_settings,
)
from rebalance_core.ingest.fact import Unread
from rebalance_core.model.errors import InputRefused

# The pieces that one log was rotated into, in the order they were written.

_TIME = re.compile(rb"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:[,.]\d{3})?", re.MULTILINE)
_INDEX = re.compile(r"[.-](\d{1,4})\.log(?:\.gz)?$|\.log\.(\d{1,4})(?:\.gz)?$")
_GZIP = 31  # zlib: a gzip header, 32 KB window
_UNPACKED = 64 * 1024


def first_time(file: CollectedFile, head: bytes) -> str:
    """The first time in a log, as it is written there; empty if its first bytes hold none.

    Args:
        file: the log.
        head: its first bytes, compressed if the file is.
    """
    if file.gzipped:
        try:
            head = zlib.decompressobj(wbits=_GZIP).decompress(head, _UNPACKED)
        except zlib.error:
            return ""
    found = _TIME.search(head)
    return found[0].decode() if found else ""


def with_turns(
    files: Iterable[CollectedFile], begins: Mapping[str, str]
) -> tuple[CollectedFile, ...]:
    """The files, each log with its turn among those of its kind and place, by their first times.

    Those that begin in one second are taken as RocketMQ numbers them: 1 is the last one rotated.

    Args:
        files: of a collection.
        begins: `first_time` of each log, by name.
    """
    files = tuple(files)
    turns: dict[str, int] = {}
    count: dict[tuple[str, str], int] = {}
    logs = [file for file in files if file.is_log]
    for file in sorted(logs, key=lambda f: (begins.get(f.name, ""), -_index(f.name), f.name)):
        of_place = (file.kind, file.place)
        turns[file.name] = count.get(of_place, 0)
        count[of_place] = turns[file.name] + 1
    return tuple(replace(file, turn=turns.get(file.name, 0)) for file in files)


def _index(name: str) -> int:
    """The number that a rotation gave the file; 0 of the one that is written to.

    >>> _index("broker.12.log.gz"), _index("rocketmq_client.log.3"), _index("broker.log")
    (12, 3, 0)
    """
    found = _INDEX.search(name)
    return int(found[1] or found[2]) if found else 0


# A folder of files that operators collected: what is in it, and what is refused of it.

DOCUMENT_LIMIT = 64 * 1024**2
"""Bytes of a store or dump; the largest real ones, of 100,000 topics, have some 30 MB."""
GZIP_LIMIT = 512 * 1024**2
"""Bytes of a compressed log: rotated ones hold 64 to 1024 MB, a tenth of it compressed."""
_SNIFFED = 4096
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True)
class Collection:
    """The files to read, in order of their names, and what was refused before reading."""

    root: Path
    settings: CollectionSettings
    files: tuple[CollectedFile, ...]
    refused: tuple[Unread, ...]

    @cached_property
    def broker_folders(self) -> tuple[str, ...]:
        """Names of the folders of brokers' files."""
        places = {file.place for file in self.files if file.name.startswith("brokers/")}
        return tuple(sorted(places))

    @cached_property
    def brokers(self) -> tuple[str, ...]:
        """What dumps may call a broker: names of folders, and of the brokers expected."""
        return tuple(sorted({*self.broker_folders, *self.settings.brokers}))

    def path_of(self, file: CollectedFile) -> Path:
        """Where the file lies."""
        return self.root / file.name


def open_collection(folder: Path) -> Collection:
    """List a collection; reads ``collection.toml`` and the first bytes of each file.

    Symbolic links that leave the folder, what is no plain file, what cannot be opened, binaries and
    files above the limits are refused by name; the rest is read.

    Raises:
        InputRefused: no such folder, no or a wrong ``collection.toml``, or nothing to read.
    """
    refuse_no_folder("--collection", folder)
    root = folder.resolve()
    settings = read_settings(root)
    files: list[CollectedFile] = []
    refused: list[Unread] = []
    seen: set[Path] = set()
    begins: dict[str, str] = {}
    names = set(_names(root, refused))
    for name in sorted(names):
        if name.endswith(OLDER) and name.removesuffix(OLDER) in names:
            continue
        entry = _identified(root, name, seen, begins)
        if isinstance(entry, CollectedFile):
            files.append(entry)
        elif entry is not None:
            refused.append(entry)
    if not files:
        raise InputRefused(
            f"--collection {folder}: nothing to read beside {SETTINGS_NAME}; expected namesrv/, "
            "brokers/<name>/, proxy/<name>/, clients/<name>/ or mqadmin/ (docs/ingest.md)"
        )
    folders = {f.place.removeprefix(PROXIES) for f in files if f.name.startswith(PROXIES)}
    proxies = {*folders, *settings.proxies}
    files = [asked_at(file, proxies) for file in with_newest(files)]
    return Collection(root, settings, with_turns(files, begins), tuple(refused))


def _names(root: Path, refused: list[Unread]) -> Iterator[str]:

    def unlisted(error: OSError) -> None:
        name = Path(error.filename).relative_to(root).as_posix()
        why = f"cannot be opened: {error.strerror}; nothing below it is read"
        refused.append(_refuse(name, "UNREADABLE_FILE", why))

    for folder, folders, files in os.walk(root, onerror=unlisted):
        inside = Path(folder).relative_to(root)
        links = [name for name in folders if (Path(folder) / name).is_symlink()]
        folders[:] = sorted(set(folders) - set(links))
        for name in (*files, *links):
            yield (inside / name).as_posix()


def _identified(
    root: Path, name: str, seen: set[Path], begins: dict[str, str]
) -> CollectedFile | Unread | None:
    """The file; `seen` and `begins` get its path and, of a log, its first time."""
    if is_answer(name):
        return None
    path = root / name
    if not name.isprintable():
        return _refuse(name, "BAD_NAME", "its name holds control or undecodable characters")
    try:
        real = path.resolve()
        if not real.is_relative_to(root):
            why = "is a link that leaves the collection; not read"
            return _refuse(name, "LEAVES_COLLECTION", why)
        status = real.stat()
        if stat.S_ISDIR(status.st_mode) or real in seen:
            return None  # a link inside: what it names is read where it lies
        if not stat.S_ISREG(status.st_mode):
            return _refuse(name, "NO_PLAIN_FILE", "is no plain file (pipe, socket or device)")
        with real.open("rb") as opened:
            head = opened.read(_SNIFFED)
    except OSError as error:
        return _refuse(name, "UNREADABLE_FILE", f"cannot be opened: {error.strerror or error}")
    except RuntimeError:  # Python before 3.13, of links that name each other
        return _refuse(name, "UNREADABLE_FILE", f"cannot be opened: {os.strerror(errno.ELOOP)}")
    file = identify(name, status.st_size)
    if file is None:
        return None if is_other(name) else _refuse(name, "UNKNOWN_FILE", "is no file of the layout")
    seen.add(real)
    if file.is_log:
        begins[name] = first_time(file, head)
    return _refusal_of_content(file, head) or file


def _refusal_of_content(file: CollectedFile, head: bytes) -> Unread | None:
    if file.gzipped:
        if not head.startswith(b"\x1f\x8b"):
            return _refuse(file.name, "WRONG_FILE", "is named .gz and is not compressed by gzip")
        if file.size > GZIP_LIMIT:
            return _refuse(file.name, "TOO_LARGE", f"has {file.size} bytes; unpack it first")
        return None
    if head.startswith(_UTF_16):
        return _refuse(file.name, "BINARY", "is UTF-16, as PowerShell's > writes: save it as UTF-8")
    if b"\x00" in head or head.startswith(b"\x1f\x8b"):
        return _refuse(file.name, "BINARY", "holds binary data where text is expected")
    if not file.is_log and file.size > DOCUMENT_LIMIT:
        return _refuse(file.name, "TOO_LARGE", f"has {file.size} bytes, no such document has")
    return None


def _refuse(name: str, code: str, message: str) -> Unread:
    shown = name.encode("utf-8", "backslashreplace").decode()
    return Unread(shown, shown, code, f"{shown!r} {message}")

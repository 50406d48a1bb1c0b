"""Which paths are of this machine, what travels with the package, and names in a run's folder."""

from __future__ import annotations

import re
import stat
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import unquote

from rebalance_core.model.errors import InputRefused

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

# Paths and URIs: which of them are of this machine.

SHARE_IT = (
    "a local folder must be one that this host, the executors and a Connect server share; else "
    "name a store"
)

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
_USER = re.compile(r"(?<=://)[^/@\s]+(?=@)")


def is_local(location: str) -> bool:
    """Return True for a path and for a ``file:`` URI."""
    return _SCHEME.match(location) is None or location.lower().startswith("file:")


def local_path(location: str) -> Path:
    """Return the path of a local location."""
    if location.lower().startswith("file:"):
        return Path(location[len("file:") :].removeprefix("//"))
    return Path(location)


def is_utf8(path: str | Path) -> bool:
    """Return False for a name whose bytes Python could not decode: no table can hold it."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def hidden(name: str) -> bool:
    """Return True for names that Spark skips (InMemoryFileIndex.shouldFilterOutPathName)."""
    if name.startswith(("_common_metadata", "_metadata")):
        return False
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def without_user(text: str) -> str:
    """Return the text with ``user:password`` replaced in every address."""
    return _USER.sub("***", text)


def special_file(mode: int) -> str | None:
    """Return what a file is that may have no end or no bytes; None: a plain file or a folder.

    Args:
        mode: Its ``st_mode``.
    """
    kinds = {
        stat.S_ISFIFO: "a pipe",
        stat.S_ISSOCK: "a socket",
        stat.S_ISCHR: "a device",
        stat.S_ISBLK: "a device",
    }
    return next((name for is_kind, name in kinds.items() if is_kind(mode)), None)


def refuse_no_folder(option: str, folder: Path) -> None:
    """Raise `InputRefused` unless a folder is there that this user may list.

    Args:
        option: whose value it is, for the message.
        folder: a local path.
    """
    try:
        next(folder.iterdir(), None)
    except FileNotFoundError as error:
        raise InputRefused(f"{option} {folder}: no such folder") from error
    except NotADirectoryError as error:
        raise InputRefused(f"{option} {folder} is a file; name the folder it is in") from error
    except OSError as error:
        raise InputRefused(f"{option} {folder} cannot be read: {error.strerror}") from error


# What travels with the package: example scenarios and producer models, the demo, the collector.


def bundled(kind: str) -> dict[str, Traversable]:
    """Return the bundled files of a kind by name, ``.toml`` left out; in order.

    Args:
        kind: a folder of ``rebalance_core/bundled``: scenarios, rollouts or producers.
    """
    from importlib.resources import files  # takes a while, and --help needs none

    entries = (files("rebalance_core") / "bundled" / kind).iterdir()
    return {
        entry.name.removesuffix(".toml"): entry for entry in sorted(entries, key=lambda f: f.name)
    }


# A file that cannot be read to its end, in words: Spark's own message is a page of Java.

CODECS = {
    ".gz": "gzip",
    ".bz2": "bzip2",
    ".zst": "zstd",
    ".lz4": "lz4",
    ".snappy": "snappy",
    ".deflate": "deflate",
}
"""Hadoop's codecs, by the suffix that chooses them."""
MAGIC = {".gz": b"\x1f\x8b", ".bz2": b"BZh"}
"""First bytes: RFC 1952; bzip2. Hadoop reads an empty .gz, and a .bz2 that is none, as no rows."""

# Spark's error condition FAILED_READ_FILE, whatever its sub-condition; 3.5 has no name for it.
_FILE = re.compile(r"Encountered error while reading file (?P<uri>\S+?)\.(?:\s|$)")
_CAUSE = re.compile(
    r"^\s*Caused by: (?:[\w$]+\.)*(?P<kind>[\w$]+)(?:: (?P<said>.*))?$", re.MULTILINE
)
_END = re.compile(r"EOFException|unexpected end of", re.IGNORECASE)


def wrong_head(name: str, head: bytes) -> str | None:
    """Return what a packed file's first bytes show to be wrong; None: they show nothing.

    >>> wrong_head("a.csv.gz", b""), wrong_head("a.csv.gz", b"cluster,"), wrong_head("a.csv", b"")
    ('truncated gzip', 'not a gzip', None)
    """
    suffix = _suffix(name)
    magic = MAGIC.get(suffix, b"")
    if head[: len(magic)] == magic:
        return None
    return f"{'truncated' if magic.startswith(head) else 'not a'} {CODECS[suffix]}"


def unreadable_file(text: str) -> str | None:
    """Return a line on the file that an exception of Spark is about; None if it is about none."""
    match = _FILE.search(text)
    if match is None:
        return None
    file = unquote(match["uri"]).removeprefix("file://")
    causes = list(_CAUSE.finditer(text))
    kind, said = (causes[-1]["kind"], causes[-1]["said"] or "") if causes else ("", "")
    cause = said or kind or "Spark gives no reason"
    codec = CODECS.get(_suffix(file))
    if _END.search(f"{kind} {said}"):
        return f"{file} cannot be read: truncated {codec or 'file'}"
    if codec is None:
        return f"{file} cannot be read: {cause}"
    if said == f"not a {codec} file":
        return f"{file} cannot be read: not a {codec}"
    return f"{file} cannot be read: damaged {codec} ({cause})"


def _suffix(name: str) -> str:
    return PurePosixPath(name).suffix


# Names in the folder of a run, beside its tables.

STATE = "state"
"""Below a run: the opening state of a later one. Of a simulation the input tables that it used; of
an ingest or audit what the files of its collection stated."""
INGESTED = "ingested"
"""Below an audit of a collection: the input tables that it made."""
STATE_FOLDERS = (STATE, INGESTED)
RUN_NAME = "_run.json"  # written last, by the job: a folder without it is not a result
LOCK_NAME = "_lock.json"
"""A run is writing there; without `RUN_NAME` beside it, a run may have died there."""
ATTEMPTS = "_attempts"
"""Folder in the output for the files of tasks; gone when a run ends."""
STATUS_OK = "OK"
STATUS_FAILED = "FAILED"

"""Paths and URIs: which ones are on this machine, and what they name."""

from __future__ import annotations

import re
import stat
from pathlib import Path

from rebalance_core.model.errors import InputRefused

SHARE_IT = (
    "this host, the executors and any Connect server must share a local folder; otherwise name a "
    "store"
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
    """Return False for a name whose bytes Python could not decode, which no table can hold."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def hidden(name: str) -> bool:
    """Return True for names that Spark skips (InMemoryFileIndex.shouldFilterOutPathName)."""
    if name.startswith(("_common_metadata", "_metadata")):
        return False
    underscored = name.startswith("_") and "=" not in name
    return underscored or name.startswith(".") or name.endswith("._COPYING_")


def without_user(text: str) -> str:
    """Return the text with ``user:password`` replaced in every address."""
    return _USER.sub("***", text)


def special_file(mode: int) -> str | None:
    """Return the kind of a file that may have no end or no bytes; None for a plain file or a
    folder.

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
    """Raise `InputRefused` unless the folder exists and this user may list it.

    Args:
        option: the option whose value it is, for the message.
        folder: a local path.
    """
    try:
        next(folder.iterdir(), None)
    except FileNotFoundError as error:
        raise InputRefused(f"{option} {folder}: no such folder") from error
    except NotADirectoryError as error:
        raise InputRefused(
            f"{option} {folder} is a file; name the folder that contains it"
        ) from error
    except OSError as error:
        raise InputRefused(f"{option} {folder} cannot be read: {error.strerror}") from error

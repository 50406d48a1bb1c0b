"""Paths and URIs: which of them are of this machine."""

import re
from pathlib import Path

from rebalance_core.model.errors import InputRefused

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
_USER = re.compile(r"(?<=://)[^/@\s]+(?=@)")


def is_local(location: str) -> bool:
    """True for a path and for a ``file:`` URI."""
    return _SCHEME.match(location) is None or location.lower().startswith("file:")


def local_path(location: str) -> Path:
    """The path of a local location."""
    if location.lower().startswith("file:"):
        return Path(location[len("file:") :].removeprefix("//"))
    return Path(location)


def is_utf8(path: str | Path) -> bool:
    """False for a name whose bytes Python could not decode: no table or record can hold it."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def without_user(text: str) -> str:
    """The text with ``user:password`` replaced in every address."""
    return _USER.sub("***", text)


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
        raise InputRefused(f"{option} {folder}: a file; name the folder it is in") from error
    except OSError as error:
        raise InputRefused(f"{option} {folder} cannot be read: {error.strerror}") from error

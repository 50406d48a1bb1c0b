"""Paths and URIs: which of them are of this machine."""

import re
from pathlib import Path

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


def without_user(text: str) -> str:
    """The text with ``user:password`` replaced in every address."""
    return _USER.sub("***", text)

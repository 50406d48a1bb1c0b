"""Files read by change gates: checks before a run whether it may write one."""

import os
from pathlib import Path

from rebalance_core.model.errors import OutputExists, UsageError

_HEAD = 1_000
"""Number of characters searched for an earlier run's mark."""


def refuse_unwritable(
    option: str, path: str | None, mark: str | None = None, job: str = "audit"
) -> None:
    """Raise the error that writing an option's file would raise.

    Args:
        option: the option that names the file.
        path: the file; None if none is written.
        mark: a string at the beginning of files that may be replaced; None if no file may be.
        job: the job that writes that mark.

    Raises:
        UsageError: The folder does not exist.
        OutputExists: The file already exists.
    """
    if path is None:
        return
    file = Path(path)
    if file.is_dir():
        raise UsageError(f"{option} {path}: is a folder")
    if file.exists() and mark is None:
        raise OutputExists(f"{option} {path}: the file exists already")
    if mark is not None and file.exists() and not _has_mark(file, mark):
        raise OutputExists(f"{option} {path}: {job} did not write this file; name another file")
    folder = file.absolute().parent
    if not folder.is_dir():
        raise UsageError(f"{option} {path}: no such folder")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f"{option} {path}: Permission denied")


def _has_mark(file: Path, mark: str) -> bool:
    with file.open(encoding="utf-8", errors="replace") as opened:
        return mark in opened.read(_HEAD)

"""The folder of `night`: for one run at a time, with a subfolder and a record for each night.

``RUNS/nights/<time>/`` holds `NIGHT_RECORD`, ``collection/`` and ``audit/``. Only a folder whose
record names it is a night, and only nights are ever removed.
"""

from __future__ import annotations

import fcntl
import json
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from rebalance_core.cli.run.output_run import BESIDE_TABLES
from rebalance_core.contracts import ALL_TABLES
from rebalance_core.contracts.run_names import (
    ATTEMPTS,
    LOCK_NAME,
    RUN_NAME,
    STATE,
    STATUS_FAILED,
    STATUS_OK,
)
from rebalance_core.ingest.collection_settings import SETTINGS_NAME
from rebalance_core.model.errors import InputRefused, OutputExists, UsageError
from rebalance_core.storage.access import LocalAccess
from rebalance_core.storage.place import LocalPlace, place_of
from rebalance_core.storage.run_folder import find_run
from rebalance_core.storage.store_answers import reason_of
from rebalance_core.version import LIBRARY_VERSION

NIGHTS, HISTORY = "nights", "history"
"""Folders below ``--runs``."""
COLLECTION_FOLDER, AUDIT_FOLDER = "collection", "audit"
"""Folders of a night."""
NIGHT_RECORD = "_night.json"
HELD_NAME = ".lock"
STARTED = "STARTED"
"""Status of a night that is running or whose process died; others end as `STATUS_OK` or
`STATUS_FAILED`.
"""
_OF_NIGHT = {NIGHT_RECORD, COLLECTION_FOLDER, AUDIT_FOLDER}
_OF_AUDIT = {*ALL_TABLES, *BESIDE_TABLES["audit"], RUN_NAME, LOCK_NAME, ATTEMPTS}
_FORMAT = "%Y-%m-%dT%H%M%SZ"
_NAME = re.compile(r"\d{4}-\d\d-\d\dT\d{6}Z", re.ASCII)


@dataclass(frozen=True)
class NightRecord:
    """The content of `NIGHT_RECORD`.

    Attributes:
        night: name of the folder, which is the time at which the run began.
        status: `STARTED`, ``OK`` or ``FAILED``.
        exit_code: the run's exit code; None if it has not ended.
        error: why the run failed.
        job: marks the file as this job's.
        library_version: the version that wrote it.
    """

    night: str
    status: str
    exit_code: int | None = None
    error: str | None = None
    job: str = "night"
    library_version: str = LIBRARY_VERSION


@dataclass(frozen=True)
class Night:
    """A night: its folder and its record."""

    folder: Path
    record: NightRecord

    @property
    def name(self) -> str:
        """Return the time at which the run began, UTC."""
        return self.folder.name

    @property
    def began(self) -> datetime:
        """Return the time in the name."""
        return datetime.strptime(self.name, _FORMAT).replace(tzinfo=UTC)

    @property
    def collection(self) -> Path:
        """Return the folder of the collection."""
        return self.folder / COLLECTION_FOLDER

    @property
    def audit(self) -> Path:
        """Return the output folder of the audit."""
        return self.folder / AUDIT_FOLDER

    def has_verdict(self) -> bool:
        """Return True if the audit finished."""
        try:
            run = find_run(place_of(str(self.audit)))
        except InputRefused:
            return False
        return run is not None and run["status"] == STATUS_OK

    def written(self, status: str, exit_code: int | None = None, error: str | None = None) -> Night:
        """Write the night's record and return it."""
        record = replace(self.record, status=status, exit_code=exit_code, error=error)
        text = json.dumps(asdict(record), indent=2, ensure_ascii=False) + "\n"
        place_of(str(self.folder / NIGHT_RECORD)).write_text(text)
        return replace(self, record=record)

    def remove_collection(self) -> None:
        """Remove the collection."""
        if self.collection.is_dir():
            shutil.rmtree(self.collection)

    def remove_half_written(self) -> None:
        """Remove an unfinished collection and audit."""
        if not (self.collection / SETTINGS_NAME).is_file():
            self.remove_collection()
        if self.audit.is_dir() and not self.has_verdict() and not self.strangers():
            shutil.rmtree(self.audit)

    def remove_state(self) -> None:
        """Remove the evidence from which a later night could begin, because later nights have their
        own.
        """
        state = self.audit / STATE
        if state.is_dir() and not state.is_symlink():
            shutil.rmtree(state)

    def remove(self) -> None:
        """Remove the night, deleting its record last.

        Raises:
            OSError: nothing is removed because the folder contains files that no night writes.
        """
        if strangers := self.strangers():
            raise OSError(
                f"{', '.join(strangers[:3])} does not come from a night; move it elsewhere"
            )
        self.remove_collection()
        if self.audit.is_dir():
            shutil.rmtree(self.audit)
        (self.folder / NIGHT_RECORD).unlink()
        self.folder.rmdir()

    def strangers(self) -> list[str]:
        """Return files outside the collection that no night writes."""
        found = []
        for folder, ours in ((self.folder, _OF_NIGHT), (self.audit, _OF_AUDIT)):
            place = LocalPlace(str(folder), str(folder), LocalAccess())
            place.delete_leftovers(ours)
            found += [str(folder / name) for name in place.names() if name not in ours]
        return found


class NightFolders:
    """The nights below ``--runs``."""

    def __init__(self, runs: Path) -> None:
        self.runs = runs
        self.history = runs / HISTORY
        self.nights = runs / NIGHTS

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep all other runs out of the folder; the system releases it when this process ends.

        Raises:
            OutputExists: another run is in it.
            UsageError: the folder cannot be created or written.
        """
        with ExitStack() as stack:
            try:
                self.nights.mkdir(parents=True, exist_ok=True)
                file = stack.enter_context((self.runs / HELD_NAME).open("a", encoding="utf-8"))
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise OutputExists(
                    f"--runs {self.runs}: another night is still running; wait until it ends"
                ) from error
            except OSError as error:
                raise UsageError(
                    f"--runs {self.runs} cannot be written: {reason_of(error)}"
                ) from error
            yield

    def all(self) -> list[Night]:
        """Return the nights, oldest first."""
        if not self.nights.is_dir():
            return []
        nights = (
            _night(self.nights / name)
            for name in sorted(path.name for path in self.nights.iterdir())
        )
        return [night for night in nights if night is not None]

    def begin(self) -> Night:
        """Return a new night, on disk."""
        while True:
            folder = self.nights / datetime.now(UTC).strftime(_FORMAT)
            try:
                folder.mkdir()
            except FileExistsError:  # a night is named by its second
                time.sleep(0.1)
                continue
            return Night(folder, NightRecord(folder.name, STARTED)).written(STARTED)

    def unfinished(self) -> list[Night]:
        """Return the nights whose process died, while this run holds the folder."""
        return [night for night in self.all() if night.record.status == STARTED]

    def older_than(self, days: int, now: datetime) -> list[Night]:
        """Return the nights that began more than this many days ago."""
        return [night for night in self.all() if now - night.began > timedelta(days=days)]


def _night(folder: Path) -> Night | None:
    """Return the night in a folder, or None if the folder is not a night."""
    if not _NAME.fullmatch(folder.name) or folder.is_symlink():
        return None
    try:
        content: Any = json.loads((folder / NIGHT_RECORD).read_text("utf-8"))
        known = {field.name: content[field.name] for field in fields(NightRecord)}
        night = Night(folder, NightRecord(**known))
        _ = night.began
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
    ours = night.record.job == "night" and night.record.night == folder.name
    return night if ours and night.record.status in (STARTED, STATUS_OK, STATUS_FAILED) else None

"""The output folder of a run, for small files and tables; only one run at a time may lock it.

A path without a scheme is local, regardless of Spark's default file system. S3 and HDFS are reached
through pyarrow (`storage.place`), other places through Hadoop (`spark.hadoop_folder`). Files that
no run of this project wrote are never overwritten.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import uuid
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Self

from rebalance_core.contracts.paths import is_local, is_utf8, local_path
from rebalance_core.contracts.run_names import LOCK_NAME
from rebalance_core.model.errors import OutputExists, UsageError
from rebalance_core.storage.place import Place, place_of

if TYPE_CHECKING:
    from rebalance_core.spark.hadoop_folder import HadoopPlace

    OutputFolder = Place | HadoopPlace


def spark_location(location: str) -> str:
    """Return the location for Spark; a local one stays local even if Spark defaults to a cluster's.

    Hadoop does not decode %20, so the scheme is prepended to the path as it is.
    """
    return f"file://{local_path(location).absolute()}" if is_local(location) else location


def typed_place(location: str) -> Place:
    """Return the folder at a place that this process can reach, with its ``url`` as typed.

    Raises:
        UsageError: the process cannot reach it, or the path is not UTF-8.
    """
    if is_local(location) and not is_utf8(local_path(location).absolute()):
        raise UsageError(
            f"--output {location}: the parent folder's name is not UTF-8; name another"
        )
    place = place_of(location)
    return replace(place, url=location) if place.is_local else place


READ = (
    "input",
    "events",
    "consumer_groups",
    "queue_offsets",
    "committed_offsets",
    "queue_rates",
    "arrivals",
    "capacity",
    "state",
    "previous",
    "propagation",
    "runs",
    "collection",
)
"""Options that name the folders and files that a job reads."""


def refuse_own_input(folder: OutputFolder, options: object) -> None:
    """Raise `OutputExists` if the output is an input, is inside an input, or contains one.

    Otherwise a run could replace its input, or a later run could read this output as input.

    Args:
        folder: the output.
        options: the job's options.
    """
    for name in READ:
        location = getattr(options, name, None)
        if not location:
            continue
        option = "--" + name.replace("_", "-")
        for place in (location, *_matches(location)):
            if _is_within(place, folder.url):
                would = " which --overwrite would remove;" if _overwrites(options) else ""
                raise OutputExists(
                    f"{option} {place} is in --output {folder.url},{would} name another --output"
                )
            if _is_within(folder.url, place):
                raise OutputExists(
                    f"--output {folder.url} is in {option} {place}; name a folder outside it"
                )


def _overwrites(options: object) -> bool:
    return bool(getattr(options, "overwrite", False))


def _matches(location: str) -> list[str]:
    """Return the files and folders of a local pattern; empty for a plain path."""
    if not is_local(location) or not any(sign in location for sign in "*?["):
        return []
    return glob(str(local_path(location)))  # noqa: PTH207  # absolute patterns


def _is_within(inner: str, outer: str) -> bool:
    if is_local(inner) != is_local(outer):
        return False
    if is_local(inner):
        # realpath, because resolve fails on links that form a cycle
        real_inner, real_outer = (Path(os.path.realpath(local_path(p))) for p in (inner, outer))
        return real_inner.is_relative_to(real_outer)
    return f"{_plain(inner)}/".startswith(f"{_plain(outer)}/")


def _plain(location: str) -> str:
    return location.rstrip("/").replace("s3a://", "s3://", 1)


BREAKING_NAME = "_lock_breaking.json"
STALE_AFTER = timedelta(minutes=10)
HEARTBEAT_SECONDS = 30.0
_START_TICKS = 18
"""Index of starttime, field 22 in proc(5), in /proc/PID/stat after the state."""
_GONE = ("Z", "X")
"""States of a process that has ended but was not waited for."""


@dataclass(frozen=True)
class LockHolder:
    """The content of ``_lock.json``; times are ISO 8601, UTC.

    ``process`` distinguishes the process from any other with the same number, now or after a
    restart, here or in another container with the same host name; None if the system does not show
    it.
    """

    host: str
    pid: int
    started_at: str
    heartbeat: str
    token: str
    process: str | None = None

    def __str__(self) -> str:
        return (
            f"process {self.pid} on {self.host}, started {self.started_at}, "
            f"last heartbeat {self.heartbeat}"
        )

    def is_dead(self, now: datetime) -> bool:
        """Return True 10 minutes after the last heartbeat, or at once if its local process is
        gone.
        """
        if now - datetime.fromisoformat(self.heartbeat) > STALE_AFTER:
            return True
        return self.host == socket.gethostname() and not _process_lives(self.pid)

    def is_surely_dead(self) -> bool:
        """Return True if the process ran on this system and is gone, so that a retry may
        continue.
        """
        if self.host != socket.gethostname() or self.process is None:
            return False
        if self.process.rpartition(" ")[0] != _system():
            return False
        now = _process(self.pid)  # None also if it is hidden because another user owns it
        return now != self.process if now is not None else not _process_lives(self.pid)


def read_lock(folder: OutputFolder) -> LockHolder | None:
    """Return the holder of the folder, or None.

    Raises:
        OutputExists: the lock was not written by this library.
    """
    try:
        text = (folder / LOCK_NAME).read_text()
        if text is None:
            return None
        holder = LockHolder(**json.loads(text))
        _ = holder.is_dead(datetime.now(UTC)), holder.is_surely_dead()
    except (TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise OutputExists(
            f"{folder.url} holds a {LOCK_NAME} that cannot be read ({error}); if no run is active, "
            "remove that file"
        ) from error
    return holder


def breakable_lock(folder: OutputFolder, *, break_lock: bool) -> LockHolder | None:
    """Return the dead run whose lock may be broken, or None if there is no lock.

    The lock of a dead process on this host may be broken, so that a retry after a crash succeeds.

    Raises:
        OutputExists: the lock may not be broken, because its run is alive or no option asks for it.
    """
    holder = read_lock(folder)
    where = folder.url
    if holder is None:
        return None
    if holder.is_surely_dead():
        return holder
    if not holder.is_dead(datetime.now(UTC)):
        raise OutputExists(
            f"{where}: another run holds it ({holder}); wait until it ends, or name another "
            "--output"
        )
    if not break_lock:
        raise OutputExists(
            f"{where}: a run that died left its lock ({holder}); --break-lock takes over, "
            "together with --overwrite if it left tables"
        )
    return holder


class OutputLock:
    """Holds the folder from `acquire` to `release`; a context manager.

    A thread renews the heartbeat. If another run breaks the lock in the meantime, `check` raises;
    call it before the step that makes the output valid.
    """

    def __init__(
        self, folder: OutputFolder, *, break_lock: bool = False, every: float = HEARTBEAT_SECONDS
    ) -> None:
        self.folder = folder
        self.broken: LockHolder | None = None
        self._break_lock = break_lock
        self._every = every
        self._holder = _new_holder()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="lock-heartbeat", daemon=True)

    @property
    def token(self) -> str:
        """A word that distinguishes this run's lock from any other's."""
        return self._holder.token

    def acquire(self) -> None:
        """Acquire the lock, or raise `OutputExists` with its holder and the remedy."""
        self.folder.make_folder()
        try:
            self._create()
        except FileExistsError:
            self._take_over()
        self.check()
        self._thread.start()

    def check(self) -> None:
        """Raise `OutputExists` if the lock is no longer this run's."""
        holder = read_lock(self.folder)
        if holder is None or holder.token != self._holder.token:
            raise OutputExists(
                f"{self.folder.url}: this run lost its "
                f"lock{'' if holder is None else f' to {holder}'}; its output is invalid"
            )

    def release(self, *, undo: bool = False) -> None:
        """Release the folder; leave a lock that is no longer this run's.

        `undo` restores a broken lock, which proves whose files the folder contains.
        """
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        holder = read_lock(self.folder)
        if holder is not None and holder.token != self._holder.token:
            return
        if undo and self.broken is not None:
            (self.folder / LOCK_NAME).write_text(json.dumps(asdict(self.broken), indent=2) + "\n")
        elif holder is not None:
            (self.folder / LOCK_NAME).delete()

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(self, *error: object) -> None:
        self.release()

    def _create(self) -> None:
        (self.folder / LOCK_NAME).create_text(json.dumps(asdict(self._holder), indent=2) + "\n")

    def _take_over(self) -> None:
        holder = breakable_lock(self.folder, break_lock=self._break_lock)
        if holder is None:
            raise OutputExists(f"{self.folder.url}: another run has just finished there; try again")
        self._break(holder)

    def _break(self, dead: LockHolder) -> None:
        """Replace the lock of a dead run; if several processes try, one succeeds."""
        try:
            (self.folder / BREAKING_NAME).create_text(json.dumps(asdict(self._holder)) + "\n")
        except FileExistsError as error:
            raise OutputExists(
                f"{self.folder.url}: another run is breaking the lock; if no such run is active, "
                f"remove {BREAKING_NAME} there"
            ) from error
        try:
            now_there = read_lock(self.folder)
            if now_there is not None and now_there.token != dead.token:
                raise OutputExists(f"{self.folder.url}: another run was faster ({now_there})")
            self.broken = dead  # first, because a signal may arrive before the next line is done
            (self.folder / LOCK_NAME).delete()
            self._create()
        finally:
            (self.folder / BREAKING_NAME).delete()

    def _beat(self) -> None:
        while not self._stop.wait(self._every):
            # a store may fail once; the lock holds until long after the last heartbeat
            with suppress(OSError):
                holder = read_lock(self.folder)
                if holder is None or holder.token != self._holder.token:
                    return  # `check` raises; writing would break the other run's lock
                beat = asdict(self._holder) | {"heartbeat": _now()}
                (self.folder / LOCK_NAME).write_text(json.dumps(beat, indent=2) + "\n")


def _new_holder() -> LockHolder:
    now = _now()
    pid = os.getpid()
    return LockHolder(socket.gethostname(), pid, now, now, uuid.uuid4().hex, _process(pid))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _process(pid: int) -> str | None:
    """Identify the process with this number by its system and start time; None if they are not
    shown.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    state, *numbers = stat.rpartition(")")[2].split()
    return f"{_system()} {'ended' if state in _GONE else numbers[_START_TICKS]}"


@cache
def _system() -> str | None:
    """Return the id of this machine's current boot and the namespace of its process numbers."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return None


def _process_lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True

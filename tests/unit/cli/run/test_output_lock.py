import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rebalance_core.cli.main import main
from rebalance_core.cli.options import JobOptions
from rebalance_core.cli.run.output_folder import OutputLock, read_lock, typed_place
from rebalance_core.cli.run.output_run import OutputRun
from rebalance_core.contracts.run_names import LOCK_NAME
from rebalance_core.engine.table_writer import read_written
from rebalance_core.model.errors import OutputExists
from rebalance_core.storage.place import LocalPlace
from tests.recordings.tables import DATA
from tests.tree import TREE

HOLD = """
import sys, time
from rebalance_core.cli.run.output_folder import typed_place
from rebalance_core.cli.run.output_folder import OutputLock
with OutputLock(typed_place(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


@contextmanager
def other_process(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock of `folder`."""
    command = [sys.executable, "-c", HOLD, str(folder)]
    with subprocess.Popen(command, cwd=TREE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def leave_lock(folder: Path, *, host: str, pid: int, age: timedelta) -> None:
    """A lock whose last heartbeat is `age` ago."""
    beat = (datetime.now(UTC) - age).isoformat(timespec="seconds")
    content = {"host": host, "pid": pid, "started_at": beat, "heartbeat": beat, "token": "x"}
    (folder / LOCK_NAME).write_text(json.dumps(content))


def test_the_lock_is_there_while_held_and_gone_after(tmp_path: Path) -> None:
    folder = typed_place(str(tmp_path / "a" / "b"))
    with OutputLock(folder):
        holder = read_lock(folder)
        assert holder is not None
        assert (holder.host, holder.pid) == (socket.gethostname(), os.getpid())
    assert folder.names() == []


def test_two_processes_are_kept_apart(tmp_path: Path) -> None:
    with other_process(tmp_path) as process:
        for break_lock in (False, True):
            lock = OutputLock(typed_place(str(tmp_path)), break_lock=break_lock)
            with pytest.raises(OutputExists, match=f"another run holds it .process {process.pid} "):
                lock.acquire()


@pytest.mark.parametrize("waited_for", [True, False])
def test_the_lock_of_a_killed_process_of_this_host_is_taken_over(
    tmp_path: Path, waited_for: bool
) -> None:
    folder = typed_place(str(tmp_path))
    with other_process(tmp_path) as process:
        process.send_signal(signal.SIGKILL)
        if waited_for:
            process.wait()
        else:
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # stays a zombie
        with OutputLock(folder) as lock:
            assert lock.broken is not None
            assert lock.broken.pid == process.pid
    assert folder.names() == []


@pytest.mark.parametrize(
    ("changed", "taken_over"),
    [
        ({}, False),  # lives
        ({"process": "{system} 1"}, True),  # its number is another process's by now
        ({"process": "another boot {start}"}, False),
        ({"process": None}, False),  # written by an earlier version
        ({"host": "elsewhere", "process": "{system} 1"}, False),
    ],
    ids=["lives", "number used again", "another system", "not known", "another host"],
)
def test_only_what_this_system_knows_to_be_dead_is_taken_over(
    tmp_path: Path, changed: dict[str, str | None], taken_over: bool
) -> None:
    folder = typed_place(str(tmp_path))
    with OutputLock(folder):
        text = (tmp_path / LOCK_NAME).read_text()
    content = json.loads(text)
    system, _, start = content["process"].rpartition(" ")
    values = {
        key: value and value.format(system=system, start=start) for key, value in changed.items()
    }
    (tmp_path / LOCK_NAME).write_text(json.dumps(content | values))
    if taken_over:
        with OutputLock(folder) as lock:
            assert lock.broken is not None
    else:
        with pytest.raises(OutputExists, match="another run holds it"):
            OutputLock(folder).acquire()


@pytest.mark.parametrize("job", ["simulate", "audit"])
def test_a_retry_replaces_what_a_dead_run_left(tmp_path: Path, job: str) -> None:
    """The same command again, without an option: half-written tables are no result."""
    source = {
        "simulate": ("--input", DATA / "join-leave" / "tables"),
        "audit": ("--collection", DATA / "join-leave" / "collection"),
    }[job]
    words = [job, *map(str, source), "--output", str(tmp_path / "out")]
    with other_process(tmp_path / "out") as process:
        for left in ("epochs", "ingested/cluster_events"):
            (tmp_path / "out" / left).mkdir(parents=True)
            (tmp_path / "out" / left / "part-00000.zstd.parquet").write_text("half")
        assert main(None, words) == 5
        process.kill()
        process.wait()
    assert main(None, words) in (0, 3)
    assert read_written(tmp_path / "out", "epochs").num_rows > 0
    assert not (tmp_path / "out" / LOCK_NAME).exists()


@pytest.mark.parametrize(("minutes", "breakable"), [(9, False), (11, True)])
def test_another_hosts_lock_is_stale_after_ten_minutes(
    tmp_path: Path, minutes: int, breakable: bool
) -> None:
    leave_lock(tmp_path, host="elsewhere", pid=1, age=timedelta(minutes=minutes))
    lock = OutputLock(typed_place(str(tmp_path)), break_lock=True)
    if breakable:
        with lock:
            assert lock.broken is not None
            assert lock.broken.host == "elsewhere"
    else:
        with pytest.raises(OutputExists, match="on elsewhere"):
            lock.acquire()


def test_the_heartbeat_moves_and_a_lost_lock_is_noticed(tmp_path: Path) -> None:
    folder = typed_place(str(tmp_path))
    with OutputLock(folder, every=0.02) as lock:
        first = (tmp_path / LOCK_NAME).stat().st_ino
        deadline = time.monotonic() + 10
        while (tmp_path / LOCK_NAME).stat().st_ino == first:  # each beat is a new file
            assert time.monotonic() < deadline, "no heartbeat in 10 s"
            time.sleep(0.01)
        lock.check()
        leave_lock(tmp_path, host="elsewhere", pid=1, age=timedelta(0))
        # A beat that was under way may have put this run's lock back once.
        time.sleep(0.2)
        leave_lock(tmp_path, host="elsewhere", pid=1, age=timedelta(0))
        with pytest.raises(OutputExists, match="lost its lock to process 1 on elsewhere"):
            lock.check()
    holder = read_lock(folder)
    assert holder is not None
    assert holder.host == "elsewhere"


def test_an_unreadable_lock_may_not_be_broken(tmp_path: Path) -> None:
    (tmp_path / LOCK_NAME).write_text("{}")
    with pytest.raises(OutputExists, match="cannot be read"):
        OutputLock(typed_place(str(tmp_path)), break_lock=True).acquire()


@pytest.mark.parametrize("moment", ["link", "open", "read", "start"])
def test_a_signal_while_the_lock_is_made_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """The signal comes when a call is done, before what it gave is stored."""

    def signalled(call: Callable[..., object]) -> Callable[..., object]:
        def called(*args: object, **keywords: object) -> object:
            monkeypatch.undo()
            call(*args, **keywords)
            raise SystemExit(143)

        return called

    place, name = {
        "link": (os, "link"),
        "open": (os, "fsync"),
        "read": (LocalPlace, "read_text"),
        "start": (threading.Thread, "start"),
    }[moment]
    options = JobOptions(argv=())
    run = OutputRun(typed_place(str(tmp_path / "out")), "simulate", options, {}, (), "process")
    monkeypatch.setattr(place, name, signalled(getattr(place, name)))
    with pytest.raises(SystemExit), run:
        pytest.fail("the signal was lost")
    assert list((tmp_path / "out").iterdir()) == []


def test_a_signal_while_a_lock_is_broken_leaves_that_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_lock(tmp_path, host="elsewhere", pid=1, age=timedelta(days=1))
    before = (tmp_path / LOCK_NAME).read_text()
    delete = LocalPlace.delete

    def signalled(place: LocalPlace) -> None:
        monkeypatch.undo()
        delete(place)
        raise SystemExit(143)

    monkeypatch.setattr(LocalPlace, "delete", signalled)
    options = JobOptions(argv=(), break_lock=True)
    run = OutputRun(typed_place(str(tmp_path)), "simulate", options, {}, (), "process")
    with pytest.raises(SystemExit), run:
        pytest.fail("the signal was lost")
    after = json.loads((tmp_path / LOCK_NAME).read_text())
    assert after == json.loads(before) | {"process": None}
    assert [path.name for path in tmp_path.iterdir()] == [LOCK_NAME]

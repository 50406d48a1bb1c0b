"""What a command costs, with every process it starts: processor seconds and memory. Linux only.

This process becomes the one that inherits orphans (PR_SET_CHILD_SUBREAPER), so that the JVM is
waited for, and its processor time counted, whoever started it. The kernel counts no processor time
of a child whose parent ignores SIGCHLD, as Spark's Python daemon does with its workers: theirs is
read while they run, so that at most the last `POLL_SECONDS` of each are missing.
"""

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

POLL_SECONDS = 0.1
_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
_SIGCHLD = 1 << (signal.SIGCHLD - 1)  # its bit in a mask of /proc/PID/status
_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
_KINDS = (("pyspark.daemon", "worker"), ("pyspark/daemon", "worker"), ("java", "jvm"))


@dataclass(frozen=True)
class Cost:
    """What a command took.

    Attributes:
        code: Its exit code.
        seconds: From its start until the last process of its tree ended.
        processor_seconds: Of all processes of the tree, user and system.
        peak_mib: By kind of process (``worker``: a Python worker of Spark or the daemon that forks
            them; ``jvm``; ``python``: any other): the most that one of them held in memory.
        output: What it printed to stdout.
        errors: The end of what it printed to stderr.
    """

    code: int
    seconds: float
    processor_seconds: float
    peak_mib: Mapping[str, float]
    output: str
    errors: str


@dataclass
class _Watch:
    """What is read of this process's descendants while they run.

    Attributes:
        peak_mib: High-water marks by kind of process.
        unwaited: Processor seconds of those that nobody waits for, by process id and start time.
    """

    peak_mib: dict[str, float] = field(default_factory=dict)
    unwaited: dict[tuple[int, int], float] = field(default_factory=dict)

    def look(self) -> None:
        """Read them; what happens between the last look and a process's end is missed."""
        for process in _descendants():
            folder = Path(f"/proc/{process.pid}")
            try:
                command = (folder / "cmdline").read_bytes().decode(errors="replace")
                status = _status(process.pid)
                ignores_children = int(_status(process.parent)["SigIgn"], 16) & _SIGCHLD
            except OSError:
                continue  # it ended meanwhile
            if ignores_children:
                self.unwaited[process.pid, process.start_ticks] = process.processor_seconds
            if "VmHWM" in status:
                kind = next((kind for part, kind in _KINDS if part in command), "python")
                mark = int(status["VmHWM"].split()[0]) / 1024
                self.peak_mib[kind] = max(self.peak_mib.get(kind, 0.0), mark)


def cost_of(
    command: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    scratch: Path,
) -> Cost:
    """Run a command until every process of its tree has ended.

    No other child of this process may run meanwhile: whatever ends is taken for the command's.

    Args:
        command: Program and arguments.
        environment: Variables added to this process's.
        scratch: A folder for its output.
    """
    _inherit_orphans()
    stdout, stderr = scratch / "stdout", scratch / "stderr"
    watch, processor_seconds, code = _Watch(), 0.0, 0
    begin = time.perf_counter()
    with stdout.open("wb") as out, stderr.open("wb") as err:
        started = subprocess.Popen(
            command, stdout=out, stderr=err, env=os.environ | dict(environment or {})
        )
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                break  # the whole tree has ended
            if pid == 0:
                watch.look()
                time.sleep(POLL_SECONDS)
                continue
            processor_seconds += usage.ru_utime + usage.ru_stime
            if pid == started.pid:
                code = started.returncode = os.waitstatus_to_exitcode(status)
    return Cost(
        code=code,
        seconds=time.perf_counter() - begin,
        processor_seconds=processor_seconds + sum(watch.unwaited.values()),
        peak_mib=watch.peak_mib,
        output=stdout.read_text(errors="replace"),
        errors=stderr.read_text(errors="replace")[-4000:],
    )


def peaks_of_descendants() -> Mapping[str, float]:
    """Marks, as `Cost.peak_mib`, of the processes that this one has at the moment."""
    watch = _Watch()
    watch.look()
    return watch.peak_mib


def processor_seconds_of_descendants() -> float:
    """Of the processes that this one has at the moment, and of those they waited for."""
    return sum(process.processor_seconds for process in _descendants())


def _inherit_orphans() -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


@dataclass(frozen=True)
class _Process:
    """A line of /proc/PID/stat; ``processor_seconds`` has those of children it waited for."""

    pid: int
    parent: int
    start_ticks: int
    processor_seconds: float


def _status(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def _descendants() -> list[_Process]:
    """The processes below this one."""
    children: dict[int, list[_Process]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            after_name = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it ended meanwhile
        ticks = sum(int(value) for value in after_name[11:15])  # utime, stime, cutime, cstime
        process = _Process(
            pid=int(folder.name),
            parent=int(after_name[1]),
            start_ticks=int(after_name[19]),
            processor_seconds=ticks / _TICKS_A_SECOND,
        )
        children.setdefault(process.parent, []).append(process)
    found, left = [], [os.getpid()]
    while left:
        below = children.get(left.pop(), [])
        found += below
        left += [process.pid for process in below]
    return found

"""What a command costs, with every process it starts: processor seconds and memory. Linux only.

This process becomes the one that inherits orphans (PR_SET_CHILD_SUBREAPER), so that the JVM and the
Python workers are waited for, and their processor time counted, whoever started them.
"""

import ctypes
import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

POLL_SECONDS = 0.2
_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
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
    """High-water marks of this process's descendants."""

    peak_mib: dict[str, float] = field(default_factory=dict)

    def look(self) -> None:
        """Read the marks that the kernel keeps (VmHWM); one that ends between looks is missed."""
        for process in _descendants():
            try:
                command = (process / "cmdline").read_bytes().decode(errors="replace")
                status = (process / "status").read_text()
            except OSError:
                continue  # it ended meanwhile
            kind = next((kind for part, kind in _KINDS if part in command), "python")
            marks = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")]
            if marks:
                self.peak_mib[kind] = max(self.peak_mib.get(kind, 0.0), int(marks[0]) / 1024)


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
        processor_seconds=processor_seconds,
        peak_mib=watch.peak_mib,
        output=stdout.read_text(errors="replace"),
        errors=stderr.read_text(errors="replace")[-4000:],
    )


def peaks_of_descendants() -> Mapping[str, float]:
    """Marks, as `Cost.peak_mib`, of the processes that this one has at the moment."""
    watch = _Watch()
    watch.look()
    return watch.peak_mib


def _inherit_orphans() -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def _descendants() -> list[Path]:
    """The processes below this one."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            after_name = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it ended meanwhile
        children.setdefault(int(after_name[1]), []).append(int(folder.name))
    found, left = [], [os.getpid()]
    while left:
        below = children.get(left.pop(), [])
        found += below
        left += below
    return [Path(f"/proc/{pid}") for pid in found]

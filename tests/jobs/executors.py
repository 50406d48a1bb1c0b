"""The executors of a job and their Python workers, as /proc shows them below the job."""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

LOOK_SECONDS = 0.05
EXECUTOR = b"CoarseGrainedExecutorBackend"


def kill_busy(job: int) -> bool:
    """Kill an executor of which a Python worker is computing; False if none is."""
    before = [(executor, worker, cpu_ticks(worker)) for executor, worker in workers(job)]
    time.sleep(LOOK_SECONDS)
    for executor, worker, ticks in before:
        if cpu_ticks(worker) > ticks:
            os.kill(executor, signal.SIGKILL)
            return True
    return False


def workers(job: int) -> list[tuple[int, int]]:
    """(executor, Python worker) of a job; a worker is what the executor's daemon forked."""
    parent_of = parents()
    executors = {pid for pid, parent in parent_of.items() if parent == job and is_executor(pid)}
    return [
        (executor, pid)
        for pid, daemon in parent_of.items()
        if (executor := parent_of.get(daemon, 0)) in executors
    ]


def parents() -> dict[int, int]:
    """The parent of every process."""
    return {
        int(folder.name): int(fields[1])
        for folder in Path("/proc").glob("[0-9]*")
        if (fields := stat(int(folder.name)))
    }


def is_executor(pid: int) -> bool:
    with suppress(OSError):
        return EXECUTOR in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def cpu_ticks(pid: int) -> int:
    """Processor time used so far; 0 if the process is gone."""
    fields = stat(pid)
    return int(fields[11]) + int(fields[12]) if fields else 0


def stat(pid: int) -> list[str]:
    """What follows the name in /proc/PID/stat: state, parent, …; nothing if it is gone."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return []

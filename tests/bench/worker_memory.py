"""The most memory any Python worker of this machine's Spark held, from /proc."""

import threading
import time
from pathlib import Path
from types import TracebackType

POLL_SECONDS = 0.2


class WorkerMemory:
    """Watches the workers while a ``with`` block runs; ``peak_mib`` afterwards.

    Linux only. The high-water mark that the kernel keeps for each process (VmHWM) is read, so a
    peak between two looks is not missed unless the worker ends between them.
    """

    def __init__(self) -> None:
        self.peak_mib = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "WorkerMemory":
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.is_set():
            self.peak_mib = max([self.peak_mib, *map(_high_water_mib, _workers())])
            time.sleep(POLL_SECONDS)


def _workers() -> list[Path]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes()
        except OSError:
            continue  # it ended meanwhile
        if b"pyspark.daemon" in command or b"pyspark/daemon" in command:
            found.append(process)
    return found


def _high_water_mib(process: Path) -> float:
    try:
        status = (process / "status").read_text()
    except OSError:
        return 0.0
    marks = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")]
    return int(marks[0]) / 1024 if marks else 0.0

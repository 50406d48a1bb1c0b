"""How far a run on Spark is, where Spark's own bar is not shown: a line a minute."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from rebalance_core.cli.terminal import Progress

LOOK_SECONDS = 5.0


@contextmanager
def spark_progress(session: Any, every: float = LOOK_SECONDS) -> Iterator[None]:
    """Tell of the session's tasks on stderr while the block runs; on a terminal Spark does.

    Args:
        session: Not of Spark Connect.
        every: Seconds between two looks.
    """
    if sys.stderr.isatty():
        yield
        return
    stop = threading.Event()
    tracker = session.sparkContext.statusTracker()

    def watch() -> None:
        # what goes wrong with Spark is for the run to tell
        with suppress(Exception):
            progress = Progress("tasks", terminal=False)
            while not stop.wait(every):
                done, total = tasks_of(tracker)
                if total:
                    progress(done, total)

    thread = threading.Thread(target=watch, name="spark-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def tasks_of(tracker: Any) -> tuple[int, int]:
    """How many tasks of the jobs under way are done, of how many; stages that are skipped count."""
    done = total = 0
    for job in tracker.getActiveJobsIds():
        info = tracker.getJobInfo(job)
        for stage in () if info is None else info.stageIds:
            of_stage = tracker.getStageInfo(stage)
            if of_stage is not None:
                done += of_stage.numCompletedTasks
                total += of_stage.numTasks
    return done, total

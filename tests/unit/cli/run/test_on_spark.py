"""Progress of a run on Spark, from what its status tracker tells."""

import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from rebalance_core.cli import terminal
from rebalance_core.cli.run.on_spark import spark_progress, tasks_of


class Tracker:
    """A job of two stages, the second not begun, and one that ended just now."""

    def __init__(self) -> None:
        self.asked = threading.Event()

    def getActiveJobsIds(self) -> list[int]:  # noqa: N802  # Spark's name
        self.asked.set()
        return [3, 4]

    def getJobInfo(self, job: int) -> Any:  # noqa: N802  # Spark's name
        return SimpleNamespace(stageIds=[7, 8]) if job == 3 else None

    def getStageInfo(self, stage: int) -> Any:  # noqa: N802  # Spark's name
        if stage == 8:
            return None
        return SimpleNamespace(numTasks=40, numCompletedTasks=12)


def session_of(tracker: Tracker) -> Any:
    return SimpleNamespace(sparkContext=SimpleNamespace(statusTracker=lambda: tracker))


def test_tasks_of_all_stages_that_are_known() -> None:
    assert tasks_of(Tracker()) == (12, 40)


def test_a_line_is_said_where_nobody_watches(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(terminal, "_LOG_SECONDS", 0.0)
    tracker = Tracker()
    with spark_progress(session_of(tracker), every=0.001):
        assert tracker.asked.wait(10)
    assert "12 of 40 tasks (30%)" in capsys.readouterr().err


def test_on_a_terminal_spark_shows_its_own_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with spark_progress(None):
        pass


def test_a_tracker_that_fails_does_not_end_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    tracker = Tracker()
    monkeypatched = session_of(tracker)
    tracker.getJobInfo = None  # type: ignore[assignment,method-assign]  # calling it raises
    with spark_progress(monkeypatched, every=0.001):
        assert tracker.asked.wait(10)
    assert capsys.readouterr().err == ""

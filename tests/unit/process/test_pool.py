"""Pieces of work in several processes, which end with the run."""

import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from rebalance_core.clockwork.measured import Measured
from rebalance_core.engine.propagation import PropagationOptions
from rebalance_core.model.group_settings import GroupSettings
from rebalance_core.process import propagate
from rebalance_core.process.propagate import GroupFutures, played_futures
from rebalance_core.replay.history import GroupHistory

# Pieces of work in several processes; threads stand in for these.

PIECES = 300


def numbered(made: list[int]) -> Iterator[GroupFutures]:
    history = GroupHistory("c", "g", GroupSettings(), ())
    for number in range(PIECES):
        made.append(number)
        yield GroupFutures(number, history, range(1), last=True)


def test_others_are_played_while_the_first_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    later, made = Event(), list[int]()

    def play(piece: GroupFutures, options: PropagationOptions) -> list[Measured]:
        if piece.group == 20:
            later.set()
        if piece.group == 0:
            assert later.wait(60), "nothing else was played"
        return []

    monkeypatch.setattr(propagate, "play_futures", play)
    monkeypatch.setattr(
        propagate, "ProcessPoolExecutor", lambda processes, **_: ThreadPoolExecutor(processes)
    )
    done = [piece.group for piece, _ in played_futures(numbered(made), PropagationOptions(), 2)]
    assert done == list(range(PIECES))


def test_a_piece_that_takes_long_holds_up_the_making_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    go, made = Event(), list[int]()
    monkeypatch.setattr(propagate, "play_futures", lambda piece, options: go.wait(60) and [])
    monkeypatch.setattr(
        propagate, "ProcessPoolExecutor", lambda processes, **_: ThreadPoolExecutor(processes)
    )
    played = played_futures(numbered(made), PropagationOptions(), 2)
    with ThreadPoolExecutor(1) as reader:
        first = reader.submit(next, played)
        while len(made) < 2 * propagate.WAITING_PER_PROCESS:
            time.sleep(0.01)
        assert not first.done()
        assert len(made) <= 2 * propagate.WAITING_PER_PROCESS + 1
        go.set()
        first.result()
    assert len(list(played)) == PIECES - 1


# A killed run leaves no process behind; real processes, as nothing else can be killed.

PARENT = """
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from rebalance_core.process.propagate import end_with_parent

pool = ProcessPoolExecutor(2, mp_context=get_context("spawn"), initializer=end_with_parent)
pool.submit(time.sleep, 0).result()
pool.submit(time.sleep, 600)
print("at work", flush=True)
time.sleep(600)
"""


def test_workers_end_when_their_parent_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"at work\n"
        parent.kill()
        # ends once nobody holds the parent's standard output: the busy worker, and the idle one
        parent.communicate(timeout=60)


def test_in_the_first_process_there_is_nobody_to_follow() -> None:
    follow = "from rebalance_core.process.propagate import end_with_parent as end; end()"
    done = subprocess.run([sys.executable, "-c", f"{follow}; print('on')"], capture_output=True)
    assert (done.returncode, done.stdout) == (0, b"on\n")

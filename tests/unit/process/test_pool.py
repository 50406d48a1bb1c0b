"""Pieces of work in several processes, which end with the run."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event

import pytest

from rebalance_core.process import pool
from rebalance_core.process.pool import in_order

PIECES = 300


@dataclass(frozen=True)
class Numbered:
    """A piece of work; threads stand in for processes."""

    number: int

    @property
    def name(self) -> str:
        return f"g{self.number}"


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        pool, "ProcessPoolExecutor", lambda processes, **_: ThreadPoolExecutor(processes)
    )


def numbered(made: list[int]) -> Iterator[Numbered]:
    for number in range(PIECES):
        made.append(number)
        yield Numbered(number)


@pytest.mark.usefixtures("threads")
def test_others_are_played_while_the_first_takes_long() -> None:
    later = Event()

    def play(piece: Numbered) -> int:
        if piece.number == 20:
            later.set()
        if piece.number == 0:
            assert later.wait(60), "nothing else was played"
        return piece.number

    assert list(in_order(play, numbered([]), 2)) == list(range(PIECES))


@pytest.mark.usefixtures("threads")
def test_a_piece_that_takes_long_holds_up_the_making_of_others() -> None:
    go, made = Event(), list[int]()
    played = in_order(lambda piece: go.wait(60), numbered(made), 2)
    with ThreadPoolExecutor(1) as reader:
        first = reader.submit(next, played)
        while len(made) < 2 * pool.WAITING_PER_PROCESS:
            time.sleep(0.01)
        assert not first.done()
        assert len(made) <= 2 * pool.WAITING_PER_PROCESS + 1
        go.set()
        first.result()
    assert len(list(played)) == PIECES - 1


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("processes", [1, 2])
def test_progress_names_the_piece_that_is_waited_for(processes: int) -> None:
    seen = list[tuple[int, str | None]]()
    done = in_order(
        lambda piece: piece.number,
        numbered([]),
        processes,
        lambda done, name: seen.append((done, name)),
    )
    assert list(done) == list(range(PIECES))
    assert seen[0] == (0, "g0")
    assert seen[-1] == (PIECES, None)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert all(name == f"g{done}" for done, name in seen if name is not None)

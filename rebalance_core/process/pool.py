"""Runs pieces of work one after another, or in a pool of processes that ends with the run."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.connection import wait as wait_for
from typing import Protocol, TypeVar

from rebalance_core.strategies import custom

WAITING_PER_PROCESS = 3
"""Number of pieces queued per process; keeps processes busy and memory low."""
HELD_PER_PROCESS = 50
"""Number of pieces per process that may wait behind a slow piece, finished or not."""


class Piece(Protocol):
    """A piece of work for any process; it is pickled."""

    @property
    def name(self) -> str:
        """Return the name that progress shows."""


PieceT = TypeVar("PieceT", bound=Piece)
MadeT = TypeVar("MadeT")
Progress = Callable[[int, int, str | None], object]
"""Called with the number of finished pieces, the total, and the name of the piece being waited for.
"""


def usable_cores() -> int:
    """Return the number of CPU cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_order(
    play: Callable[[PieceT], MadeT],
    pieces: Iterable[PieceT],
    processes: int,
    progress: Callable[[int, str | None], object] | None = None,
) -> Iterator[MadeT]:
    """Yield the result of each piece, in order.

    Args:
        play: A module-level function; its result is also pickled.
        pieces: Created one at a time, when they are handed out.
        processes: 1 plays them in this process.
        progress: Called with the number of finished pieces and the name of the piece being waited
            for.
    """
    waited = deque[PieceT]()

    def report(done: int) -> None:
        if progress is not None:
            progress(done, waited[0].name if waited else None)

    def handed_out() -> Iterator[PieceT]:
        for number, piece in enumerate(pieces):
            waited.append(piece)
            if len(waited) == 1:
                report(number)
            yield piece

    made = map(play, handed_out()) if processes == 1 else _pooled(play, handed_out(), processes)
    for done, result in enumerate(made, start=1):
        waited.popleft()
        yield result
        report(done)


def _pooled(
    play: Callable[[PieceT], MadeT], pieces: Iterable[PieceT], processes: int
) -> Iterator[MadeT]:
    others = set(active_children())
    # Forking is unsafe, since pyarrow has started threads.
    with ProcessPoolExecutor(
        processes,
        mp_context=get_context("spawn"),
        initializer=_begin_worker,
        initargs=(custom.plugins(),),
    ) as pool:
        try:
            yield from _played(pool, play, pieces, processes)
        except BaseException:
            # The run has ended, but the pool would wait for work in progress.
            for worker in set(active_children()) - others:
                worker.terminate()
            raise


def _played(
    pool: ProcessPoolExecutor,
    play: Callable[[PieceT], MadeT],
    pieces: Iterable[PieceT],
    processes: int,
) -> Iterator[MadeT]:
    """Yield each piece's result once all earlier ones are finished; later pieces are played
    meanwhile.
    """
    held: deque[Future[MadeT]] = deque()
    for piece in pieces:
        held.append(pool.submit(play, piece))
        while True:
            while held and held[0].done():
                yield held.popleft().result()
            playing = [future for future in held if not future.done()]
            if (
                len(playing) < WAITING_PER_PROCESS * processes
                and len(held) < HELD_PER_PROCESS * processes
            ):
                break
            wait(playing, return_when=FIRST_COMPLETED)
    while held:
        yield held.popleft().result()


def end_with_parent() -> None:
    """Make this worker exit when its parent is gone.

    A parent that is killed (SIGKILL, out of memory) sends nothing to its pool. Workers would wait
    for pieces forever and keep its standard output open, which would block its reader.
    """
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_follow, args=(parent.sentinel,), daemon=True).start()


def _begin_worker(plugins: dict[tuple[str, str], custom.Plugin]) -> None:
    end_with_parent()
    custom.install(plugins)


def _follow(parent: int) -> None:
    wait_for([parent])
    os._exit(1)

"""Pieces of work one after the other, or in several processes; results in order either way."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing import active_children, get_context

from rebalance_core.clockwork.measure.measured import Measured
from rebalance_core.engine.propagation.options import PropagationOptions
from rebalance_core.engine.propagation.pieces import played
from rebalance_core.process.propagation.orphans import end_with_parent
from rebalance_core.replay.history import GroupHistory

WAITING_PER_PROCESS = 3
"""Pieces handed out ahead of each process: none is idle, and few histories are in memory."""
HELD_PER_PROCESS = 50
"""Pieces that a slow one may keep waiting to be handed on, played or not."""


@dataclass(frozen=True)
class Piece:
    """Some futures of a group.

    Attributes:
        group: Its number.
        history: Of the group.
        seeds: Which futures.
        last: No further piece of this group comes.
    """

    group: int
    history: GroupHistory
    seeds: range
    last: bool


def play_piece(piece: Piece, options: PropagationOptions) -> list[Measured]:
    """All slices of a piece; what a worker runs."""
    return list(played(piece.history, options, piece.seeds))


def played_pieces(
    pieces: Iterable[Piece], options: PropagationOptions, processes: int
) -> Iterator[tuple[Piece, list[Measured]]]:
    """Each piece with what it came to, in order.

    Args:
        pieces: Made one by one, as they are handed out.
        options: Of the simulation.
        processes: 1 plays them here.
    """
    if processes == 1:
        for piece in pieces:
            yield piece, play_piece(piece, options)
        return
    others = set(active_children())
    # Not forked: pyarrow has threads by now.
    with ProcessPoolExecutor(
        processes, mp_context=get_context("spawn"), initializer=end_with_parent
    ) as pool:
        try:
            yield from _in_order(pool, pieces, options, processes)
        except BaseException:
            # Nobody wants what they are at; the pool would wait for it.
            for worker in set(active_children()) - others:
                worker.terminate()
            raise


def _in_order(
    pool: ProcessPoolExecutor, pieces: Iterable[Piece], options: PropagationOptions, processes: int
) -> Iterator[tuple[Piece, list[Measured]]]:
    """Each piece once it and all before it are played; later ones are played meanwhile."""
    held: deque[tuple[Piece, Future[list[Measured]]]] = deque()
    for piece in pieces:
        held.append((piece, pool.submit(play_piece, piece, options)))
        while True:
            while held and held[0][1].done():
                done, result = held.popleft()
                yield done, result.result()
            playing = [future for _, future in held if not future.done()]
            if (
                len(playing) < WAITING_PER_PROCESS * processes
                and len(held) < HELD_PER_PROCESS * processes
            ):
                break
            wait(playing, return_when=FIRST_COMPLETED)
    while held:
        done, result = held.popleft()
        yield done, result.result()

"""The log of ownership, made of the sets that were held one after the other."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from rebalance_core.clockwork.batch.futures import Futures
from rebalance_core.clockwork.batch.passes import Moves
from rebalance_core.clockwork.batch.shares import QueueSets
from rebalance_core.clockwork.ownership_log import GIVEN_UP, TAKEN, OwnershipLog
from rebalance_core.clockwork.ticks import NEVER, Times

Ints = NDArray[np.int64]


class Logbook:
    """Rows of one slice of futures."""

    def __init__(self, futures: Futures, sets: QueueSets) -> None:
        self._futures, self._sets = futures, sets
        self._columns: list[tuple[Ints, NDArray[np.int32], Times, int]] = []

    def log(self, moves: list[Moves]) -> OwnershipLog:
        """All moves, and what is given up at the end of each life.

        A process that is gone takes and gives up nothing more: what it had not come to, it held,
        or did not hold, at its end.
        """
        ended = self._futures.ticks.ended.reshape(-1)
        left = self._futures.held.reshape(len(self._futures.script.topics), len(ended)).copy()
        for move in moves:
            dropped = move.drop_us < ended[move.elements]
            added = move.add_us < ended[move.elements]
            self._put(move, dropped, move.drop_us, frozenset.difference, GIVEN_UP)
            self._put(move, added, move.add_us, _added, TAKEN)
            cut = np.flatnonzero(~added)
            if len(cut):
                pairs = zip(move.before[cut].tolist(), move.after[cut].tolist(),
                            dropped[cut].tolist(), strict=True)  # fmt: skip
                sets = self._sets.sets
                left[move.topic, move.elements[cut]] = [
                    self._sets.number(sets[a] & sets[b] if gone else sets[a])
                    for a, b, gone in pairs
                ]
        gone = np.flatnonzero(ended < NEVER)
        for held in left:
            self._rows(gone, held[gone], ended[gone], GIVEN_UP)
        return self._log()

    def _put(
        self,
        move: Moves,
        rows: NDArray[np.bool_],
        at_us: Times,
        difference: Callable[[frozenset[int], frozenset[int]], frozenset[int]],
        delta: int,
    ) -> None:
        if rows.any():
            sets = self._sets.combined(difference, move.before[rows], move.after[rows])
            self._rows(move.elements[rows], sets, at_us[rows], delta)

    def _rows(self, elements: Ints, sets: NDArray[np.int32], at_us: Times, delta: int) -> None:
        """One row for each queue of a set."""
        rows, queues = self._sets.pairs(sets)
        if len(rows):
            self._columns.append((elements[rows], queues.astype(np.int32), at_us[rows], delta))

    def _log(self) -> OwnershipLog:
        columns = self._columns
        if not columns:
            nothing = np.empty(0, np.int64)
            columns = [(nothing, nothing.astype(np.int32), nothing, TAKEN)]
        elements = np.concatenate([each[0] for each in columns])
        seeds = len(self._futures.seeds)
        return OwnershipLog(
            seed=(elements % seeds).astype(np.int32),
            life=(elements // seeds).astype(np.int32),
            queue=np.concatenate([each[1] for each in columns]),
            at_us=np.concatenate([each[2] for each in columns]),
            delta=np.concatenate([np.full(len(each[0]), each[3], np.int8) for each in columns]),
        ).in_order()


def _added(before: frozenset[int], after: frozenset[int]) -> frozenset[int]:
    return after - before

"""Builds the ownership log from the successive sets of held queues."""

import numpy as np
from numpy.typing import NDArray

from rebalance_core.kernels.segments import Ints
from rebalance_core.timing.ownership_log import (
    GIVEN_UP,
    TAKEN,
    OwnershipLog,
)
from rebalance_core.timing.timer_periods import NEVER, Times
from rebalance_core.timing.vectorized.futures import Futures
from rebalance_core.timing.vectorized.segment_holdings import Moves
from rebalance_core.timing.vectorized.shares import (
    QueueSets,
    SetOf,
    added,
)


class OwnershipLogBuilder:
    """Builds the ownership log of a slice of futures."""

    def __init__(self, futures: Futures, sets: QueueSets) -> None:
        self._futures, self._sets = futures, sets
        self._columns: list[tuple[Ints, NDArray[np.int32], Times, int]] = []

    def log(self, moves: list[Moves]) -> OwnershipLog:
        """Return the log of all moves, including the releases at the end of each lifetime.

        A process takes and releases nothing after it ends, so pending changes lapse. A leaving
        process does not read queues that it locks later.
        """
        ended = self._futures.ticks.ended.reshape(-1)
        left = self._futures.held.reshape(len(self._futures.timeline.topics), len(ended)).copy()
        columns = ("topic", "elements", "before", "after", "drop_us", "add_us")
        if moves:
            whole = Moves(*(np.concatenate([getattr(m, name) for m in moves]) for name in columns))
            dropped, takes = (
                moved_us < ended[whole.elements] for moved_us in (whole.drop_us, whole.add_us)
            )
            self._put(whole, dropped, whole.drop_us, frozenset.difference, GIVEN_UP)
            self._put(whole, takes, whole.add_us, added, TAKEN)
            cut = np.flatnonzero(~takes)[::-1]  # the first move after an end is decisive
            held, wanted = whole.before[cut], whole.after[cut]
            kept = self._sets.combined(frozenset.intersection, held, wanted)
            left[whole.topic[cut], whole.elements[cut]] = np.where(dropped[cut], kept, held)
        gone = np.flatnonzero(ended < NEVER)
        for held in left:
            self._rows(gone, held[gone], ended[gone], GIVEN_UP)
        return self._log()

    def _put(
        self, move: Moves, rows: NDArray[np.bool_], at_us: Times, difference: SetOf, delta: int
    ) -> None:
        sets = self._sets.combined(difference, move.before[rows], move.after[rows])
        self._rows(move.elements[rows], sets, at_us[rows], delta)

    def _rows(self, elements: Ints, sets: NDArray[np.int32], at_us: Times, delta: int) -> None:
        """Add a row for each queue in a set."""
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
            lifetime=(elements // seeds).astype(np.int32),
            queue=np.concatenate([each[1] for each in columns]),
            at_us=np.concatenate([each[2] for each in columns]),
            delta=np.concatenate([np.full(len(each[0]), each[3], np.int8) for each in columns]),
        ).in_order()

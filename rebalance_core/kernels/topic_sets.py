"""Sets of topics, each known by a number: equal numbers are equal sets."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from rebalance_core.kernels.segments import Ints, pointers, ranges


class TopicSets:
    """A growing list of distinct sets of topic codes."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, ...], int] = {}
        self._sets: list[tuple[int, ...]] = []

    def number(self, topics: Iterable[int]) -> int:
        """The number of a set; its topics in any order, repeats allowed."""
        key = tuple(sorted(set(topics)))
        if key not in self._numbers:
            self._numbers[key] = len(self._sets)
            self._sets.append(key)
        return self._numbers[key]

    def numbers(self, topics: Ints, starts: Ints, without: Ints) -> Ints:
        """The numbers of many sets.

        Args:
            topics: topic codes of all sets, one after the other.
            starts: where each set begins, and the end; shape (n + 1,).
            without: one topic a set that does not count.
        """
        known: dict[bytes, int] = {}
        result = np.empty(len(without), np.int64)
        bounds = starts.tolist()
        for row, left_out in enumerate(without.tolist()):
            codes = topics[bounds[row] : bounds[row + 1]]
            if left_out in codes:
                result[row] = self.number(t for t in codes.tolist() if t != left_out)
                continue
            key = codes.tobytes()
            if key not in known:
                known[key] = self.number(codes.tolist())
            result[row] = known[key]
        return result

    def topics(self, number: int) -> tuple[int, ...]:
        """The topic codes of a set, rising."""
        return self._sets[number]

    def members(self, numbers: Ints) -> tuple[Ints, Ints]:
        """(row, topic code) of every topic of the set of every row."""
        sizes = np.array([len(topics) for topics in self._sets], np.int64)
        every = np.array([t for topics in self._sets for t in topics], np.int64)
        counts = sizes[numbers]
        rows = np.repeat(np.arange(len(numbers)), counts)
        return rows, every[ranges(pointers(sizes)[:-1][numbers], counts)]

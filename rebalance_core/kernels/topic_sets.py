"""Sets of topics, each identified by a number; equal numbers mean equal sets."""

from collections.abc import Iterable

import numpy as np

from rebalance_core.kernels.segments import Ints, pointers, ranges


class TopicSets:
    """A growing list of distinct sets of topic codes."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, ...], int] = {}
        self._sets: list[tuple[int, ...]] = []

    def number(self, topics: Iterable[int]) -> int:
        """Return the number of a set, whose topics may be in any order and repeated."""
        key = tuple(sorted(set(topics)))
        number = self._numbers.setdefault(key, len(self._sets))
        if number == len(self._sets):
            self._sets.append(key)
        return number

    def numbers(self, topics: Ints, starts: Ints, without: Ints) -> Ints:
        """Return the numbers of many sets.

        Args:
            topics: the topic codes of all sets, concatenated.
            starts: where each set begins, and the end; shape (n + 1,).
            without: one topic per set that does not count.
        """
        sizes = np.diff(starts)
        result = np.full(len(without), self.number(()), np.int64)
        rows = np.flatnonzero(sizes > 0)
        codes, begins, ends = topics.tolist(), starts[rows].tolist(), starts[rows + 1].tolist()
        seen: dict[tuple[int, ...], int] = {}  # members of a group usually state the same list

        def number_of(listed: tuple[int, ...], left_out: int) -> int:
            if left_out in listed:
                return self.number(topic for topic in listed if topic != left_out)
            if listed not in seen:
                seen[listed] = self.number(listed)
            return seen[listed]

        result[rows] = [
            number_of(tuple(codes[begin:end]), left_out)
            for begin, end, left_out in zip(begins, ends, without[rows].tolist(), strict=True)
        ]
        return result

    def topics(self, number: int) -> tuple[int, ...]:
        """Return the topic codes of a set, ascending."""
        return self._sets[number]

    def members(self, numbers: Ints) -> tuple[Ints, Ints]:
        """Return (row, topic code) for every topic in each row's set."""
        sizes = np.array([len(topics) for topics in self._sets], np.int64)
        every = np.array([t for topics in self._sets for t in topics], np.int64)
        counts = sizes[numbers]
        rows = np.repeat(np.arange(len(numbers)), counts)
        return rows, every[ranges(pointers(sizes)[:-1][numbers], counts)]

"""Which queues the groups have, and how their cells are laid out in pieces."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise

import numpy as np

from rebalance_core.kernels.ownership.listed_queues import listed_queues
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups
from rebalance_core.kernels.segments import Ints, first_of_run, halves, pair, pointers, ranges
from rebalance_core.kernels.state.cells import Cells, Queues, Stretches


class Layout:
    """The queues of prepared groups.

    All queues of one topic broker have equally many epochs, so that pieces are cut and laid out by
    topic broker: there are far fewer of them than queues.

    Args:
        prepared: the groups.
        part: (i, n): only the i-th of n shares of every group's queues.
        cells_per_block: about how many cells a piece has; a segment is never cut.
    """

    def __init__(
        self, prepared: PreparedGroups, part: tuple[int, int], cells_per_block: int
    ) -> None:
        self._prepared, self._part = prepared, part
        self._cells_per_block = cells_per_block

    @cached_property
    def queues(self) -> Queues:
        """Every queue that can be read in some epoch, or that CONFIG lists."""
        grid = self._prepared.grid
        counts = grid.most_readable
        topic_broker = np.repeat(np.arange(len(counts)), counts)
        queue_id = ranges(np.zeros(len(counts), np.int64), counts)
        listed = listed_queues(self._prepared)
        if len(listed.allocation):
            both = np.concatenate([pair(topic_broker, queue_id), listed.key])
            topic_broker, queue_id = halves(np.unique(both))
        if self._part != (0, 1):
            mine = self._mine(grid.brokers.group[topic_broker])
            topic_broker, queue_id = topic_broker[mine], queue_id[mine]
        if len(listed.allocation) or self._part != (0, 1):
            counts = np.bincount(topic_broker, minlength=len(counts))
        return Queues(topic_broker, queue_id, pointers(counts), grid.brokers.group, grid.topic_of)

    def _mine(self, group: Ints) -> Ints:
        """The rows of this part: a range of each group's queues."""
        part, parts = self._part
        first = np.flatnonzero(first_of_run(group))
        sizes = np.diff(np.append(first, len(group)))
        place = np.arange(len(group)) - np.repeat(first, sizes)
        return np.flatnonzero(place * parts // np.repeat(sizes, sizes) == part)

    def pieces(self, kind: Ints, weight: Ints) -> Iterator[tuple[int, Cells]]:
        """All queues, some of one kind at a time; with the kind.

        Args:
            kind: by topic broker.
            weight: by topic broker: about how much room a queue takes, in cells.
        """
        order = np.argsort(kind, kind="stable")
        kind, first_queue = kind[order], self.queues.first_of_broker[order]
        sizes = np.diff(self.queues.first_of_broker)[order]
        places, weights = pointers(sizes), pointers(sizes * weight[order])
        for low, high in pairwise([*np.flatnonzero(first_of_run(kind)).tolist(), len(kind)]):
            begin = int(places[low])
            while begin < places[high]:
                full = np.interp(begin, places, weights) + self._cells_per_block
                end = min(max(begin + 1, int(np.interp(full, weights, places))), int(places[high]))
                at = slice(int(np.searchsorted(places, begin, "right")) - 1,
                           int(np.searchsorted(places, end)))  # fmt: skip
                cuts = np.clip(places[at.start : at.stop + 1], begin, end)
                first = first_queue[at] + cuts[:-1] - places[at]
                yield int(kind[low]), self._lay_out(order[at], first, np.diff(cuts))
                begin = end

    def _lay_out(self, brokers: Ints, queue: Ints, count: Ints) -> Cells:
        """The cells of some queues.

        Args:
            brokers: their topic brokers.
            queue: the first of each.
            count: how many of each.
        """
        grid, of_group = self._prepared.grid, self._prepared.epochs.of_group
        group = grid.brokers.group[brokers]
        stretches = Stretches(
            queue,
            count,
            brokers,
            of_group[group + 1] - of_group[group],
            of_group[group],
            grid.topic_first[grid.topic_of[brokers]],
            grid.broker_first[brokers],
        )
        return Cells(stretches, self.queues, grid.readable)

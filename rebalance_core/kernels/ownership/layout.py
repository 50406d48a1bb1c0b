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
        grid, ids = self._prepared.grid, None
        counts = grid.most_readable
        listed = listed_queues(self._prepared)
        if len(listed.allocation):
            readable = pair(np.repeat(np.arange(len(counts)), counts), ranges(0 * counts, counts))
            both = np.unique(np.concatenate([readable, listed.key]))
            topic_broker, ids = halves(both)
            counts = np.bincount(topic_broker, minlength=len(counts))
        of_broker = pointers(counts)
        first, counts = self._mine(of_broker)
        if ids is not None:
            ids = ids[ranges(first, counts)]
        first_id = first - of_broker[:-1]
        return Queues(pointers(counts), first_id, ids, grid.brokers.group, grid.topic_of)

    def _mine(self, of_broker: Ints) -> tuple[Ints, Ints]:
        """(first, how many) queues of each topic broker are in this part: a range of a group's.

        Args:
            of_broker: the first queue of each topic broker, and the end.
        """
        part, parts = self._part
        opens = first_of_run(self._prepared.grid.brokers.group)
        of_group = np.append(of_broker[:-1][opens], of_broker[-1])
        sizes, mine = np.diff(of_group), np.cumsum(opens) - 1
        low, high = (of_group[:-1] - -sizes * n // parts for n in (part, part + 1))
        first = np.clip(of_broker[:-1], low[mine], high[mine])
        return first, np.clip(of_broker[1:], low[mine], high[mine]) - first

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

"""The queues of groups, and the layout of their cells in pieces."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise

import numpy as np
import pyarrow as pa

from rebalance_core.kernels import segments
from rebalance_core.kernels.cells import Cells, Stretches
from rebalance_core.kernels.ownership.listed_queues import listed_queues
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups
from rebalance_core.kernels.queue_parts import Part, part_of, turns_of
from rebalance_core.kernels.queues import Queues
from rebalance_core.kernels.segments import Ints

SMALL = 8
"""A topic broker that fits into a piece this many times is not cut, because whole ones are often
alike.
"""


class Layout:
    """The queues of prepared groups.

    All queues of a topic broker have the same number of epochs, so pieces are cut and laid out by
    topic broker, of which there are far fewer than queues.

    Args:
        prepared: the groups.
        part: the share of every group's queues to compute.
        cells_per_block: the approximate number of cells in a piece; a segment is never cut.
    """

    def __init__(self, prepared: PreparedGroups, part: Part, cells_per_block: int) -> None:
        self._prepared, self._part = prepared, part
        self._cells_per_block = cells_per_block

    @cached_property
    def queues(self) -> Queues:
        """Every queue that can be read in any epoch, or that CONFIG lists."""
        grid, ids = self._prepared.grid, None
        counts = grid.most_readable
        listed = listed_queues(self._prepared)
        if len(listed.allocation):
            readable = segments.pair(
                np.repeat(np.arange(len(counts)), counts), segments.ranges(0 * counts, counts)
            )
            both = segments.distinct(np.concatenate([readable, listed.key]))
            topic_broker, ids = segments.halves(both)
            counts = np.bincount(topic_broker, minlength=len(counts))
        first_id, part = np.zeros_like(counts), self._part
        if part.parts > 1 and ids is None and counts.max(initial=0) > part.parts * part.block:
            ids = segments.ranges(0 * counts, counts)  # the queues in a part span several blocks
        if part.parts > 1 and ids is None:
            first_id = part.block * ((part.number - self._turns) % part.parts)
            counts = np.clip(counts - first_id, 0, part.block)
        elif part.parts > 1 and ids is not None:
            broker = np.repeat(np.arange(len(counts)), counts)
            mine = part_of(self._turns[broker], ids, part.parts, part.block) == part.number
            counts = np.bincount(broker[mine], minlength=len(counts))
            ids = ids[mine]
        return Queues(segments.pointers(counts), first_id, ids, grid.brokers.group, grid.topic_of)

    @cached_property
    def _turns(self) -> Ints:
        """The turn of each topic broker (`turns_of`)."""
        names, brokers = self._prepared.encoded.names, self._prepared.grid.brokers
        known = brokers.broker >= 0
        broker_names = names.brokers.take(pa.array(brokers.broker, mask=~known))
        return turns_of(names.topics.take(pa.array(brokers.topic)), broker_names)

    def pieces(self, kind: Ints, weight: Ints) -> Iterator[tuple[int, Cells]]:
        """Yield (kind, cells) for queues of a single kind at a time, in order of first occurrence.

        Args:
            kind: the kind of each topic broker.
            weight: for each topic broker, the approximate size of a queue, in cells.
        """
        filled = np.flatnonzero(np.diff(self.queues.first_of_broker))
        kind = kind[filled]
        kinds, first = np.unique(kind, return_index=True)
        for of_kind in kinds[np.argsort(first)].tolist():
            for cells in self._cut(filled[kind == of_kind], weight):
                yield of_kind, cells

    def _cut(self, brokers: Ints, weight: Ints) -> Iterator[Cells]:
        """Yield the cells of topic brokers that have queues, about one piece at a time.

        Cost: O(topic brokers + pieces), once for all pieces.
        """
        first = self.queues.first_of_broker[brokers]
        counts = self.queues.first_of_broker[brokers + 1] - first
        places, weight = segments.pointers(counts), weight[brokers]
        cuts = self._cuts(places, weight, segments.pointers(counts * weight))
        bounds = np.sort(np.append(places, cuts))
        bounds = bounds[segments.first_of_run(bounds)]
        begins, counts = bounds[:-1], np.diff(bounds)
        of = np.searchsorted(places, begins, side="right") - 1
        stretches = self._lay_out(brokers[of], first[of] + begins - places[of], counts)
        for low, high in pairwise([0, *np.searchsorted(bounds, cuts).tolist(), len(begins)]):
            if low < high:
                yield Cells(stretches.between(low, high), self.queues, self._prepared.grid.readable)

    def _cuts(self, places: Ints, weight: Ints, weights: Ints) -> Ints:
        """Return the queue before which each piece except the last ends; one queue may fill several
        pieces.

        Args:
            places: the first queue of each topic broker, and the end.
            weight: the weight of one queue of each topic broker.
            weights: the weight of all queues before each topic broker, then the total.
        """
        full = np.arange(self._cells_per_block, weights[-1], self._cells_per_block)
        of = np.searchsorted(weights, full, side="right") - 1
        small = SMALL * (weights[of + 1] - weights[of]) <= self._cells_per_block
        return places[of] + np.where(small, 0, (full - weights[of]) // weight[of])

    def _lay_out(self, brokers: Ints, queue: Ints, count: Ints) -> Stretches:
        """Lay out consecutive queues of topic brokers with their cells.

        Args:
            brokers: the topic brokers.
            queue: the first queue of each.
            count: the number of queues of each.
        """
        grid, of_group = self._prepared.grid, self._prepared.epochs.of_group
        group = grid.brokers.group[brokers]
        return Stretches(
            queue=queue,
            count=count,
            topic_broker=brokers,
            epochs=of_group[group + 1] - of_group[group],
            first_epoch=of_group[group],
            first_topic_cell=grid.topic_first[grid.topic_of[brokers]],
            first_broker_cell=grid.broker_first[brokers],
        )

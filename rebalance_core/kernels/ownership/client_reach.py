"""The queues of shared topics from which each client may take messages, over all its processes."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rebalance_core.kernels import segments
from rebalance_core.kernels.cells import Cells
from rebalance_core.kernels.ownership.pop_answers import PopAnswers
from rebalance_core.kernels.periods import Periods
from rebalance_core.kernels.segments import Ints


@dataclass(frozen=True, slots=True)
class TakerSpans:
    """Runs of epochs in which a client may take from some readable queues of a topic."""

    group_topic: Ints
    taker: Ints
    """A client or process."""
    begin: Ints
    end: Ints
    queues: Ints


class ClientReach:
    """The queues that each client reaches.

    Args:
        answers: the answers of groups that share topics.
    """

    def __init__(self, answers: PopAnswers) -> None:
        self.answers = answers
        self._client = answers.prepared.membership.processes.client

    @cached_property
    def whole(self) -> Periods:
        """The periods in which clients may take from all queues of a broker, by (topic broker,
        client).
        """
        return self._by_client(self.answers.whole())

    def _by_client(self, taken: Periods) -> Periods:
        return Periods.union(taken.major, self._client[taken.minor], taken.begin, taken.end)

    def blocks(self) -> Iterator[tuple[Cells, Periods]]:
        """Yield queues with the periods in which a client reaches them without reaching the whole
        broker.
        """
        topic_broker = self.answers.holdings.queues.topic_broker
        for cells, taken in self.answers.blocks():
            single = self._by_client(taken)
            brokers = topic_broker[cells.queue[single.major]]
            row, begin, end = without(single, brokers, self.whole)
            yield cells, Periods(single.major[row], single.minor[row], begin, end)

    def readable_brokers(self, taken: Periods) -> TakerSpans:
        """Return when takers can read whole brokers; ``taken`` is by (topic broker, taker)."""
        grid, answers = self.answers.prepared.grid, self.answers
        readable = answers.readable_brokers(grid.readable)
        asker, begin, end = readable.parts(
            taken.major, np.zeros_like(taken.major), taken.begin, taken.end
        )
        opening = answers.prepared.epochs.of_group[grid.brokers.group[taken.major[asker]]]
        cell = grid.broker_first[taken.major[asker]] + begin - opening
        return TakerSpans(
            grid.topic_of[taken.major[asker]], taken.minor[asker], begin, end, grid.readable[cell]
        )

    def readable_queues(self, cells: Cells, taken: Periods) -> TakerSpans:
        """Return when takers can read individual queues; ``taken`` is by (segment, taker)."""
        readable = Periods.of_stretches(cells.readable, cells.segment, cells.epoch)
        asker, begin, end = readable.parts(
            taken.major, np.zeros_like(taken.major), taken.begin, taken.end
        )
        group_topic = self.answers.holdings.queues.group_topic[cells.queue[taken.major[asker]]]
        return TakerSpans(
            group_topic, taken.minor[asker], begin, end, np.ones(len(asker), np.int64)
        )


def without(periods: Periods, major: Ints, others: Periods) -> tuple[Ints, Ints, Ints]:
    """Return (row, begin, end) of what remains of each period after subtracting the others.

    Args:
        periods: the periods to reduce.
        major: for each period, the major key among the others.
        others: the periods to subtract, by (major, the minor of `periods`).
    """
    asker, period = others.meeting(major, periods.minor, periods.begin, periods.end)
    pieces = 1 + np.bincount(asker, minlength=len(periods))
    row = np.repeat(np.arange(len(periods)), pieces)
    begin, end = periods.begin[row], periods.end[row]
    before = (
        segments.pointers(pieces)[:-1][asker]
        + np.arange(len(asker))
        - segments.pointers(pieces - 1)[:-1][asker]
    )
    end[before] = others.begin[period]
    begin[before + 1] = others.end[period]
    left = begin < end
    return row[left], begin[left], end[left]

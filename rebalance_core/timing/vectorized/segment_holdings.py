"""The queues that each element holds in a segment, and a log of the changes."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rebalance_core.kernels.segments import Ints
from rebalance_core.timing.timer_periods import Times
from rebalance_core.timing.vectorized.elements import Elements


@dataclass(eq=False)
class Moves:
    """Changes of holdings as columns of equal length, with one row per pass and topic.

    Attributes:
        topic: the number of the topic.
        elements: the elements whose holdings change.
        before: the number of the queue set held before.
        after: the number of the queue set held after.
        drop_us: when queues are released.
        add_us: when new queues are taken.
    """

    topic: Ints
    elements: Ints
    before: NDArray[np.int32]
    after: NDArray[np.int32]
    drop_us: Times
    add_us: Times


class SegmentHoldings:
    """The holdings of elements, with a log of their changes.

    Args:
        elements: the elements of the segment.
        log: the log of all changes.
    """

    def __init__(self, elements: Elements, log: list[Moves]) -> None:
        self._elements, self._log = elements, log

    def move(
        self, topic: Ints, who: Ints, share: NDArray[np.int32], drop_us: Times, add_us: Times
    ) -> None:
        """Record that elements now hold a different share of a topic; no two rows may have the same
        element and topic.
        """
        if len(who):
            elements = self._elements
            held = elements.held[topic, who]
            self._log.append(Moves(topic, elements.ids[who], held, share, drop_us, add_us))
            elements.held[topic, who] = share

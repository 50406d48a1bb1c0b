"""Holdings in a segment, and their changes."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rebalance_core.kernels.segments import Ints
from rebalance_core.timing.timer_periods import Times
from rebalance_core.timing.vectorized.elements import Elements


@dataclass(eq=False)
class Moves:
    """Changes of holdings by topic: columns of equal length, a row per pass and topic.

    Attributes:
        topic: their numbers.
        elements: whose.
        before: set of queues held until then.
        after: set of queues held from then on.
        drop_us: when missing queues are released.
        add_us: when new queues are taken.
    """

    topic: Ints
    elements: Ints
    before: NDArray[np.int32]
    after: NDArray[np.int32]
    drop_us: Times
    add_us: Times


class SegmentHoldings:
    """Holdings of elements with a log of their changes.

    Args:
        elements: the elements of the stretch.
        log: the log of all changes.
    """

    def __init__(self, elements: Elements, log: list[Moves]) -> None:
        self._elements, self._log = elements, log

    def move(
        self, topic: Ints, who: Ints, share: NDArray[np.int32], drop_us: Times, add_us: Times
    ) -> None:
        """Record that elements hold another share of a topic from now on; no row repeats."""
        if len(who):
            elements = self._elements
            held = elements.held[topic, who]
            self._log.append(Moves(topic, elements.ids[who], held, share, drop_us, add_us))
            elements.held[topic, who] = share

"""What is held, and its changes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rebalance_core.clockwork.batch.elements import Elements
from rebalance_core.clockwork.ticks import Times

Ints = NDArray[np.int64]


@dataclass(eq=False)
class Moves:
    """Changes of what is held of one topic: equally long columns, one row a pass.

    Attributes:
        topic: its number.
        elements: whose.
        before: set of queues held until then.
        after: set of queues held from then on.
        drop_us: when what is missing is given up.
        add_us: when what is new is taken.
    """

    topic: int
    elements: Ints
    before: NDArray[np.int32]
    after: NDArray[np.int32]
    drop_us: Times
    add_us: Times


class Holdings:
    """Changes what elements hold, and puts that down.

    Args:
        elements: of the stretch.
        log: of all changes.
    """

    def __init__(self, elements: Elements, log: list[Moves]) -> None:
        self._elements, self._log = elements, log

    def move(
        self, topic: int, who: Ints, share: NDArray[np.int32], drop_us: Times, add_us: Times
    ) -> None:
        """The elements hold another share of a topic from now on."""
        its = self._elements
        held = its.held[topic]
        self._log.append(Moves(topic, its.ids[who], held[who], share, drop_us, add_us))
        held[who] = share

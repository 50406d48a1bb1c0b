"""What was observed beside what is simulated: the moves of a group's changes in its futures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rebalance_core.timing.moves import (
    GAP,
    Change,
    Moves,
    Queue,
    first_actions,
    gaps,
    last_actions,
)


@dataclass(frozen=True, eq=False)
class Observation:
    """One observed time and the same in the futures.

    Attributes:
        what: of what, as `timing.moves` names it, or a kind of ``latencies``.
        who: the client or the queue; None: all clients together.
        observed_ms: milliseconds; a gap is negative while several clients owned the queue.
        futures_ms: (S,) the same by future; NaN where it does not happen.
    """

    what: str
    who: str | Queue | None
    observed_ms: float
    futures_ms: NDArray[np.float64]

    @cached_property
    def simulated_ms(self) -> NDArray[np.float64]:
        """The futures in which it happens, ascending."""
        return np.sort(self.futures_ms[~np.isnan(self.futures_ms)])

    @property
    def share(self) -> float:
        """The share of the futures in which it happens."""
        return len(self.simulated_ms) / len(self.futures_ms)

    def quantile_ms(self, share: float) -> float:
        """Return a quantile of what is simulated; NaN: it happens in no future."""
        its = self.simulated_ms
        return float(np.quantile(its, share)) if len(its) else float("nan")

    def is_between(self, low: float, high: float) -> bool:
        """Return whether the observed value lies between two quantiles of what is simulated."""
        return self.quantile_ms(low) <= self.observed_ms <= self.quantile_ms(high)

    @property
    def is_inside(self) -> bool:
        """Whether it lies between the least and the most that is simulated."""
        return self.is_between(0, 1)


Compared = tuple[int, Observation]
"""The place of the change, and what is observed after it."""


def latencies(observed: Moves, simulated: Moves, changes: Sequence[Change]) -> Iterator[Compared]:
    """Yield when each member first gave up and first took a queue after each change."""
    futures = first_actions(simulated, changes)
    for (at, client, what), seen in first_actions(observed, changes).items():
        values = futures.get((at, client, what), _never(simulated))
        yield at, Observation(what, client, float(seen[0]), values)


def settled(
    observed: Moves, simulated: Moves, changes: Sequence[Change], clients: AbstractSet[str]
) -> Iterator[Compared]:
    """Yield when the last of some members gave up or took a queue after each change."""
    futures = last_actions(simulated, changes, clients)
    for (at, what), seen in last_actions(observed, changes, clients).items():
        values = futures.get((at, what), _never(simulated))
        yield at, Observation(what, None, float(seen[0]), values)


def queue_gaps(observed: Moves, simulated: Moves, changes: Sequence[Change]) -> Iterator[Compared]:
    """Yield how long each queue that changed hands had no owner, or several, after each change."""
    futures = gaps(simulated, changes)
    for (at, queue), seen in gaps(observed, changes).items():
        values = futures.get((at, queue), _never(simulated))
        yield at, Observation(GAP, queue, float(seen[0]), values)


def _never(moves: Moves) -> NDArray[np.float64]:
    return np.full(moves.seeds, np.nan)

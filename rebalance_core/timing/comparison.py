"""Compare the moves observed after a group's changes with those in its simulated futures."""

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
    """An observed duration and the same duration in the futures.

    Attributes:
        what: the kind of duration, named as in `timing.moves`, or a kind from ``latencies``.
        who: the client or the queue; None for all clients together.
        observed_ms: milliseconds; a gap is negative if several clients owned the queue.
        futures_ms: (S,) the duration in each future; NaN in futures without it.
    """

    what: str
    who: str | Queue | None
    observed_ms: float
    futures_ms: NDArray[np.float64]

    @cached_property
    def simulated_ms(self) -> NDArray[np.float64]:
        """The simulated durations in ascending order, without the futures in which it does not
        occur.
        """
        return np.sort(self.futures_ms[~np.isnan(self.futures_ms)])

    @property
    def share(self) -> float:
        """The share of the futures in which it occurs."""
        return len(self.simulated_ms) / len(self.futures_ms)

    def quantile_ms(self, share: float) -> float:
        """Return a quantile of the simulated durations; NaN if it occurs in no future."""
        its = self.simulated_ms
        return float(np.quantile(its, share)) if len(its) else float("nan")

    def is_between(self, low: float, high: float) -> bool:
        """Return whether the observed duration lies between two quantiles of the simulated
        durations.
        """
        return self.quantile_ms(low) <= self.observed_ms <= self.quantile_ms(high)

    @property
    def is_inside(self) -> bool:
        """Whether the observed duration lies within the simulated range."""
        return self.is_between(0, 1)


Compared = tuple[int, Observation]
"""The index of a change, and an observation made after it."""


def latencies(observed: Moves, simulated: Moves, changes: Sequence[Change]) -> Iterator[Compared]:
    """Yield, for each change, when each member first gave up and first took a queue."""
    futures = first_actions(simulated, changes)
    for (at, client, what), seen in first_actions(observed, changes).items():
        values = futures.get((at, client, what), _never(simulated))
        yield at, Observation(what, client, float(seen[0]), values)


def settled(
    observed: Moves, simulated: Moves, changes: Sequence[Change], clients: AbstractSet[str]
) -> Iterator[Compared]:
    """Yield, for each change, when the last of the given members gave up or took a queue."""
    futures = last_actions(simulated, changes, clients)
    for (at, what), seen in last_actions(observed, changes, clients).items():
        values = futures.get((at, what), _never(simulated))
        yield at, Observation(what, None, float(seen[0]), values)


def queue_gaps(observed: Moves, simulated: Moves, changes: Sequence[Change]) -> Iterator[Compared]:
    """Yield, for each change, how long each queue that changed hands had no owner, or several
    owners.
    """
    futures = gaps(simulated, changes)
    for (at, queue), seen in gaps(observed, changes).items():
        values = futures.get((at, queue), _never(simulated))
        yield at, Observation(GAP, queue, float(seen[0]), values)


def _never(moves: Moves) -> NDArray[np.float64]:
    return np.full(moves.seeds, np.nan)

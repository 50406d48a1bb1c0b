"""What was measured in the scaler runs beside the futures of what they were given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from rebalance_core.model.times import HOUR_MS, SECOND_MS
from rebalance_core.planning.autoscale.policy import SYNC_S
from tests.recordings.scalers.runs import SEEDS, Run, Step

LOW, HIGH = 0.05, 0.95


@dataclass(frozen=True, eq=False)
class Compared:
    """A figure of a run.

    Attributes:
        measured: on the cluster.
        futures: (S,) the same unit.
    """

    measured: float
    futures: NDArray[np.float64]

    @property
    def error(self) -> float:
        """How far the mean of the futures is from what was measured, relative to it."""
        return float(self.futures.mean() / self.measured - 1.0)

    @property
    def range(self) -> tuple[float, float]:
        """The range of nine futures in ten."""
        low, high = np.quantile(self.futures, [LOW, HIGH])
        return float(low), float(high)

    @property
    def is_likely(self) -> bool:
        """Whether what was measured is in that range."""
        low, high = self.range
        return low <= self.measured <= high


def lag_integral(run: Run) -> Compared:
    """Return the messages that wait, over the time: message-seconds."""
    mean = run.replayed().figures["lag_mean"][0]
    return Compared(run.truth["lag_message_s"], mean * run.truth["seconds"])


def lag_max(run: Run) -> Compared:
    """Return the most messages that wait at any second."""
    return Compared(run.truth["lag_max"], run.replayed().figures["lag_max"][0])


def late_messages(run: Run) -> Compared:
    """Return the messages that wait for more than 30 s."""
    return Compared(run.truth["late_messages"], run.replayed().figures["late_messages"][0])


def pod_seconds(run: Run) -> Compared:
    """Return the replicas that are asked for, over the time."""
    hours = run.replayed().figures["pod_hours"][0]
    return Compared(sum(run.replicas), hours * HOUR_MS / SECOND_MS)


def read_again(run: Run) -> Compared:
    """Return the messages that were read again."""
    return Compared(run.truth["read_again"], run.replayed().figures["read_again"][0])


def decisions(run: Run) -> float:
    """Return the share of all decisions, the cluster's and the futures', that have a partner.

    Partners scale in the same direction at most a sync period apart.
    """
    found = run.replayed()
    shares = []
    for seed in SEEDS:
        simulated = [s for s in found.steps if s.seed == seed]
        steps = [Step(s.at_s, s.before, s.after) for s in simulated]
        both = len(run.steps) + len(steps)
        shares.append(2 * partners(run.steps, steps) / both if both else 1.0)
    return float(np.mean(shares))


def partners(some: Sequence[Step], others: Sequence[Step]) -> int:
    """Return how many steps have a partner of their own.

    >>> partners([Step(30, 2, 4), Step(60, 4, 2)], [Step(45, 2, 3), Step(60, 3, 4)])
    1
    """
    left, count = list(others), 0
    for one in some:
        near = [o for o in left if abs(o.at_s - one.at_s) <= SYNC_S and _up(o) == _up(one)]
        if near:
            left.remove(min(near, key=partial(_distance, one)))
            count += 1
    return count


def _distance(one: Step, other: Step) -> tuple[float, float]:
    """Return the key by which the nearest step is chosen, of two the earlier one."""
    return abs(other.at_s - one.at_s), other.at_s


def _up(step: Step) -> bool:
    return step.after > step.before


def same_replicas(run: Run) -> float:
    """Return the share of all seconds in which a future asks for as many replicas."""
    found = run.replayed()
    place = {seed: number for number, seed in enumerate(SEEDS)}
    replicas = np.full((len(SEEDS), len(run.replicas)), run.policy.begin)
    for step in found.steps:
        replicas[place[step.seed], step.at_s :] = step.after
    return float((replicas == np.array(run.replicas)).mean())

"""The robustness of a recommendation: other start spreads, and pods without a readinessProbe."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from rebalance_core.model.times import SECOND_MS
from rebalance_core.planning.rollout.futures import Figures, Rollouts, Slice, together
from rebalance_core.planning.scenario.pods import CONTAINER, Ready

SPREADS_MS = tuple(seconds * SECOND_MS for seconds in (0, 1, 2, 5, 10, 20))
"""The start spreads for which plans are compared, up to the median start."""
MOST_COMPARED = 4
"""Maximum number of compared plans, besides the default."""
FUTURES = range(20)


@dataclass(frozen=True, slots=True)
class Robustness:
    """The best plans under other assumptions.

    Attributes:
        spreads: for each spread in ms, ascending, the number of the best compared plan.
        unprobed: the figures of the chosen plan without a readinessProbe, and the best plan in that
            case; None: the plan already assumes no probe.
    """

    spreads: tuple[tuple[int, int], ...]
    unprobed: tuple[Figures, int] | None

    def stretches(self) -> Iterator[tuple[int, int, int]]:
        """Yield ranges of spreads, each as its first and last spread and the best plan in
        between.
        """
        for plan, spreads in groupby(self.spreads, key=lambda pair: pair[1]):
            listed = [spread for spread, _ in spreads]
            yield listed[0], listed[-1], plan


def robustness(
    rollouts: Rollouts,
    ranked: Sequence[int],
    play: Callable[[Sequence[Slice]], Iterator[Figures]],
    best_of: Callable[[dict[int, Figures]], int],
) -> Robustness:
    """Compare the best plans under other assumptions, in a few futures each.

    Args:
        rollouts: the plans and groups.
        ranked: the chosen plan, then others, best first.
        play: plays pieces and returns their figures in order.
        best_of: returns the best of plans by their figures.
    """
    compared = list(_distinct(rollouts, ranked))

    def under(
        plans: Sequence[int], spread_ms: int | None, ready: Ready | None
    ) -> dict[int, Figures]:
        groups = range(len(rollouts.groups))
        pieces = [
            Slice(plan, group, FUTURES, spread_ms, ready) for plan in plans for group in groups
        ]
        found: dict[int, list[Figures]] = {}
        for piece, figures in zip(pieces, play(pieces), strict=True):
            found.setdefault(piece.plan, []).append(figures)
        return {plan: together(figures) for plan, figures in found.items()}

    chosen = rollouts.plans[ranked[0]]
    spreads = [ms for ms in SPREADS_MS if ms <= max(chosen.down_ms, chosen.start.stated_spread_ms)]
    bests = tuple((spread, best_of(under(compared, spread, None))) for spread in spreads)
    if chosen.ready == CONTAINER:
        return Robustness(bests, None)
    unprobed = under(compared, None, CONTAINER)
    return Robustness(bests, (unprobed[ranked[0]], best_of(unprobed)))


def _distinct(rollouts: Rollouts, ranked: Sequence[int]) -> Iterator[int]:
    """Yield the chosen plan, the default, and the best plans with other numbers of pods."""
    numbers = set()
    for place, plan in enumerate((ranked[0], 0, *ranked)):
        key = rollouts.plans[plan].surge, rollouts.plans[plan].unavailable
        if place < 1 or key not in numbers:
            numbers.add(key)
            yield plan
        if len(numbers) > MOST_COMPARED:
            return

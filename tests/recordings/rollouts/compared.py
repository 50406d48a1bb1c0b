"""What was seen in the recorded rollouts beside what a thousand futures have."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from rebalance_core.engine.propagation import PropagationOptions, played
from rebalance_core.timing.message_facts import MILLI
from tests.recordings.rollouts.runs import FIGURES, NAMES, Given, Run, recorded

SEEDS = 1_000


@dataclass(frozen=True, eq=False)
class Compared:
    """One figure of one group in one run.

    Attributes:
        run: which.
        figure: of `FIGURES`.
        seen: what was measured.
        futures: (S,) the same unit.
    """

    run: Run
    figure: str
    seen: float
    futures: NDArray[np.float64]

    @property
    def group(self) -> str:
        """Its name."""
        return self.run.history.consumer_group

    @property
    def is_inside(self) -> bool:
        """Seen in the least to the most of all futures, to a thousandth."""
        low, high = self.futures.min() - 1 / MILLI, self.futures.max() + 1 / MILLI
        return bool(low <= self.seen <= high)


@cache
def compared(name: str, given: Given, seeds: int = SEEDS) -> tuple[Compared, ...]:
    """Every figure of both groups of a run. Cost: four seconds for a thousand futures."""
    return tuple(chain.from_iterable(_figures(run, seeds) for run in recorded(name, given)))


def all_compared(given: Given) -> list[Compared]:
    """Of every run but the overloaded host's."""
    return list(chain.from_iterable(compared(name, given) for name in NAMES))


def _figures(run: Run, seeds: int) -> Iterable[Compared]:
    options = PropagationOptions(seeds, handover_seeds=0, from_ms=run.from_ms, clock=run.clock)
    found: dict[str, list[int]] = defaultdict(list)
    for part in played(run.history, options, range(seeds)):
        (row,) = part.totals.to_pylist()
        for figure in FIGURES:
            found[figure] += row[figure]
    for figure, values in found.items():
        unit = 1 if figure == "finish_ms" else MILLI
        yield Compared(run, figure, run.seen[figure], np.array(values, np.float64) / unit)


def by_plan(found: Sequence[Compared]) -> dict[tuple[str, str], tuple[float, float]]:
    """(group, plan) -> what was seen and simulated, medians over the runs of the plan.

    Simulated: the median of the futures; of the time with two owners, which is none in most futures
    of some plans, their mean.
    """
    rows: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for one in found:
        middle = np.mean if one.figure == "double_queue_seconds" else np.median
        rows[one.group, one.run.plan].append((one.seen, float(middle(one.futures))))
    return {
        key: (float(np.median([a for a, _ in both])), float(np.median([b for _, b in both])))
        for key, both in sorted(rows.items())
    }


def rank_correlation(pairs: Iterable[tuple[float, float]]) -> float:
    """Spearman's, of what was seen and simulated."""
    seen, simulated = zip(*pairs, strict=True)
    return float(np.corrcoef(_ranks(seen), _ranks(simulated))[0, 1])


def _ranks(values: Sequence[float]) -> NDArray[np.float64]:
    """Ranks; equal values share the mean of theirs."""
    array = np.round(np.array(values), 3)
    lower = (array[:, None] > array).sum(axis=1)
    equal = (array[:, None] == array).sum(axis=1)
    ranks: NDArray[np.float64] = lower + (equal - 1) / 2
    return ranks

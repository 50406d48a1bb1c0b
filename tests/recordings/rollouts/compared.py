"""What was seen in the recorded rollouts beside what a thousand futures have."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from rebalance_core.engine.propagation import PropagationOptions, played
from rebalance_core.timing.message_facts import MILLI
from tests.recordings.rollouts.runs import FIGURES, NAMES, POD_NAMES, Given, Run, draws_of, recorded

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
    def is_likely(self) -> bool:
        """Seen between 5 and 95 % of the futures, to a thousandth."""
        low, high = np.quantile(self.futures, [0.05, 0.95])
        return bool(low - 1 / MILLI <= self.seen <= high + 1 / MILLI)

    @property
    def is_inside(self) -> bool:
        """Seen in the least to the most of all futures, to a thousandth."""
        low, high = self.futures.min() - 1 / MILLI, self.futures.max() + 1 / MILLI
        return bool(low <= self.seen <= high)


@cache
def compared(name: str, given: Given, seeds: int = SEEDS) -> tuple[Compared, ...]:
    """Every figure of both groups of a run. Cost: four seconds for a thousand futures."""
    draws = draws_of(given)
    parts = [
        {
            (one.group, one.figure): one
            for run in recorded(name, given, draw)
            for one in _figures(run, seeds // draws)
        }
        for draw in range(draws)
    ]
    return tuple(
        replace(one, futures=np.concatenate([part[key].futures for part in parts]))
        for key, one in parts[0].items()
    )


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
    # a future counts from its first change, a recording from the first action
    first_ms = min(e.event_ms for e in run.history.events if e.event_ms >= run.from_ms)
    found["finish_ms"] = [value + first_ms - run.from_ms for value in found["finish_ms"]]
    for figure, values in found.items():
        unit = 1 if figure == "finish_ms" else MILLI
        yield Compared(run, figure, run.seen[figure], np.array(values, np.float64) / unit)


LIKELY = ("read_again", "orphan_queue_seconds", "finish_ms")
"""Figures of which is counted how many lie between 5 and 95 % of the futures."""


def likely(given: Given, seeds: int = SEEDS) -> dict[str, tuple[int, int]]:
    """Figure -> how many of its values lie in the 5-95 % range, of how many."""
    found = [one for name in (*NAMES, *POD_NAMES) for one in compared(name, given, seeds)]
    return {
        figure: (
            sum(one.is_likely for one in found if one.figure == figure),
            sum(one.figure == figure for one in found),
        )
        for figure in LIKELY
    }


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


ALIKE = 0.01
"""Figures of two plans that differ by this share differ by chance: most plans were run once."""


def _ranks(values: Sequence[float]) -> NDArray[np.float64]:
    """Ranks; values that are alike share the mean of theirs."""
    array = np.round(np.array(values), 3)
    alike = np.abs(array[:, None] - array) <= ALIKE * np.abs(array)
    lower = ((array[:, None] > array) & ~alike).sum(axis=1)
    equal = alike.sum(axis=1)
    ranks: NDArray[np.float64] = lower + (equal - 1) / 2
    return ranks

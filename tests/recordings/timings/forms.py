"""Errors of quantiles of the kinds with enough observations, in each form of the comparison.

Pooled: the quantile of all simulated values of a kind. Per future: of n observations the quantile
is compared with that of the n simulated ones of one future, which is what was observed once; of 36
observations the 99th percentile is nearly the greatest, of the pooled values it is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tests.recordings.timings.compared import Compared, Given
from tests.recordings.timings.figures import ENOUGH, figures, parts_by_kind

MEDIAN, HIGH = 0.5, 0.99
SHORTEST_S = 1.0
"""Errors of quantiles are relative to the observed value, or to this where that is less."""


@dataclass(frozen=True)
class Quantile:
    """One quantile of one kind, in seconds.

    Attributes:
        observed: of the observations.
        pooled: of the simulated values of all futures.
        per_future: median over the futures of the quantile within each.
        place: share of the futures whose quantile is lower than the observed one; half counts where
            it is equal.
    """

    observed: float
    pooled: float
    per_future: float
    place: float

    @property
    def pooled_error(self) -> float:
        """Relative; below 0 where the simulated is less."""
        return relative_error(self.observed, self.pooled)

    @property
    def per_future_error(self) -> float:
        """Relative; below 0 where the simulated is less."""
        return relative_error(self.observed, self.per_future)


@dataclass(frozen=True)
class Form:
    """A kind's quantiles, simulated from one thing.

    Attributes:
        kind: of the change.
        version: first two numbers.
        given: what is simulated.
        count: observations.
        median: the median.
        high: the 99th percentile.
    """

    kind: str
    version: str
    given: Given
    count: int
    median: Quantile
    high: Quantile


def relative_error(observed: float, simulated: float) -> float:
    """Of a quantile in seconds."""
    return (simulated - observed) / max(abs(observed), SHORTEST_S)


def forms(found: Mapping[Given, Iterable[Compared]]) -> list[Form]:
    """Of every kind of latency with `ENOUGH` observations, simulated from each of the keys."""
    made = [form for given, comparisons in found.items() for form in _of(given, comparisons)]
    return sorted(made, key=lambda one: (one.kind, one.version))


def _of(given: Given, comparisons: Iterable[Compared]) -> Iterator[Form]:
    for (gap, kind, version), part in parts_by_kind(comparisons):
        if gap or len(part) < ENOUGH:
            continue
        pooled = figures(kind, version, part)
        median, high = (
            _quantile(part, share, *pair)
            for share, pair in ((MEDIAN, pooled.median_s), (HIGH, pooled.high_s))
        )
        yield Form(kind, version, given, len(part), median, high)


def _quantile(part: Sequence[Compared], share: float, seen: float, pooled: float) -> Quantile:
    by_future = in_each_future(part, share) / 1_000
    lower, equal = (by_future < seen).mean(), (by_future == seen).mean()
    return Quantile(seen, pooled, float(np.median(by_future)), float(lower + equal / 2))


def in_each_future(part: Sequence[Compared], share: float) -> NDArray[np.float64]:
    """(S,) the quantile within each future, of what happens in it, in milliseconds."""
    its = np.stack([one.futures_ms for one in part])
    values: NDArray[np.float64] = np.nanquantile(its, share, axis=0)
    return values

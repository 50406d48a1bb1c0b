"""Figures of what was compared: coverage and quantiles; by kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from rebalance_core.timing.moves import GAP
from tests.recordings.timings.compared import Compared

ENOUGH = 30
"""Observations from which on quantiles of a kind are compared."""

WINDOWS_S = {
    "join": 20.0,
    "leave": 20.0,
    "kill": 20.0,
    "kill, orderly": 60.0,
    "expiry": 30.0,  # scans of the brokers within 10 s, then the own pass within 20 s
    "queues": 50.0,
    "topic created": 40.0,
    "topic deleted": 50.0,
    "broker down": 50.0,
    "broker expiry": 50.0,
    "broker up": 48.7,
    "master down": 50.0,
    "master up": 80.0,  # and each client's first heartbeat to it, 30 s later at most
    "subscribe": 50.0,
    "unsubscribe": 50.0,
    "resume": 20.0,
    "suspend": 20.0,
}
"""The windows of rocketmq.md §6.4 as rocketmq.md §13 corrects them, seconds; see `window_s`."""


def window_s(kind: str) -> float:
    """The longest that the reference gives a member after a change of that kind, in seconds."""
    return WINDOWS_S.get(kind) or WINDOWS_S[kind.split(",")[0]]


@dataclass(frozen=True)
class Figures:
    """Of the comparisons of one kind.

    Attributes:
        kind: of the change; of its members' latencies, or of its queues' gaps.
        version: first two numbers.
        count: how many.
        inside: within what is simulated.
        middle: within its 1st and 99th percentile.
        median_s: observed and simulated median, in seconds.
        high_s: observed and simulated 99th percentile, in seconds.
    """

    kind: str
    version: str
    count: int
    inside: int
    middle: int
    median_s: tuple[float, float]
    high_s: tuple[float, float]


def by_kind(comparisons: Iterable[Compared]) -> list[Figures]:
    """Figures of latencies by kind of change and version, and of gaps by the same."""
    return [
        figures(f"{kind}: gap" if gap else kind, version, part)
        for (gap, kind, version), part in parts_by_kind(comparisons)
    ]


def parts_by_kind(
    comparisons: Iterable[Compared],
) -> Iterator[tuple[tuple[bool, str, str], list[Compared]]]:
    """((of gaps, kind of change, version), the comparisons of it), latencies first."""

    def key(one: Compared) -> tuple[bool, str, str]:
        kind = one.change.kind
        # rocketmq.md §6.4 knows no other.
        name = kind if kind == "kill, orderly" else kind.split(",")[0]
        return one.what == GAP, name, ".".join(one.version.split(".")[:2])

    ordered = sorted(comparisons, key=key)
    for its, part in groupby(ordered, key=key):
        yield its, list(part)


def figures(kind: str, version: str, part: Sequence[Compared]) -> Figures:
    """Figures of comparisons of one kind; each future in which it happens counts alike."""
    simulated, weights = _pooled(part)
    observed = np.sort([one.observed_ms for one in part])
    quantiles = [
        (float(np.quantile(observed, share)) / 1_000, _quantile(simulated, weights, share) / 1_000)
        for share in (0.5, 0.99)
    ]
    return Figures(
        kind,
        version,
        len(part),
        sum(one.is_inside for one in part),
        sum(one.is_in_the_middle for one in part),
        quantiles[0],
        quantiles[1],
    )


def _pooled(part: Sequence[Compared]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Simulated values of all, ascending, with weights: each comparison's share of futures."""
    its = [one for one in part if one.share]
    values = np.concatenate([one.simulated_ms for one in its] or [np.zeros(0)])
    weights = np.concatenate(
        [np.full(len(one.simulated_ms), one.share / len(one.simulated_ms)) for one in its]
        or [np.zeros(0)]
    )
    order = np.argsort(values, kind="stable")
    return values[order], weights[order]


def _quantile(values: NDArray[np.float64], weights: NDArray[np.float64], share: float) -> float:
    if not len(values):
        return float("nan")
    total = np.cumsum(weights)
    return float(values[np.searchsorted(total, share * total[-1], side="left")])

"""Fits delays to a cluster's own latencies: rows of ``latencies`` from one or more nights.

A kind with at least `FEWEST` samples gets the quantiles of all its samples, including the measured
tail. Other kinds keep the delays of `timing.delays`. A night with many starts weighs more than
others, so each kind also reports its medians per night; otherwise a night under load could become
the norm unnoticed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from rebalance_core.contracts.observed import (
    QUEUE_TAKEN,
    REGISTRATION,
    START_UP,
    UNREGISTRATION,
)
from rebalance_core.timing.delay import Delay
from rebalance_core.timing.draws import DRAW_BITS

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import LatenciesRow

FEWEST: Final = 20
"""The minimum number of samples for a kind's own quantiles to be used."""
FEWEST_OF_A_NIGHT: Final = 5
"""The minimum number of samples for a night's median to be compared with those of other nights."""
_MOST_KNOTS = 1_024
_MS_US = 1_000
NAMES: Final = {
    START_UP: ("start-up", "start-ups"),
    REGISTRATION: ("registration", "registrations"),
    UNREGISTRATION: ("unregistration", "unregistrations"),
    QUEUE_TAKEN: ("queue taken", "queues taken"),
}
"""The names of the fitted kinds, singular and plural."""


@dataclass(frozen=True, slots=True)
class KindFit:
    """The samples of one kind of latency from all nights.

    Attributes:
        kind: the kind of ``latencies``.
        samples: the number of rows.
        nights: the number of runs with such rows.
        median_ms: the median of all samples; 0 without samples.
        p99_ms: their 99th percentile; 0 without samples.
        lowest_ms: the lowest median of any night with at least `FEWEST_OF_A_NIGHT` samples, or
            None.
        highest_ms: the highest such median.
        delay: the quantiles; None with fewer than `FEWEST` samples.
    """

    kind: str
    samples: int
    nights: int
    median_ms: float
    p99_ms: float
    lowest_ms: float | None
    highest_ms: float | None
    delay: Delay | None

    @property
    def text(self) -> str:
        """The basis of the kind's delays, as in "fitted from 212 start-ups of 7 nights"."""
        one, many = NAMES[self.kind]
        nights = f"{self.nights:,} night{'' if self.nights == 1 else 's'}"
        counted = f"{self.samples:,} {one if self.samples == 1 else many}"
        if self.delay is None:
            return f"default: {counted} of {nights}, {FEWEST} are needed"
        return f"fitted from {counted} of {nights}"

    @property
    def spread(self) -> str:
        """The range of the nights' medians; empty if fewer than two nights have one."""
        if self.lowest_ms is None or self.highest_ms is None or self.nights < 2:
            return ""
        return f"medians by night {self.lowest_ms:,.0f} to {self.highest_ms:,.0f} ms"

    def facts(self) -> dict[str, Any]:
        """Return the fit as a dictionary for JSON."""
        names = ("kind", "samples", "nights", "median_ms", "p99_ms", "lowest_ms", "highest_ms")
        values = {name: getattr(self, name) for name in names}
        return values | {"fitted": self.delay is not None, "basis": self.text}


@dataclass(frozen=True)
class Fit:
    """The fitted delays of a cluster.

    Attributes:
        kinds: one for each of `NAMES`, in that order.
    """

    kinds: tuple[KindFit, ...]

    def of_kind(self, kind: str) -> KindFit:
        """Return the fit of a kind."""
        return next(each for each in self.kinds if each.kind == kind)

    def delay(self, kind: str) -> Delay | None:
        """Return the delays of a kind, or None if those of `timing.delays` apply."""
        return self.of_kind(kind).delay


def fit_of(nights: Sequence[Iterable[LatenciesRow]]) -> Fit:
    """Fit delays to rows of ``latencies``.

    Args:
        nights: the rows of each run; only ``kind`` and ``ms`` are read, and kinds not in `NAMES`
            are ignored.
    """
    by_kind: dict[str, list[list[float]]] = {kind: [] for kind in NAMES}
    for rows in nights:
        of_night: dict[str, list[float]] = {}
        for row in rows:
            if row["kind"] in by_kind:
                of_night.setdefault(row["kind"], []).append(float(row["ms"]))
        for kind, samples in of_night.items():
            by_kind[kind].append(samples)
    return Fit(tuple(_kind_fit(kind, of_nights) for kind, of_nights in by_kind.items()))


def _kind_fit(kind: str, nights: Sequence[Sequence[float]]) -> KindFit:
    samples = sorted(ms for of_night in nights for ms in of_night)
    medians = [median(of_night) for of_night in nights if len(of_night) >= FEWEST_OF_A_NIGHT]
    return KindFit(
        kind=kind,
        samples=len(samples),
        nights=len(nights),
        median_ms=float(median(samples)) if samples else 0.0,
        p99_ms=float(np.percentile(samples, 99)) if samples else 0.0,
        lowest_ms=min(medians, default=None),
        highest_ms=max(medians, default=None),
        delay=delay_of(samples) if len(samples) >= FEWEST else None,
    )


def delay_of(samples: Sequence[float]) -> Delay:
    """Return the quantile function of two or more samples, in ms, from the smallest to the largest.

    It is linear between neighbouring samples. If there are more than 1,024 samples, it keeps that
    many evenly spaced quantiles, including the maximum.
    """
    shares = np.linspace(0, 1, min(len(samples), _MOST_KNOTS))
    ms = np.percentile(np.asarray(samples, np.float64), shares * 100)
    knots = [round(share * (1 << DRAW_BITS)) for share in shares.tolist()]
    return Delay(tuple(knots), tuple(round(value * _MS_US) for value in ms.tolist()))

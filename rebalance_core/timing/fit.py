"""Delays fitted to a cluster's own latencies: rows of ``latencies`` of one night or several.

Of a kind with at least `FEWEST` samples the quantiles are the cluster's own, with every sample in
them: the tail is what was measured, nothing is cut off. With fewer the delays are those of
`timing.delays`. A night with many starts counts for more, so each kind states the medians of its
nights: a night under load must not become the norm unnoticed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

import numpy as np

from rebalance_core.contracts.observed import (
    QUEUE_TAKEN,
    REGISTRATION,
    START_UP,
    UNREGISTRATION,
)
from rebalance_core.timing.delay import Delay
from rebalance_core.timing.draws import DRAW_BITS

FEWEST: Final = 20
"""Samples of a kind from which on its own quantiles are used."""
FEWEST_OF_A_NIGHT: Final = 5
"""Samples of a night from which on its median is compared with those of others."""
_MOST_KNOTS = 1_024
_MS_US = 1_000
NAMES: Final = {
    START_UP: ("start-up", "start-ups"),
    REGISTRATION: ("registration", "registrations"),
    UNREGISTRATION: ("unregistration", "unregistrations"),
    QUEUE_TAKEN: ("queue taken", "queues taken"),
}
"""The kinds that are fitted, in the singular and in the plural."""


@dataclass(frozen=True, slots=True)
class KindFit:
    """What the nights show of one kind.

    Attributes:
        kind: the kind of ``latencies``.
        samples: how many rows.
        nights: in how many of the runs.
        median_ms: the median of all samples; 0: none.
        p99_ms: their 99th percentile; 0: none.
        lowest_ms: the lowest median of a night of `FEWEST_OF_A_NIGHT` samples; None: no such night.
        highest_ms: the highest of them.
        delay: the quantiles; None: fewer than `FEWEST` samples.
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
        """What the delays of the kind rest on, as in "fitted from 212 start-ups of 7 nights"."""
        one, many = NAMES[self.kind]
        nights = f"{self.nights:,} night{'' if self.nights == 1 else 's'}"
        counted = f"{self.samples:,} {one if self.samples == 1 else many}"
        if self.delay is None:
            return f"default: {counted} of {nights}, {FEWEST} are needed"
        return f"fitted from {counted} of {nights}"

    @property
    def spread(self) -> str:
        """The medians of its nights; empty: fewer than two have one."""
        if self.lowest_ms is None or self.highest_ms is None or self.nights < 2:
            return ""
        return f"medians by night {self.lowest_ms:,.0f} to {self.highest_ms:,.0f} ms"

    def facts(self) -> dict[str, Any]:
        """Return the fit for programs."""
        names = ("kind", "samples", "nights", "median_ms", "p99_ms", "lowest_ms", "highest_ms")
        values = {name: getattr(self, name) for name in names}
        return values | {"fitted": self.delay is not None, "basis": self.text}


@dataclass(frozen=True)
class Fit:
    """Delays of a cluster.

    Attributes:
        kinds: one for each of `NAMES`, in their order.
    """

    kinds: tuple[KindFit, ...]

    def of_kind(self, kind: str) -> KindFit:
        """Return the fit of a kind."""
        return next(each for each in self.kinds if each.kind == kind)

    def delay(self, kind: str) -> Delay | None:
        """Return the delays of a kind; None: those of `timing.delays` hold."""
        return self.of_kind(kind).delay


def fit_of(nights: Sequence[Iterable[Mapping[str, Any]]]) -> Fit:
    """Fit delays to rows of ``latencies``.

    Args:
        nights: of each run the rows, of which ``kind`` and ``ms`` count; other kinds than `NAMES`
            are left out.
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
    """Return the quantile function of two or more samples, in ms, from the least to the largest.

    Between two neighbours it is linear. Of more than 1,024 samples this many evenly spaced
    quantiles are kept, the largest among them.
    """
    shares = np.linspace(0, 1, min(len(samples), _MOST_KNOTS))
    ms = np.percentile(np.asarray(samples, np.float64), shares * 100)
    knots = [round(share * (1 << DRAW_BITS)) for share in shares.tolist()]
    return Delay(tuple(knots), tuple(round(value * _MS_US) for value in ms.tolist()))

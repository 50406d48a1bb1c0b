"""Pairs the latencies that a group's logs show with the same latencies in its futures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rebalance_core.contracts.observed import (
    QUEUE_TAKEN,
    REGISTRATION,
    START_UP,
    UNREGISTRATION,
)
from rebalance_core.timing.comparison import Observation
from rebalance_core.timing.delays import QUEUE_NEXT
from rebalance_core.timing.draws import DRAW_BITS
from rebalance_core.timing.group_timeline import ProcessLifetime
from rebalance_core.timing.options import MS_US
from rebalance_core.timing.ticks import Ticks

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import LatenciesRow

Milliseconds = NDArray[np.float64]


class SimulatedLatencies:
    """The latencies of each process of a group in many futures."""

    def __init__(self, ticks: Ticks) -> None:
        self._ticks = ticks
        self._of: dict[str, list[ProcessLifetime]] = {}
        for lifetime in ticks.timeline.lifetimes:
            if not lifetime.stale_entry:
                self._of.setdefault(lifetime.client_id, []).append(lifetime)
        self._made: dict[tuple[str, int], Milliseconds] = {}

    def compared(self, rows: Sequence[LatenciesRow]) -> Iterator[tuple[LatenciesRow, Observation]]:
        """Yield each row that has a counterpart in the futures, with the observation of the two."""
        for row in rows:
            futures_ms = self._futures_ms(row)
            if futures_ms is not None and len(futures_ms):
                yield row, Observation(row["kind"], row["client_id"], row["ms"], futures_ms)

    def _futures_ms(self, row: LatenciesRow) -> Milliseconds | None:
        kind = row["kind"]
        if kind == QUEUE_TAKEN:
            return self._kept(kind, 0)
        lifetime = self._lifetime(row)
        return None if lifetime is None else self._kept(kind, lifetime.index)

    def _lifetime(self, row: LatenciesRow) -> ProcessLifetime | None:
        """Return the process whose join (or end, for a leave) is nearest to the row."""
        leaves = row["kind"] == UNREGISTRATION
        found = [
            lifetime
            for lifetime in self._of.get(row["client_id"] or "", ())
            if (
                lifetime.ending is not None and lifetime.ending.graceful
                if leaves
                else not lifetime.observed
            )
        ]

        def apart_us(lifetime: ProcessLifetime) -> int:
            moment = lifetime.joined
            if leaves and lifetime.ending is not None:
                moment = lifetime.ending.moment
            return abs(moment.event_us - row["at_ms"] * MS_US)

        return min(found, key=apart_us, default=None)

    def _kept(self, kind: str, lifetime: int) -> Milliseconds:
        key = kind, lifetime
        if key not in self._made:
            self._made[key] = self._simulated(kind, lifetime) / MS_US
        return self._made[key]

    def _simulated(self, kind: str, lifetime: int) -> NDArray[np.int64]:
        """Return the latency of a process in each future, in microseconds. If futures have several
        each, such as the steps from broker to broker, return as many quantiles of all of them as
        there are futures.
        """
        ticks = self._ticks
        if kind == START_UP:
            return np.asarray(ticks.start_up_us[lifetime], np.int64)
        if kind == REGISTRATION:
            brokers = list(ticks.timeline.lifetimes[lifetime].first_brokers)
            return _steps(ticks.registered[lifetime, brokers])
        if kind == UNREGISTRATION:  # one broker after another, so the times are cumulative
            return _steps(ticks.unregistered[lifetime])
        count = len(ticks.seeds)
        shares = (2 * np.arange(count, dtype=np.uint64) + np.uint64(1)) << np.uint64(DRAW_BITS - 1)
        fitted = ticks.options.fitted(QUEUE_TAKEN)
        draws = shares // np.uint64(count)
        if fitted is not None:
            return fitted.many(draws)
        trips = 2 if ticks.timeline.settings.ordered else 1
        return QUEUE_NEXT.many(draws) + trips * ticks.options.rtt_us


def _steps(times: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return S quantiles of the steps between one process's (brokers, S) times."""
    steps = np.diff(np.sort(times, axis=0), axis=0)
    if not steps.size:
        return np.zeros(0, np.int64)
    return np.quantile(steps, np.linspace(0, 1, steps.shape[1])).astype(np.int64)

"""Periods in which a producer avoids brokers, derived from its reports."""

from collections.abc import Iterable

from rebalance_core.contracts.producers import BY_FAILURE, BY_LATENCY
from rebalance_core.producers.fault_table import FaultTable
from rebalance_core.producers.send_record import Report
from rebalance_core.producers.tally import Isolation


class IsolationLog:
    """Follows one fault table; ``done`` contains the periods that no later result can change."""

    def __init__(self) -> None:
        self.done: list[Isolation] = []
        self._open: dict[str, Isolation] = {}
        self._closed: dict[str, Isolation] = {}
        """the last finished period, by broker"""

    def note(self, report: Report, faults: FaultTable) -> None:
        """Record the effect of the latest report on its broker."""
        name, at_ms = report.broker_name, report.at_ms
        item = faults.items.get(name)
        if item is None:
            return  # the strategy is off
        current = self._open.get(name)
        if current is not None and current.to_ms < at_ms:
            self._close(name)
            current = None
        if item.start_ms <= at_ms:
            if current is not None:  # up to 5.1.3, a fast result makes the broker available
                current.to_ms = at_ms
                self._close(name)
            return
        reason = BY_FAILURE if report.isolation else BY_LATENCY
        if current is None:
            stretch = Isolation(name, at_ms, item.start_ms, report.latency_ms, reason)
            self._open[name] = stretch
            return
        current.to_ms = item.start_ms
        current.latency_ms = max(current.latency_ms, report.latency_ms)
        current.reason = BY_FAILURE if BY_FAILURE in (reason, current.reason) else BY_LATENCY

    def forget_removed(self, faults: FaultTable, now_ms: int) -> None:
        """End the periods of brokers that the table has lost; up to 5.1.3, a choice may remove a
        broker.
        """
        for name in [name for name in self._open if name not in faults.items]:
            self._open[name].to_ms = min(self._open[name].to_ms, now_ms)
            self._close(name)

    def covers(self, broker_name: str, time_ms: int) -> bool:
        """Return True if the broker was avoided at a time no later than the last report."""
        stretches = (self._open.get(broker_name), self._closed.get(broker_name))
        return any(
            stretch is not None and stretch.from_ms < time_ms < stretch.to_ms
            for stretch in stretches
        )

    def all(self) -> Iterable[Isolation]:
        """Yield every period, ordered by start and broker."""
        stretches = [*self.done, *self._open.values()]
        return sorted(
            (s for s in stretches if s.to_ms > s.from_ms), key=lambda s: (s.from_ms, s.broker_name)
        )

    def _close(self, broker_name: str) -> None:
        self._closed[broker_name] = self._open.pop(broker_name)
        self.done.append(self._closed[broker_name])

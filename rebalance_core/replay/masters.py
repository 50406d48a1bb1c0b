"""Periods in which brokers had no master, and the number of queues affected in each epoch
(rocketmq.md §15).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from rebalance_core.model.events import MASTER_DOWN, MASTER_EVENTS, Event
from rebalance_core.replay.history import Epoch


@dataclass(frozen=True, slots=True)
class MasterOutage:
    """A period in which a broker had no master.

    Attributes:
        down_ms: its start.
        up_ms: its end; None if it continues.
        mode: the slaves' behaviour, according to the latest evidence; None if unknown.
    """

    down_ms: int
    up_ms: int | None
    mode: str | None

    def over(self, at_ms: int) -> bool:
        """Return whether the master has returned by a given moment."""
        return self.up_ms is not None and self.up_ms <= at_ms

    def overlaps(self, from_ms: int, to_ms: int | None) -> bool:
        """Return True if any part of the outage is in [from_ms, to_ms)."""
        return (to_ms is None or self.down_ms < to_ms) and not self.over(from_ms)


class MasterOutages:
    """The outages of masters in a group's history, by broker and in order.

    Args:
        all_events: the events, in any order; simultaneous events count together.
    """

    def __init__(self, all_events: Iterable[Event]) -> None:
        turns = sorted(
            (event for event in all_events if event.event_type in MASTER_EVENTS),
            key=lambda event: (event.broker_name or "", event.event_ms, event.sequence),
        )
        self._by_broker: dict[str, list[MasterOutage]] = {}
        for (broker, at_ms), at_once in groupby(turns, key=lambda e: (e.broker_name, e.event_ms)):
            last = list(at_once)[-1]
            outages = self._by_broker.setdefault(broker or "", [])
            begun = outages[-1] if outages and outages[-1].up_ms is None else None
            if last.event_type == MASTER_DOWN:
                if begun is not None:
                    outages[-1] = MasterOutage(begun.down_ms, None, last.detail)
                else:
                    outages.append(MasterOutage(at_ms, None, last.detail))
            elif begun is not None:
                outages[-1] = MasterOutage(begun.down_ms, at_ms, begun.mode)

    def outages_of(self, broker_name: str) -> list[MasterOutage]:
        """Return the outages of a broker's master, in order."""
        return self._by_broker.get(broker_name, [])

    @property
    def by_broker(self) -> dict[str, tuple[MasterOutage, ...]]:
        """The outages of every broker that had one."""
        return {name: tuple(outages) for name, outages in self._by_broker.items() if outages}

    def masterless_queues(self, epoch: Epoch, to_ms: int | None) -> int:
        """Return the number of readable queues whose brokers lack a master for part of an epoch.

        Args:
            epoch: the group's epoch.
            to_ms: when it ends; None if it is open.
        """
        without = {
            broker
            for broker, outages in self._by_broker.items()
            if any(outage.overlaps(epoch.from_ms, to_ms) for outage in outages)
        }
        queues = (queue for of_topic in epoch.readable.values() for queue in of_topic)
        return sum(queue.broker_name in without for queue in queues) if without else 0

"""Offsets after the loss of a master: a slave answers with an older copy, and a returning master
does not know the commits sent to the slave (rocketmq.md §15).

A master that has returned lists the members one by one, so for a few seconds clients hold, read and
commit queues that are not theirs, on all brokers of the topic.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from rebalance_core.model.events import REFUSED, SLAVE_READ, Event
from rebalance_core.model.times import SLAVE_COPY_MS
from rebalance_core.protocol.settling_windows import MASTER_BACK_MS
from rebalance_core.replay.changes import OwnerChange
from rebalance_core.replay.masters import MasterOutage, MasterOutages


@dataclass(frozen=True, slots=True)
class RoleSwitch:
    """A period in which commits on a queue are lost, or are made by clients other than its owner.

    Attributes:
        began_ms: its start.
        kept_ms: the time by which commits must have arrived for the answering broker to know them.
        settled_ms: when only the owner commits again, and to the master; None: unknown.
    """

    began_ms: int
    kept_ms: int
    settled_ms: int | None


def of_own_master(outage: MasterOutage) -> RoleSwitch:
    """Return an outage as it affects its own broker's queues."""
    settled_ms = None if outage.up_ms is None else outage.up_ms + MASTER_BACK_MS
    return RoleSwitch(outage.down_ms, outage.down_ms - SLAVE_COPY_MS, settled_ms)


class RoleSwitches:
    """The outages of the masters of a group's queues.

    Args:
        all_events: the group's events, in any order.
        brokers: the brokers with a queue that the group could ever read.
    """

    def __init__(self, all_events: Iterable[Event], brokers: Collection[str]) -> None:
        self._outages = MasterOutages(all_events)
        self._returns = {
            broker: [
                outage.up_ms
                for outage in self._outages.outages_of(broker)
                if outage.up_ms is not None
            ]
            for broker in sorted(brokers)
        }

    def until(self, broker_name: str, at_ms: int) -> list[RoleSwitch]:
        """Return the broker's outages that began by a given moment, in order."""
        of_broker = map(of_own_master, self._outages.outages_of(broker_name))
        others = (
            RoleSwitch(up_ms, up_ms, up_ms + MASTER_BACK_MS)
            for broker, returns in self._returns.items()
            for up_ms in returns
            if broker != broker_name
        )
        switches = [switch for switch in (*of_broker, *others) if switch.began_ms <= at_ms]
        return sorted(switches, key=lambda switch: (switch.began_ms, switch.kept_ms))

    def went_to_slaves(self, broker_name: str, sent_ms: int, asked_ms: int) -> bool:
        """Return True if a master that returned by ``asked_ms`` lacks a commit sent at
        ``sent_ms``.
        """
        return any(
            outage.down_ms <= sent_ms and outage.over(asked_ms) and not outage.over(sent_ms)
            for outage in self._outages.outages_of(broker_name)
        )

    def has_no_end(self, change: OwnerChange) -> bool:
        """Return whether only slaves, which do not know a queue's end, are up throughout the
        window.

        Clients ask only the master for ``maxOffset`` and the search by timestamp.
        """
        return any(
            outage.mode in (REFUSED, SLAVE_READ)
            and outage.down_ms <= change.earliest_ms
            and not outage.over(change.latest_ms)
            for outage in self._outages.outages_of(change.queue.broker_name)
        )

"""When brokers had no master, and offsets after the loss of one (rocketmq.md §15)."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import groupby

from rebalance_core.model.events import MASTER_DOWN, MASTER_EVENTS, REFUSED, SLAVE_READ, Event
from rebalance_core.model.times import SLAVE_COPY_MS
from rebalance_core.protocol.members import MASTER_BACK_MS
from rebalance_core.replay.changes import OwnerChange
from rebalance_core.replay.history import Epoch

# When brokers had no master, and how many queues that concerns in each epoch (rocketmq.md §15).


@dataclass(frozen=True, slots=True)
class MasterOutage:
    """One stretch of time in which a broker had no master.

    Attributes:
        down_ms: its beginning.
        up_ms: its end; None: it lasts.
        mode: what the slaves do, the last that is known of it; None: not known.
    """

    down_ms: int
    up_ms: int | None
    mode: str | None

    def over(self, at_ms: int) -> bool:
        """The master is back at a moment."""
        return self.up_ms is not None and self.up_ms <= at_ms

    def overlaps(self, from_ms: int, to_ms: int | None) -> bool:
        """Some of it lies in [from_ms, to_ms)."""
        return (to_ms is None or self.down_ms < to_ms) and not self.over(from_ms)


class MasterOutages:
    """The outages of masters in one group's history, by broker and in order.

    Args:
        all_events: in any order; those of one instant count together.
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

    def of(self, broker_name: str) -> list[MasterOutage]:
        """The outages of one broker's master, in order."""
        return self._by_broker.get(broker_name, [])

    @property
    def by_broker(self) -> dict[str, tuple[MasterOutage, ...]]:
        """The outages of every broker that had one."""
        return {name: tuple(outages) for name, outages in self._by_broker.items() if outages}

    def masterless_queues(self, epoch: Epoch, to_ms: int | None) -> int:
        """Readable queues of brokers that have no master at some time of an epoch.

        Args:
            epoch: of the group.
            to_ms: when it ends; None: it is open.
        """
        without = {
            broker
            for broker, outages in self._by_broker.items()
            if any(outage.overlaps(epoch.from_ms, to_ms) for outage in outages)
        }
        queues = (queue for of_topic in epoch.readable.values() for queue in of_topic)
        return sum(queue.broker_name in without for queue in queues) if without else 0


# Offsets after the loss of a master: a slave answers with an older copy, and when the master is
# back it knows nothing of what was committed to the slave (rocketmq.md §15).
#
# A master that is back lists the members one by one, so for some seconds clients hold, read and
# commit queues that are not theirs, on all brokers of the topic.


@dataclass(frozen=True, slots=True)
class RoleSwitch:
    """Time in which commits of a queue get lost, or are made by others than its owner.

    Attributes:
        began_ms: its beginning.
        kept_ms: what had arrived by then, whoever answers knows.
        settled_ms: by when the owner alone commits again, to the master; None: not known.
    """

    began_ms: int
    kept_ms: int
    settled_ms: int | None


def of_own_master(outage: MasterOutage) -> RoleSwitch:
    """Return an outage as the queues of its own broker meet it."""
    settled_ms = None if outage.up_ms is None else outage.up_ms + MASTER_BACK_MS
    return RoleSwitch(outage.down_ms, outage.down_ms - SLAVE_COPY_MS, settled_ms)


class RoleSwitches:
    """The outages of the masters of one group's queues.

    Args:
        all_events: of the group, in any order.
        brokers: those with a queue that the group ever could read.
    """

    def __init__(self, all_events: Iterable[Event], brokers: Collection[str]) -> None:
        self._outages = MasterOutages(all_events)
        self._returns = {
            broker: [one.up_ms for one in self._outages.of(broker) if one.up_ms is not None]
            for broker in sorted(brokers)
        }

    def until(self, broker_name: str, at_ms: int) -> list[RoleSwitch]:
        """Return those of a broker's outages that began not later than a moment, in order."""
        of_broker = map(of_own_master, self._outages.of(broker_name))
        others = (
            RoleSwitch(up_ms, up_ms, up_ms + MASTER_BACK_MS)
            for broker, returns in self._returns.items()
            for up_ms in returns
            if broker != broker_name
        )
        found = [switch for switch in (*of_broker, *others) if switch.began_ms <= at_ms]
        return sorted(found, key=lambda switch: (switch.began_ms, switch.kept_ms))

    def went_to_slaves(self, broker_name: str, sent_ms: int, asked_ms: int) -> bool:
        """True if a commit of one moment is not what the master that is back says at another."""
        return any(
            one.down_ms <= sent_ms and one.over(asked_ms) and not one.over(sent_ms)
            for one in self._outages.of(broker_name)
        )

    def has_no_end(self, change: OwnerChange) -> bool:
        """In all of the window only slaves are there, which do not know the end of a queue.

        ``maxOffset`` and the search by timestamp are asked of the master alone.
        """
        return any(
            one.mode in (REFUSED, SLAVE_READ)
            and one.down_ms <= change.earliest_ms
            and not one.over(change.latest_ms)
            for one in self._outages.of(change.queue.broker_name)
        )

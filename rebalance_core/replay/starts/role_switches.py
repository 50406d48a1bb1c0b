"""Offsets after the loss of a master: a slave answers with an older copy, and when the master is
back it knows nothing of what was committed to the slave (rocketmq.md §15).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rebalance_core.model.events import REFUSED, SLAVE_READ, Event
from rebalance_core.model.timers import SLAVE_COPY_MS
from rebalance_core.protocol.windows import MASTER_BACK_MS
from rebalance_core.replay.changes import Change
from rebalance_core.replay.masters import MasterOutage, MasterOutages


@dataclass(frozen=True, slots=True)
class RoleSwitch:
    """What the outages of a queue's master so far make of its commits.

    Attributes:
        outage: the last one.
        low: the lowest offset that master or slaves can have kept of all that was committed.
    """

    outage: MasterOutage
    low: int

    @property
    def copied_ms(self) -> int:
        """What the master had by then, its slaves have surely copied."""
        return copied_ms(self.outage)

    @property
    def settled_ms(self) -> int | None:
        """By when all clients commit to the master again, and know all members; None: not yet."""
        return None if self.outage.up_ms is None else self.outage.up_ms + MASTER_BACK_MS


def copied_ms(outage: MasterOutage) -> int:
    """What the master had by then, its slaves have surely copied before it went."""
    return outage.down_ms - SLAVE_COPY_MS


class RoleSwitches:
    """The outages of the masters of one group's queues.

    Args:
        all_events: of the group, in any order.
    """

    def __init__(self, all_events: Iterable[Event]) -> None:
        self._outages = MasterOutages(all_events)

    def until(self, broker_name: str, at_ms: int) -> list[MasterOutage]:
        """The outages that began not later than a moment, in order."""
        return [one for one in self._outages.of(broker_name) if one.down_ms <= at_ms]

    def went_to_slaves(self, broker_name: str, sent_ms: int, asked_ms: int) -> bool:
        """What was committed at a moment is not what the master that is back says at another."""
        return any(
            one.down_ms <= sent_ms and one.over(asked_ms) and not one.over(sent_ms)
            for one in self._outages.of(broker_name)
        )

    def has_no_end(self, change: Change) -> bool:
        """In all of the window only slaves are there, which do not know the end of a queue.

        ``maxOffset`` and the search by timestamp are asked of the master alone.
        """
        return any(
            one.mode in (REFUSED, SLAVE_READ)
            and one.down_ms <= change.earliest_ms
            and not one.over(change.latest_ms)
            for one in self._outages.of(change.queue.broker_name)
        )

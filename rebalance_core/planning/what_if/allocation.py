"""Who owns what in one settled state of a group, and what differs between two."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from rebalance_core.model.queue import MessageQueue, sort_queues
from rebalance_core.planning.holders import owners_of
from rebalance_core.planning.movement import StepMovement, movement_of_epoch
from rebalance_core.planning.strategies.planning_strategy import Owners, PlanningStrategy
from rebalance_core.replay.history import Epoch


@dataclass(frozen=True)
class Allocation:
    """The settled allocation of a group.

    Attributes:
        strategy: What all members use; ``strategy.of_rocketmq`` says whether RocketMQ has it.
        client_ids: cidAll, one entry a process.
        owners: Queue -> client ids; () is none. All readable queues of the group's topics, and
            what is held beside them (a frozen topic, CONFIG's missing queues), in RocketMQ's order.
        loads: Client id -> queues that it holds, in Java's order of the members.
        orphaned: Readable queues with no owner.
        shared: Queues held by more than one process.
        frozen_topics: Topics without a readable queue, or whose strategy throws: members keep what
            they hold of them, joiners get nothing.
        figures: The rows of `group_metrics`; of the state before, what it moves is everything.
    """

    strategy: PlanningStrategy
    client_ids: tuple[str, ...]
    owners: Owners
    loads: Mapping[str, int]
    orphaned: tuple[MessageQueue, ...]
    shared: tuple[MessageQueue, ...]
    frozen_topics: frozenset[str]
    figures: StepMovement

    @property
    def peak(self) -> int:
        """Most queues of one member."""
        return max(self.loads.values(), default=0)

    @property
    def idle(self) -> tuple[str, ...]:
        """Members without a queue."""
        return tuple(client_id for client_id, load in self.loads.items() if load == 0)


def allocation_of(
    strategy: PlanningStrategy, client_ids: tuple[str, ...], epoch: Epoch
) -> Allocation:
    """The allocation of a settled epoch.

    Args:
        strategy: What all members use.
        client_ids: cidAll.
        epoch: The epoch.
    """
    held = owners_of(epoch.holdings)
    readable = [queue for queues in epoch.readable.values() for queue in queues]
    owners = {queue: held.get(queue, ()) for queue in sort_queues({*readable, *held})}
    holders = Counter(queue for queues in epoch.holdings.values() for queue in queues)
    loads = dict.fromkeys(client_ids, 0)
    loads.update(Counter(client_id for clients in held.values() for client_id in clients))
    return Allocation(
        strategy=strategy,
        client_ids=client_ids,
        owners=MappingProxyType(owners),
        loads=MappingProxyType(loads),
        orphaned=tuple(queue for queue in owners if not owners[queue]),
        shared=tuple(queue for queue in owners if holders[queue] > 1),
        frozen_topics=epoch.frozen_topics,
        figures=movement_of_epoch(epoch),
    )


def changed_owners(
    before: Allocation, after: Allocation
) -> dict[MessageQueue, tuple[tuple[str, ...], tuple[str, ...]]]:
    """Queues whose owners differ -> owners before and after; queues that go away too."""
    both = sort_queues(before.owners.keys() | after.owners.keys())
    pairs = ((queue, before.owners.get(queue, ()), after.owners.get(queue, ())) for queue in both)
    return {queue: (was, now) for queue, was, now in pairs if was != now}

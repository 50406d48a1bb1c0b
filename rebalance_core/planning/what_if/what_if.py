"""What if: who owns what before and after a change, what moves, and how even the result is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from rebalance_core.model.errors import UsageError
from rebalance_core.model.group_settings import CLUSTERING
from rebalance_core.model.queue import MessageQueue, sort_queues
from rebalance_core.planning.holders import owners_of, previous_owner
from rebalance_core.planning.movement import Movement, StepMovement, movement_of_epoch
from rebalance_core.planning.strategies.spi import Owners, PlanningStrategy
from rebalance_core.planning.what_if.apply_change import apply_change
from rebalance_core.planning.what_if.change import Change, read_change
from rebalance_core.planning.what_if.planned_group import (
    Members,
    PlannedGroup,
    Queues,
    Strategy,
    read_group,
    refuse,
)
from rebalance_core.planning.what_if.what_if_table import what_if_table
from rebalance_core.replay.history import Epoch
from rebalance_core.replay.settle import Holdings, settle, strategy_key


@dataclass(frozen=True)
class Allocation:
    """The settled allocation of a group at one moment.

    Attributes:
        strategy: What all members use; ``strategy.of_rocketmq`` says whether RocketMQ has it.
        client_ids: cidAll, one entry a process.
        owners: Queue -> client ids; () is nobody. All readable queues of the group's topics, and
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


@dataclass(frozen=True)
class WhatIf:
    """Before and after; ``str()`` is a table to read.

    Attributes:
        change: What was asked.
        before: Today.
        after: Once every member has seen the change.
    """

    change: Change
    before: Allocation
    after: Allocation

    @property
    def movement(self) -> Movement:
        """What the step moves, over all topics; ``after.figures.topics`` has it by topic.

        Look at its ``caveat`` before you use ``minimum_moves`` or ``amplification``.
        """
        return self.after.figures.group

    @property
    def moves(self) -> int:
        """Queues that somebody takes, new ones included."""
        return self.movement.moved

    @property
    def minimum(self) -> int | None:
        """Fewest that any balanced result must move."""
        return self.movement.minimum_moves

    @property
    def amplification(self) -> float | None:
        """Moves / minimum; None at 0 and where there is no minimum."""
        return self.movement.amplification

    @property
    def moved(self) -> dict[MessageQueue, tuple[tuple[str, ...], tuple[str, ...]]]:
        """Queues whose owners differ -> owners before and after; queues that go away too."""
        both = sort_queues(self.before.owners.keys() | self.after.owners.keys())
        pairs = ((q, self.before.owners.get(q, ()), self.after.owners.get(q, ())) for q in both)
        return {queue: (was, now) for queue, was, now in pairs if was != now}

    def __str__(self) -> str:
        """The table of `what_if_table`."""
        return what_if_table(self)


def what_if(
    members: Members,
    queues: Queues,
    strategy: Strategy,
    change: Change | Mapping[str, Any],
    *,
    message_model: str = CLUSTERING,
) -> WhatIf:
    """What a change would do to a group, computed by the replay's own pass. No JVM, no Spark.

    Both states are settled: every member sees the same, current view. Retry topics are left out.
    Strategies that RocketMQ lacks get the same lists as RocketMQ's own, so a member that does not
    subscribe a topic counts under them too, and its share is nobody's.

    Args:
        members: Client ids (an id twice is two processes; all subscribe every topic), or client id
            -> the topics it subscribes. Topics that nobody subscribes are not the group's.
        queues: Readable queues, or topic -> broker name -> number of queues.
        strategy: A text (`planning_strategy`) or an object.
        change: A `Change`, or a mapping with its attributes as keys.
        message_model: CLUSTERING or BROADCASTING.

    Raises:
        UsageError: Wrong input; the message has a line for each mistake.

    >>> result = what_if(["10.0.0.1@1#1", "10.0.0.2@1#1"], {"orders": {"broker-a": 8}}, "AVG",
    ...                  {"add_consumers": 1})
    >>> result.moves, result.minimum, result.amplification, result.after.peak
    (3, 2, 1.5, 3)
    """
    mistakes: list[str] = []
    group = read_group(members, queues, strategy, message_model, mistakes)
    try:
        change = read_change(change)
    except UsageError as error:
        mistakes.append(str(error))
    refuse(mistakes)
    assert group is not None
    assert isinstance(change, Change)
    changed = apply_change(group, change)
    before = _settled(group, {}, initial=True)
    after = _settled(changed, before.holdings, initial=False)
    return WhatIf(change, _allocation(group, before), _allocation(changed, after))


def _settled(group: PlannedGroup, before: Holdings, *, initial: bool) -> Epoch:
    """The group's epoch once every member has run a pass."""
    state = group.state()
    asked = group.strategy.as_allocation(previous_owner(before, set(group.client_ids)))
    strategies = {strategy_key(member): asked for member in state.members.values()}
    settled = settle(state, before, strategies)
    return Epoch(
        number=0 if initial else 1, from_ms=0, latest_ms=0, retry_latest_ms=0,
        seen_late=False, causes=(), initial=initial, lost=frozenset(), members=state.members,
        readable=state.readable_by_topic(), frozen_topics=settled.frozen_topics,
        before=before, holdings=settled.holdings,
    )  # fmt: skip


def _allocation(group: PlannedGroup, epoch: Epoch) -> Allocation:
    held = owners_of(epoch.holdings)
    readable = [queue for queues in epoch.readable.values() for queue in queues]
    owners = {queue: held.get(queue, ()) for queue in sort_queues({*readable, *held})}
    holders = Counter(queue for queues in epoch.holdings.values() for queue in queues)
    loads = dict.fromkeys(group.client_ids, 0)
    loads.update(Counter(client_id for clients in held.values() for client_id in clients))
    return Allocation(
        strategy=group.strategy,
        client_ids=group.client_ids,
        owners=MappingProxyType(owners),
        loads=MappingProxyType(loads),
        orphaned=tuple(queue for queue in owners if not owners[queue]),
        shared=tuple(queue for queue in owners if holders[queue] > 1),
        frozen_topics=epoch.frozen_topics,
        figures=movement_of_epoch(epoch),
    )

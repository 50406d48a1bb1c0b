"""Groups under strategies that RocketMQ lacks: the replay's epochs, allocated otherwise.

What a group's epochs are does not depend on its strategy. So a group is replayed once, under AVG,
and every own strategy goes through the same members and queues, with its own allocation of the
epoch before: the same pass, the same movement and balance as everywhere else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rebalance_core.model.queue import MessageQueue, is_retry_topic
from rebalance_core.planning.movement import movement_of_epoch, owners_of
from rebalance_core.planning.spi import PlanningStrategy
from rebalance_core.replay.changes import holders_by_queue
from rebalance_core.replay.group_state import GroupState
from rebalance_core.replay.history import Epoch, GroupHistory, Replay, replay_history
from rebalance_core.replay.intervals import count_shared, ownership_rows
from rebalance_core.replay.settle import settle, strategy_key
from rebalance_core.strategies import parse_strategy

Row = dict[str, Any]

STEPS, OWNERSHIP = "steps", "ownership"
_ANY_BROKER = "any"


@dataclass(slots=True)
class RecordedState(GroupState):
    """The state of a group as an epoch has it."""

    readable: dict[str, list[MessageQueue]] = field(default_factory=dict)

    def readable_queues(self, topic: str) -> list[MessageQueue]:
        """The epoch's."""
        return self.readable.get(topic, [])


@dataclass(frozen=True)
class OwnReplays:
    """Own strategies by their numbers; called once for every group. Travels to the tasks.

    Cost: that of the replay, hundreds of times that of the kernels.
    """

    strategies: Sequence[tuple[int, PlanningStrategy]]
    include_retry_topics: bool

    def __call__(self, table: str, history: GroupHistory) -> Iterator[tuple[int, list[Row]]]:
        """(number of the strategy, its rows of ``steps`` or ``ownership``)."""
        base = recorded_replay(history, self.include_retry_topics)
        identity = {"cluster": history.cluster, "consumer_group": history.consumer_group}
        for number, strategy in self.strategies:
            epochs = own_epochs(base, strategy, self.include_retry_topics)
            if table == STEPS:
                rows = [step_row(epoch) for epoch in epochs]
            else:
                rows = ownership_rows(Replay(history, epochs))
            yield number, [identity | row for row in rows]


def recorded_replay(history: GroupHistory, include_retry_topics: bool = True) -> Replay:
    """The epochs of a group whose members all have one strategy."""
    average = parse_strategy("AVG")
    return replay_history(
        history,
        lambda key: average,
        include_retry_topics=include_retry_topics,
        strategy_override="AVG",
    )


def own_epochs(
    base: Replay, strategy: PlanningStrategy, include_retry_topics: bool = True
) -> list[Epoch]:
    """The same epochs with the holdings that the strategy gives, step by step."""
    epochs: list[Epoch] = []
    before: dict[Any, frozenset[MessageQueue]] = {}
    for epoch in base.epochs:
        state = _state(base.history, epoch, include_retry_topics)
        present = {client_id for client_id, _ in epoch.members}
        previous = {
            queue: next((owner for owner in owners if owner in present), None)
            for queue, owners in owners_of(before).items()
        }
        asked = strategy.as_allocation(previous)
        settled = settle(state, before, {strategy_key(m): asked for m in epoch.members.values()})
        epochs.append(
            replace(
                epoch,
                before=before,
                holdings=settled.holdings,
                frozen_topics=settled.frozen_topics,
            )
        )
        before = settled.holdings
    return epochs


def step_row(epoch: Epoch) -> Row:
    """The figures of one step as ``plan_steps`` has them, before the variant's columns."""
    figures = movement_of_epoch(epoch).group
    holders = holders_by_queue(epoch.holdings)
    readable = [queue for queues in epoch.readable.values() for queue in queues]
    return {
        "epoch": epoch.number,
        "change_ms": epoch.from_ms,
        "causes": list(epoch.causes),
        "status": epoch.status,
        "members": figures.members,
        "queues": figures.queues,
        "moved": figures.moved,
        "voluntary_moves": figures.voluntary_moves,
        "minimum_moves": figures.minimum_moves,
        "amplification": figures.amplification,
        "stickiness": figures.stickiness,
        "max_queues": figures.max_queues,
        "min_queues": figures.min_queues,
        "peak_ratio": figures.peak_ratio,
        "idle_members": figures.idle_members,
        "orphaned": sum(queue not in holders for queue in readable),
        "shared": count_shared(holders.values()),
    }


def _state(history: GroupHistory, epoch: Epoch, include_retry_topics: bool) -> RecordedState:
    retry = any(is_retry_topic(topic) for topic in epoch.readable)
    return RecordedState(
        consumer_group=history.consumer_group,
        settings=history.settings,
        include_retry_topics=include_retry_topics,
        members=epoch.members,
        retry_brokers={_ANY_BROKER} if retry else set(),
        last_topics=frozenset(epoch.readable),
        readable=epoch.readable,
    )

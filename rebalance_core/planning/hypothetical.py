"""Groups under strategies that RocketMQ lacks: the replay's epochs, allocated otherwise.

What a group's epochs are does not depend on its strategy. So a group is replayed once, allocating
nothing, and every own strategy goes through the same members and queues, with its own allocation of
the epoch before: the same pass, the same movement and balance as everywhere else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from rebalance_core.model.queue import MessageQueue, is_retry_topic
from rebalance_core.planning.holders import previous_owner
from rebalance_core.planning.movement import figures_of_epoch
from rebalance_core.planning.strategies.spi import PlanningStrategy
from rebalance_core.replay.group_state import GroupState, Member
from rebalance_core.replay.history import Epoch, GroupHistory, Replay, replay_history
from rebalance_core.replay.intervals import ownership_rows
from rebalance_core.replay.settle import settle, strategy_key
from rebalance_core.strategies import AllocationStrategy

Row = dict[str, Any]

STEPS, OWNERSHIP = "steps", "ownership"
_ANY_BROKER = "any"
ANY_STRATEGY = "AVG"
"""Which one stands in the epochs' members; a replay by the broker asks only AVG and the circle."""
_FIGURES = (
    "members", "queues", "moved", "voluntary_moves", "minimum_moves", "amplification", "stickiness",
    "max_queues", "min_queues", "peak_ratio", "idle_members",
)  # fmt: skip


@dataclass(slots=True)
class RecordedState(GroupState):
    """The state of a group as an epoch has it."""

    readable: dict[str, list[MessageQueue]] = field(default_factory=dict)
    topics_asked: dict[tuple[frozenset[str], str], list[str]] = field(default_factory=dict)

    def readable_by_topic(self) -> dict[str, list[MessageQueue]]:
        """The epoch's."""
        return self.readable

    def topics_of(self, member: Member) -> list[str]:
        """As ever; most members subscribe alike, so it is found out once."""
        asked = (member.subscriptions, member.message_model)
        if asked not in self.topics_asked:
            self.topics_asked[asked] = GroupState.topics_of(self, member)
        return self.topics_asked[asked]


@dataclass(frozen=True)
class _Nothing(AllocationStrategy):
    """What a replay asks of which only the epochs are wanted."""

    @property
    def name(self) -> str:
        return ANY_STRATEGY

    def allocate(
        self, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        return []


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
    """The epochs of a group whose members all have one strategy; nobody holds anything in them."""
    nothing = _Nothing()
    return replay_history(
        history,
        lambda key: nothing,
        include_retry_topics=include_retry_topics,
        strategy_override=ANY_STRATEGY,
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
        asked = strategy.as_allocation(previous_owner(before, present))
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
    figures = figures_of_epoch(epoch)[-1]
    holders = Counter(chain.from_iterable(epoch.holdings.values()))
    readable = chain.from_iterable(epoch.readable.values())
    return {
        "epoch": epoch.number,
        "change_ms": epoch.from_ms,
        "causes": list(epoch.causes),
        "status": epoch.status,
        **{name: figures[name] for name in _FIGURES},
        "orphaned": sum(queue not in holders for queue in readable),
        "shared": sum(processes > 1 for processes in holders.values()),
    }


def _state(history: GroupHistory, epoch: Epoch, include_retry_topics: bool) -> RecordedState:
    retry = any(is_retry_topic(topic) for topic in epoch.readable)
    return RecordedState(
        consumer_group=history.consumer_group,
        settings=history.settings,
        include_retry_topics=include_retry_topics,
        members=epoch.members,
        retry_brokers={_ANY_BROKER} if retry else set(),
        pop_topics=set(epoch.shared_topics),
        topics=frozenset(epoch.readable),
        readable=epoch.readable,
    )

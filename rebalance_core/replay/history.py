"""From events to epochs: the whole group replayed instant by instant."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from rebalance_core.model import events
from rebalance_core.model.events import OBSERVED, Event
from rebalance_core.model.group_settings import GroupSettings
from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.verdicts import EMPTY, FROZEN, SETTLED
from rebalance_core.protocol.members import NOTIFIED_MS, ROUTE_MS, window_ms
from rebalance_core.replay.group_state import GroupState, GroupView, UnknownMember, group_view
from rebalance_core.replay.settle import (
    Holdings,
    Settled,
    StrategyKey,
    Taken,
    settle,
    strategy_key,
)
from rebalance_core.replay.shared_topics import Member, ProcessKey, SharedTopic
from rebalance_core.strategies import AllocationStrategy


@dataclass(frozen=True, slots=True)
class GroupHistory:
    """Everything known about one group; offsets sorted by nothing, events by nothing."""

    cluster: str
    consumer_group: str
    settings: GroupSettings
    events: tuple[Event, ...]
    queue_offsets: tuple[QueueOffset, ...] | None = None
    """None: no observation was given at all."""
    committed_offsets: tuple[CommittedOffset, ...] | None = None
    """None: not given, so nothing is known; empty: nothing was committed."""
    mates: tuple[GroupHistory, ...] = ()
    """Other groups that share client instances with it; only time goes by them."""


@dataclass(frozen=True, slots=True)
class QueueOffset:
    """One row of queue_offsets."""

    queue: MessageQueue
    observed_ms: int
    min_offset: int
    max_offset: int
    head_cached: bool | None = None


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """One row of committed_offsets."""

    queue: MessageQueue
    client_id: str | None
    observed_ms: int
    committed_offset: int


@dataclass(frozen=True, slots=True)
class Epoch:
    """One epoch with the state it settles to and the holdings just before it."""

    number: int
    from_ms: int
    latest_ms: int
    retry_latest_ms: int
    seen_late: bool
    """Members may run passes before they, or the broker they ask, know what happened."""
    causes: tuple[str, ...]
    initial: bool
    """Only OBSERVED events: nothing changed, this is how things were."""
    lost: frozenset[ProcessKey]
    """Processes that ended here without a chance to persist."""
    view: GroupView
    frozen_topics: frozenset[str]
    before: Holdings
    holdings: dict[ProcessKey, frozenset[MessageQueue]]
    taken: Mapping[ProcessKey, Taken] = field(default_factory=dict)
    """What each process takes messages from beside its holdings."""
    unsure: frozenset[MessageQueue] = frozenset()
    """Queues that a member of unknown subscriptions may hold, and nobody else does."""
    unsure_before: frozenset[MessageQueue] = frozenset()
    """The same just before it."""

    @property
    def members(self) -> Mapping[ProcessKey, Member]:
        """The live processes."""
        return self.view.members

    @property
    def readable(self) -> Mapping[str, Sequence[MessageQueue]]:
        """MqAll of each topic, without queues of the shared topics."""
        return self.view.readable

    @property
    def shared(self) -> Mapping[str, SharedTopic]:
        """Topics that some member pops: no client owns a queue of them alone."""
        return self.view.shared

    @property
    def all_known(self) -> bool:
        """True if it is known what each member subscribes."""
        return all(member.subscriptions_known for member in self.members.values())

    @property
    def status(self) -> str:
        """EMPTY, FROZEN or SETTLED."""
        if not self.members:
            return EMPTY
        return FROZEN if self.frozen_topics else SETTLED


@dataclass(slots=True)
class Replay:
    """The epochs of a group, in order, and the events that name unknown members."""

    history: GroupHistory
    epochs: list[Epoch] = field(default_factory=list)
    unknown_members: list[Event] = field(default_factory=list)

    def to_ms(self, number: int) -> int | None:
        """When the epoch of this number ends; None while it is open."""
        following = number + 1
        return self.epochs[following].from_ms if following < len(self.epochs) else None

    def is_transient(self, epoch: Epoch) -> bool:
        """True when the epoch ends before the group can have settled."""
        end = self.to_ms(epoch.number)
        return end is not None and end < epoch.latest_ms


@dataclass(slots=True)
class _Instant:
    """What the events of one instant did."""

    causing: list[Event] = field(default_factory=list)
    lost: set[ProcessKey] = field(default_factory=set)


def replay_history(
    history: GroupHistory,
    strategy_for: Callable[[StrategyKey], AllocationStrategy],
    *,
    include_retry_topics: bool = True,
    strategy_override: str | None = None,
) -> Replay:
    """Replay a group: every instant's events, then one pass of all members on the new view.

    Cost: members x topics allocations an epoch. Nothing here is fast; it is what the kernels are
    compared with.
    """
    strategies: dict[StrategyKey, AllocationStrategy] = {}

    def settled(view: GroupView, before: Settled) -> Settled:
        for key in map(strategy_key, view.members.values()):
            if key not in strategies:
                strategies[key] = strategy_for(key)
        return settle(view, before.holdings, strategies, before.taken)

    return replay_events(
        history,
        settled,
        include_retry_topics=include_retry_topics,
        strategy_override=strategy_override,
    )


def replay_events(
    history: GroupHistory,
    settled: Callable[[GroupView, Settled], Settled],
    *,
    include_retry_topics: bool = True,
    strategy_override: str | None = None,
) -> Replay:
    """Replay a group's events, and ask ``settled`` at each epoch who holds what from now on.

    When epochs begin, and what members see in them, does not depend on who holds what.

    Args:
        history: the group's.
        settled: of the group's view and what came of the view before.
        include_retry_topics: retry topics are topics of the group.
        strategy_override: of all members.
    """
    state = GroupState(
        history.consumer_group, history.settings, include_retry_topics, strategy_override
    )
    replay = Replay(history)
    before = Settled({}, frozenset())
    settled_by = retry_settled_by = 0
    for at_ms, simultaneous in _instants(history.events):
        signature, retry_brokers = state.signature(), set(state.retry_brokers)
        masterless = dict(state.routes.masterless)
        instant = _apply(state, simultaneous, replay.unknown_members)
        turned = masterless.items() ^ state.routes.masterless.items()
        unsettled_ms = _unsettled_ms(state, simultaneous, {name for name, _ in turned})
        if replay.epochs:
            settled_by = max(settled_by, unsettled_ms)
        if not (replay.epochs or state.members) or state.signature() == signature:
            if replay.epochs:
                replay.epochs[-1] = _prolonged(replay.epochs[-1], at_ms, unsettled_ms)
            continue
        view = group_view(state)
        outcome = settled(view, before)
        settled_by = max(settled_by, at_ms, *(at_ms + window_ms(e) for e in instant.causing))
        if state.retry_brokers - retry_brokers:
            retry_settled_by = max(retry_settled_by, at_ms + ROUTE_MS)
        replay.epochs.append(
            Epoch(
                number=len(replay.epochs),
                from_ms=at_ms,
                latest_ms=settled_by,
                retry_latest_ms=max(settled_by, retry_settled_by),
                seen_late=any(window_ms(event) > NOTIFIED_MS for event in instant.causing),
                causes=tuple(dict.fromkeys(event.event_type for event in instant.causing)),
                initial=all(event.detail == OBSERVED for event in instant.causing),
                lost=frozenset(instant.lost - state.members.keys()),
                view=view,
                frozen_topics=outcome.frozen_topics,
                before=before.holdings,
                holdings=outcome.holdings,
                taken=outcome.taken,
                unsure=outcome.unsure,
                unsure_before=before.unsure,
            )
        )
        before = outcome
    return replay


def _unsettled_ms(state: GroupState, simultaneous: list[Event], turned: set[str]) -> int:
    """Until when passes may differ because a master of the group's queues went or came; 0: not."""
    readable = state.readable_by_topic().values()
    concerned = turned & {queue.broker_name for queues in readable for queue in queues}
    return max(
        (
            event.event_ms + window_ms(event)
            for event in simultaneous
            if event.event_type in events.MASTER_EVENTS and event.broker_name in concerned
        ),
        default=0,
    )


def _prolonged(epoch: Epoch, at_ms: int, unsettled_ms: int) -> Epoch:
    """The epoch with its windows that are open at a moment open until a later one."""
    latest_ms, retry_latest_ms = (
        max(latest, unsettled_ms) if at_ms <= latest else latest
        for latest in (epoch.latest_ms, epoch.retry_latest_ms)
    )
    return replace(epoch, latest_ms=latest_ms, retry_latest_ms=max(latest_ms, retry_latest_ms))


def _instants(all_events: Iterable[Event]) -> Iterator[tuple[int, list[Event]]]:
    """Events by instant; whatever stands at one instant happens at once."""
    ordered = sorted(all_events, key=lambda event: (event.event_ms, event.sequence))
    for at_ms, simultaneous in groupby(ordered, key=lambda event: event.event_ms):
        yield at_ms, list(simultaneous)


def _apply(state: GroupState, simultaneous: list[Event], unknown: list[Event]) -> _Instant:
    instant = _Instant()
    state.begin_instant()
    for event in simultaneous:
        signature = state.signature()
        try:
            state.apply(event)
        except UnknownMember:
            unknown.append(event)
            continue
        if state.signature() != signature:
            instant.causing.append(event)
        if event.event_type == events.CONSUMER_LOST and event.client_id is not None:
            key = (event.client_id, event.channel_id)
            if key not in state.members:
                instant.lost.add(key)
    return instant

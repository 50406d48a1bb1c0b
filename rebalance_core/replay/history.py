"""Derives epochs from events by replaying the whole group instant by instant."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TypeAlias

from rebalance_core.model import events
from rebalance_core.model.clients import window_intervals
from rebalance_core.model.events import OBSERVED, Event
from rebalance_core.model.group_settings import GroupSettings
from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.verdicts import EMPTY, FROZEN, SETTLED
from rebalance_core.protocol.settling_windows import NOTIFIED_MS, notices_of, window_ms
from rebalance_core.replay.group_state import GroupState, Signature, UnknownMember
from rebalance_core.replay.group_view import GroupView, group_view
from rebalance_core.replay.member import Member, ProcessKey
from rebalance_core.replay.settle import Holdings, Settled, SharedHoldings, settle
from rebalance_core.replay.shared_topics import SharedTopic
from rebalance_core.replay.topic_shares import StrategyKey, strategy_key
from rebalance_core.strategies import AllocationStrategy


@dataclass(frozen=True, slots=True)
class GroupHistory:
    """The evidence about a group; offsets and events are in any order."""

    cluster: str
    consumer_group: str
    settings: GroupSettings
    events: tuple[Event, ...]
    queue_offsets: tuple[QueueOffset, ...] | None = None
    """None: the input has no observations."""
    committed_offsets: tuple[CommittedOffset, ...] | None = None
    """None: the input has no commits, so nothing is known about them; empty: nothing was
    committed.
    """
    sharing_groups: tuple[GroupHistory, ...] = ()
    """Other groups that share client instances with it; only simulations over time use them."""


@dataclass(frozen=True, slots=True)
class QueueOffset:
    """A row of queue_offsets."""

    queue: MessageQueue
    observed_ms: int
    min_offset: int
    max_offset: int
    head_cached: bool | None = None


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """A row of committed_offsets."""

    queue: MessageQueue
    client_id: str | None
    observed_ms: int
    committed_offset: int


Timers: TypeAlias = frozenset[int]
"""The intervals of all processes of a client id, by their numbers."""


@dataclass(frozen=True, slots=True)
class LatestOf:
    """The latest moments at which individual clients may act on an event; many have the same
    timers.
    """

    timers: Mapping[str, Hashable]
    """By client id, a value that stands for its timers; epochs share it."""
    latest: Mapping[Hashable, tuple[int, int]]
    """The latest moments, and those for retry topics."""

    def get(self, client_id: str, everyone: tuple[int, int]) -> tuple[int, int]:
        """Return a client's moments, or ``everyone`` if it has no timers of its own."""
        timers = self.timers.get(client_id)
        return everyone if timers is None else self.latest.get(timers, everyone)


@dataclass(frozen=True, slots=True)
class Epoch:
    """An epoch with the state to which it settles and the holdings just before it."""

    number: int
    from_ms: int
    latest_ms: int
    retry_latest_ms: int
    seen_late: bool
    """Whether members may run passes before they, or the brokers that they query, learn of the
    change.
    """
    causes: tuple[str, ...]
    initial: bool
    """Whether there are only OBSERVED events, which describe the existing state and change
    nothing.
    """
    lost: frozenset[ProcessKey]
    """The processes that ended here without a chance to persist their offsets."""
    view: GroupView
    frozen_topics: frozenset[str]
    before: Holdings
    holdings: Holdings
    taken: Mapping[ProcessKey, SharedHoldings] = field(default_factory=dict)
    """The queues from which each process takes messages in addition to its holdings."""
    unsure: frozenset[MessageQueue] = frozenset()
    """The queues that no client is known to hold but a member with unknown queues may hold, plus
    all doubtful queues.
    """
    unsure_before: frozenset[MessageQueue] = frozenset()
    """The same just before the epoch."""
    doubtful: Holdings = field(default_factory=dict)
    """Queues whose holding depends on client rules known only from source code."""
    doubtful_before: Holdings = field(default_factory=dict)
    """The same just before the epoch."""
    latest_of: LatestOf = field(default_factory=lambda: LatestOf({}, {}))
    """`latest_ms` and `retry_latest_ms` of client ids whose timers differ."""

    @property
    def members(self) -> Mapping[ProcessKey, Member]:
        """The live processes."""
        return self.view.members

    @property
    def readable(self) -> Mapping[str, Sequence[MessageQueue]]:
        """The mqAll of each topic, without the queues of shared topics."""
        return self.view.readable

    @property
    def shared(self) -> Mapping[str, SharedTopic]:
        """The topics that any member pops, whose queues no client owns exclusively."""
        return self.view.shared

    @property
    def all_known(self) -> bool:
        """Whether the queues of each member are known."""
        return not self.doubtful and all(kind.example.share_known for kind in self.view.kinds)

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
        """Return when the epoch with this number ends, or None while it is open."""
        following = number + 1
        return self.epochs[following].from_ms if following < len(self.epochs) else None

    def is_transient(self, epoch: Epoch) -> bool:
        """Return True if the epoch ends before the group can have settled."""
        end = self.to_ms(epoch.number)
        return end is not None and end < epoch.latest_ms


@dataclass(slots=True)
class _Instant:
    """The effects of the simultaneous events, and the `GroupState.signature` after it."""

    signature: Signature
    causing: list[Event] = field(default_factory=list)
    lost: set[ProcessKey] = field(default_factory=set)


def replay_history(
    history: GroupHistory,
    strategy_for: Callable[[StrategyKey], AllocationStrategy],
    *,
    include_retry_topics: bool = True,
    strategy_override: str | None = None,
) -> Replay:
    """Replay a group: at each instant, its events, then one pass of all members on the new view.

    Cost: each epoch allocates each topic once per strategy and visits each member. The kernels are
    compared with it.
    """
    strategies: dict[StrategyKey, AllocationStrategy] = {}

    def settled(view: GroupView, before: Settled) -> Settled:
        for key in (strategy_key(kind.example) for kind in view.kinds):
            if key not in strategies:
                strategies[key] = strategy_for(key)
        return settle(view, before.holdings, strategies, before.taken, before.doubtful)

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
    """Replay a group's events, and ask ``settled`` at each epoch for the new holders.

    When epochs begin, and what members see in them, does not depend on the holders.

    Args:
        history: the group's history.
        settled: called with the group's view and its result for the previous view.
        include_retry_topics: whether retry topics count as topics of the group.
        strategy_override: a strategy for all members, instead of their own.
    """
    state = GroupState(
        history.consumer_group, history.settings, include_retry_topics, strategy_override
    )
    replay = Replay(history)
    before = Settled({}, frozenset())
    windows = _Windows(history)
    instant = _Instant(state.signature())
    for at_ms, simultaneous in _instants(history.events):
        signature = instant.signature._replace(turned=frozenset())
        retry_brokers = set(state.retry_brokers)
        masterless = dict(state.routes.masterless)
        instant = _apply(state, signature, simultaneous, replay.unknown_members)
        turned = masterless.items() ^ state.routes.masterless.items()
        windows.take(simultaneous)
        masters = _unsettling(state, simultaneous, {name for name, _ in turned})
        if replay.epochs:
            windows.extend(masters)
        if not (replay.epochs or state.members) or instant.signature == signature:
            if replay.epochs:
                replay.epochs[-1] = windows.prolonged(replay.epochs[-1], at_ms, masters)
            continue
        view = group_view(state)
        outcome = settled(view, before)
        of_retry = [event for event in instant.causing if _of_topic(event, state.retry_topic)]
        late = windows.extend([e for e in instant.causing if e not in of_retry], at_ms)
        if of_retry or state.retry_brokers - retry_brokers:
            windows.extend_retry(at_ms)
        latest_ms, retry_latest_ms = windows.latest(state.members)
        replay.epochs.append(
            Epoch(
                number=len(replay.epochs),
                from_ms=at_ms,
                latest_ms=latest_ms,
                retry_latest_ms=retry_latest_ms,
                seen_late=late > NOTIFIED_MS,
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
                doubtful=outcome.doubtful,
                doubtful_before=before.doubtful,
                latest_of=windows.by_client(),
            )
        )
        before = outcome
    return replay


class _Windows:
    """The latest moments at which members may react to the events so far, given their timers'
    intervals.
    """

    def __init__(self, history: GroupHistory) -> None:
        self._settings, joins = history.settings, events.CONSUMER_JOIN
        settings = history.settings
        intervals = {window_intervals(settings, e) for e in history.events if e.event_type == joins}
        self._intervals = list(dict.fromkeys([settings.intervals, *intervals]))
        self._numbers = {each: number for number, each in enumerate(self._intervals)}
        self._settled = [0] * len(self._intervals)
        self._routed = [0] * len(self._intervals)
        self._of: dict[str, dict[str | None, int]] = {}
        """The number of each process's intervals so far, by client id and channel."""
        self._timers: dict[str, Timers] = {}
        """The timers by client id. Epochs refer to it, so to change a client in it, a copy is
        made.
        """
        self._notice_modes: dict[str, str] = {}

    def take(self, simultaneous: Iterable[Event]) -> None:
        """Record the clients' intervals and how brokers notify members."""
        for event in simultaneous:
            if event.event_type == events.CONSUMER_JOIN and event.client_id is not None:
                channels = self._of.setdefault(event.client_id, {})
                # otherwise, a broker sees it return
                if event.broker_name is None or event.channel_id not in channels:
                    intervals = window_intervals(self._settings, event)
                    channels[event.channel_id] = self._numbers[intervals]
                    self._set_timers(event.client_id, frozenset(channels.values()))
            elif event.event_type == events.NOTICES and event.broker_name is not None:
                self._notice_modes[event.broker_name] = event.detail or events.ON

    def _set_timers(self, client_id: str, timers: Timers) -> None:
        earlier = self._timers.get(client_id)
        if earlier is not None and earlier != timers:
            self._timers = dict(self._timers)
        self._timers[client_id] = timers

    def extend(self, causing: Iterable[Event], at_ms: int = 0) -> int:
        """Extend the windows of some events; return the longest of them, in ms."""
        longest = 0
        brokers = max(self._notice_modes.values(), key=events.NOTICE_MODES.index, default=events.ON)
        for number, intervals in enumerate(self._intervals):
            latest_ms = max(self._settled[number], at_ms)
            for event in causing:
                notices = notices_of(event, brokers, notified=self._settings.notified)
                window = window_ms(event, intervals, notices)
                latest_ms, longest = max(latest_ms, event.event_ms + window), max(longest, window)
            self._settled[number] = latest_ms
        return longest

    def extend_retry(self, at_ms: int) -> None:
        """Extend the window of a retry topic that appears."""
        appears = Event(at_ms, 0, events.TOPIC_CONFIG)
        for number, intervals in enumerate(self._intervals):
            until_ms = at_ms + window_ms(appears, intervals)
            self._routed[number] = max(self._routed[number], until_ms)

    def latest(self, members: Iterable[ProcessKey]) -> tuple[int, int]:
        """Return the times until which all given processes, or any client if none is given, may act
        on events and on retry topics.
        """
        return self._until(self._numbers_of(members))

    def _numbers_of(self, members: Iterable[ProcessKey]) -> Iterable[int]:
        if len(self._intervals) == 1:  # all have the same timers, and no process need be a member
            return (0,)
        return {self._of[client_id][channel] for client_id, channel in members} or (0,)

    def by_client(self) -> LatestOf:
        """Return `latest` by client id; empty if no client has intervals of its own."""
        if len(self._intervals) == 1:
            return LatestOf({}, {})
        timers = set(self._timers.values())
        return LatestOf(self._timers, {each: self._until(each) for each in timers})

    def prolonged(self, epoch: Epoch, at_ms: int, masters: Iterable[Event]) -> Epoch:
        """Return the epoch with its open windows extended to the window of the events."""

        def longer(latest: tuple[int, int], numbers: Iterable[int]) -> tuple[int, int]:
            kinds = [self._intervals[number] for number in numbers]
            until = max((e.event_ms + window_ms(e, i) for e in masters for i in kinds), default=0)
            settled, retry = (max(ms, until) if at_ms <= ms else ms for ms in latest)
            return settled, max(settled, retry)

        latest_ms, retry_latest_ms = longer(
            (epoch.latest_ms, epoch.retry_latest_ms), self._numbers_of(epoch.members)
        )
        return replace(
            epoch,
            latest_ms=latest_ms,
            retry_latest_ms=retry_latest_ms,
            latest_of=self._prolonged_of(epoch.latest_of, longer),
        )

    def _prolonged_of(
        self,
        latest_of: LatestOf,
        longer: Callable[[tuple[int, int], Iterable[int]], tuple[int, int]],
    ) -> LatestOf:
        """Return the moments, except those of clients that have rejoined in place with other
        timers.
        """
        both = {
            client_id: (then, self._timers[client_id])
            for client_id, then in latest_of.timers.items()
            if then in latest_of.latest
        }
        return LatestOf(
            both,
            {(then, now): longer(latest_of.latest[then], now) for then, now in set(both.values())},
        )

    def _until(self, numbers: Iterable[int]) -> tuple[int, int]:
        settled_ms = max(self._settled[number] for number in numbers)
        return settled_ms, max(settled_ms, *(self._routed[number] for number in numbers))


def _of_topic(event: Event, topic: str) -> bool:
    """Return True if the event is about the topic itself, not about a member that reads it."""
    return event.event_type in events.TOPIC_EVENTS and event.topic == topic


def _unsettling(state: GroupState, simultaneous: list[Event], turned: set[str]) -> list[Event]:
    """Return the events that may change passes because a master of brokers with the group's queues
    left or returned.
    """
    readable = state.readable_by_topic().values() if turned else ()
    concerned = turned & {queue.broker_name for queues in readable for queue in queues}
    return [
        event
        for event in simultaneous
        if event.event_type in events.MASTER_EVENTS and event.broker_name in concerned
    ]


def _instants(all_events: Iterable[Event]) -> Iterator[tuple[int, list[Event]]]:
    """Yield events by instant; all simultaneous events happen at once."""
    ordered = sorted(all_events, key=lambda event: (event.event_ms, event.sequence))
    for at_ms, simultaneous in groupby(ordered, key=lambda event: event.event_ms):
        yield at_ms, list(simultaneous)


def _apply(
    state: GroupState,
    signature: Signature,
    simultaneous: list[Event],
    unknown: list[Event],
) -> _Instant:
    instant = _Instant(signature)
    state.begin_instant()
    for event in simultaneous:
        try:
            state.apply(event)
        except UnknownMember:
            unknown.append(event)
            continue
        before, instant.signature = instant.signature, state.signature()
        if instant.signature != before:
            instant.causing.append(event)
        if event.event_type == events.CONSUMER_LOST and event.client_id is not None:
            key = (event.client_id, event.channel_id)
            if key not in state.members:
                instant.lost.add(key)
    return instant

"""Build a group's timeline from its history, with the replay's events and epochs."""

from collections.abc import Callable
from dataclasses import replace
from itertools import groupby

from rebalance_core.model import events
from rebalance_core.model.events import Event
from rebalance_core.model.queue import MessageQueue, is_retry_topic, java_string_key, sort_queues
from rebalance_core.replay.group_state import GroupState, UnknownMember
from rebalance_core.replay.group_view import GroupView
from rebalance_core.replay.history import GroupHistory, Replay, replay_events
from rebalance_core.replay.settle import Settled, settle
from rebalance_core.replay.topic_shares import StrategyKey, strategy_key
from rebalance_core.strategies import AllocationStrategy, parse_strategy
from rebalance_core.timing import draws
from rebalance_core.timing.broker_replicas import MASTER, replicas_of
from rebalance_core.timing.group_timeline import (
    GroupTimeline,
    LoggedTime,
    ProcessLifetime,
    RouteVersion,
    with_shared_timers,
)
from rebalance_core.timing.options import HALF_SECOND_MS, MS_US, ClockOptions
from rebalance_core.timing.process_lifetimes import LifetimeBuilder
from rebalance_core.timing.route_books import BrokerBook, NamedRoute, RouteBook
from rebalance_core.timing.timeline_changes import changes_of, lead_us, settle_ms


def build_timeline(history: GroupHistory, options: ClockOptions) -> GroupTimeline:
    """Return the timeline of a group.

    Args:
        history: the group's history, with checked rows.
        options: `exact_times` determines how whole seconds are interpreted.

    Returns:
        The timeline, without topics that are ever popped, retry topics and epochs without a change.
    """
    whole = replace(history, events=tuple(e for e in history.events if not _is_partial_end(e)))
    replay = replay_events(whole, _settle_first(), include_retry_topics=False)
    popped = {topic for epoch in replay.epochs for topic in epoch.shared}
    sharing_groups = tuple(
        build_timeline(sharing_group, options) for sharing_group in history.sharing_groups
    )
    return _Builder(history, options, replay, frozenset(popped)).timeline(sharing_groups)


class _Builder:
    """Visits the events once, with the replay's own state."""

    def __init__(
        self, history: GroupHistory, options: ClockOptions, replay: Replay, popped: frozenset[str]
    ) -> None:
        self._history, self._options, self._replay = history, options, replay
        self._popped = popped
        self._partial: dict[int, str] = {}
        self._ordered = sorted(history.events, key=lambda e: (e.event_ms, e.sequence))
        self._replicas = replicas = replicas_of(self._ordered, self._topics())
        self._routes = RouteBook(self._topics(), replicas)
        self._broker_book = BrokerBook(replicas)
        self._lifetimes = LifetimeBuilder(
            history.cluster, history.consumer_group, replicas, self._moment
        )

    def timeline(self, sharing_groups: tuple[GroupTimeline, ...]) -> GroupTimeline:
        unknown = self._walk()
        topics = tuple(sorted(self._routes.versions, key=java_string_key))
        named = {topic: self._routes.versions[topic] for topic in topics}
        queues = sort_queues(
            {queue for versions in named.values() for _, queues in versions for queue in queues}
        )
        numbers = {queue: number for number, queue in enumerate(queues)}
        lifetimes = (
            with_shared_timers(self._lifetimes.lifetimes, sharing_groups)
            if sharing_groups
            else tuple(self._lifetimes.lifetimes)
        )
        names = tuple(self._replicas.numbers)
        return GroupTimeline(
            cluster=self._history.cluster,
            consumer_group=self._history.consumer_group,
            settings=self._history.settings,
            brokers=(*names, *(f"{names[broker]}{MASTER}" for broker in self._replicas.masters)),
            topics=topics,
            queues=tuple(queues),
            lifetimes=lifetimes,
            routes=tuple(self._versions(topic, named[topic], numbers) for topic in topics),
            broker_lifetimes=tuple(self._broker_book.lifetimes),
            lockless=tuple(self._broker_book.lockless),
            changes=changes_of(
                self._replay.epochs,
                self._partial,
                self._broker_book.lifetimes,
                self._since_us,
                settle_ms(lifetimes),
                lead_us(lifetimes, self._options),
            ),
            initial=self._initial(lifetimes, numbers),
            masters=self._replicas.masters,
            popped=tuple(sorted(self._popped, key=java_string_key)),
            unknown_members=unknown,
            notices=tuple(self._broker_book.notices),
            sharing_groups=sharing_groups,
        )

    def _walk(self) -> tuple[Event, ...]:
        state = GroupState(
            self._history.consumer_group, self._history.settings, include_retry_topics=False
        )
        unknown: list[Event] = []
        for _, simultaneous in groupby(self._ordered, key=lambda event: event.event_ms):
            instant = list(simultaneous)
            state.begin_instant()
            for event in instant:
                if not self._take(event, state):
                    unknown.append(event)
            self._lifetimes.end_instant(state)
            self._routes.take(self._moment(instant[0]), state.routes)
        return tuple(unknown)

    def _take(self, event: Event, state: GroupState) -> bool:
        is_member = (event.client_id, event.channel_id) in state.members
        if _is_partial_end(event) and not is_member:
            return False
        # Only one broker saw the process leave or return: it lives on, and no epoch begins.
        if _is_partial_end(event) or (is_member and _is_partial_join(event)):
            self._partial.setdefault(event.event_ms, event.event_type)
        else:
            try:
                state.apply(event)
            except UnknownMember:
                return False
        if event.event_type in events.CONSUMER_EVENTS:
            self._lifetimes.take(event, state)
        else:
            self._broker_book.take(event, self._moment(event))
        if event.event_type in events.MASTER_EVENTS and self._routes.reads(event.broker_name or ""):
            # Brokers notify other members, although the ledger's shares are unchanged.
            self._partial.setdefault(event.event_ms, event.event_type)
        return True

    def _moment(self, event: Event) -> LoggedTime:
        coarse = self._is_coarse(event.event_ms)
        entity = draws.entity_of(
            self._history.cluster, self._history.consumer_group, "event", str(event.event_ms)
        )
        return LoggedTime(self._since_us(event.event_ms), coarse, entity)

    def _is_coarse(self, at_ms: int) -> bool:
        return at_ms % HALF_SECOND_MS == 0 and not self._options.exact_times

    def _since_us(self, at_ms: int) -> int:
        """Return the earliest moment at which an event may have happened."""
        return (at_ms // 1_000 * 1_000 if self._is_coarse(at_ms) else at_ms) * MS_US

    def _topics(self) -> frozenset[str]:
        """Return the topics to which any member ever subscribes, without retry and popped
        topics.
        """
        named = set(self._history.settings.subscriptions or ())
        for event in self._ordered:
            if event.event_type == events.SUBSCRIBE and event.topic is not None:
                named.add(event.topic)
            named.update(event.subscriptions or ())
        return frozenset(t for t in named if not is_retry_topic(t) and t not in self._popped)

    def _versions(
        self, topic: str, versions: list[NamedRoute], queues: dict[MessageQueue, int]
    ) -> tuple[RouteVersion, ...]:
        history = self._history
        return tuple(
            replace(
                each,
                entity=draws.entity_of(
                    history.cluster, "route", topic, str(each.moment and each.moment.event_us)
                ),
                queues=tuple(queues[queue] for queue in of_route),
            )
            for each, of_route in versions
        )

    def _initial(
        self, lifetimes: tuple[ProcessLifetime, ...], queues: dict[MessageQueue, int]
    ) -> tuple[frozenset[int], ...]:
        first = self._replay.epochs[0] if self._replay.epochs else None
        if first is None or not first.initial:
            return tuple(frozenset() for _ in lifetimes)
        held = {
            key: frozenset(queues[queue] for queue in held if queue in queues)
            for key, held in first.holdings.items()
        }
        initial: list[frozenset[int]] = []
        for lifetime in lifetimes:
            present = lifetime.observed and lifetime.joined.event_us == self._since_us(
                first.from_ms
            )
            key = (lifetime.client_id, lifetime.channel_id)
            initial.append(held.pop(key, frozenset()) if present else frozenset())
        return tuple(initial)


def _is_partial_join(event: Event) -> bool:
    """Return whether only one broker saw the process join."""
    return event.event_type == events.CONSUMER_JOIN and event.broker_name is not None


def _is_partial_end(event: Event) -> bool:
    """Return whether only one broker lost the process, which continues to run."""
    ends = (events.CONSUMER_LEAVE, events.CONSUMER_LOST)
    return event.event_type in ends and event.broker_name is not None


def _settle_first() -> Callable[[GroupView, Settled], Settled]:
    """Return a function that settles the first epoch and leaves later ones empty, as they are not
    used.
    """
    strategies: dict[StrategyKey, AllocationStrategy] = {}
    seen = False

    def settled(view: GroupView, before: Settled) -> Settled:
        nonlocal seen
        if seen:
            return Settled({}, frozenset())
        seen = True
        for key in map(strategy_key, view.members.values()):
            strategies.setdefault(key, parse_strategy(key[0], version=key[1]))
        return settle(view, before.holdings, strategies, before.taken)

    return settled

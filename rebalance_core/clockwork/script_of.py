"""What happens to one group, free of any random number: lives, routes, brokers, changes."""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from rebalance_core.clockwork import draws
from rebalance_core.clockwork.options import HALF_SECOND_MS, MS_US, ClockOptions
from rebalance_core.clockwork.script import (
    BrokerLife,
    Life,
    LoggedTime,
    RouteVersion,
    Script,
    ScriptChange,
    with_shared_timers,
)
from rebalance_core.clockwork.script_lives import (
    MASTER,
    BrokerBook,
    LifeBook,
    NamedRoute,
    RouteBook,
    replicas_of,
)
from rebalance_core.model import events
from rebalance_core.model.events import Event
from rebalance_core.model.group_settings import DEFAULT_INTERVALS, INTERVALS
from rebalance_core.model.queue import MessageQueue, is_retry_topic, java_string_key, sort_queues
from rebalance_core.replay.group_state import GroupState, GroupView, UnknownMember
from rebalance_core.replay.history import Epoch, GroupHistory, Replay, replay_events
from rebalance_core.replay.settle import Settled, StrategyKey, settle, strategy_key
from rebalance_core.strategies import AllocationStrategy, parse_strategy

# The changes of a script: epochs of the replay, each with the time in which it is followed.

SETTLE_MS = 240_000
"""How long a change is followed: route poll, pass, first heartbeat, two expiries of a lock."""

_LEAD_MS = 1
"""Whoever was there before is placed before the change: it may be what goes."""


def changes_of(
    epochs: Sequence[Epoch],
    partial: Mapping[int, str],
    broker_lives: Sequence[BrokerLife],
    since_us: Callable[[int], int],
    settle_ms: int = SETTLE_MS,
) -> tuple[ScriptChange, ...]:
    """The changes in order of time.

    Args:
        epochs: of the replay.
        partial: event type by epoch ms where one broker alone saw a member come or go.
        broker_lives: of the script.
        since_us: the earliest that an event of an epoch ms may have happened.
        settle_ms: how long each is followed.
    """
    causes = {epoch.from_ms: epoch.causes for epoch in epochs if not epoch.initial}
    for at_ms, event_type in partial.items():
        causes.setdefault(at_ms, (event_type,))
    begins: dict[int, int] = {}
    for at_ms, why in sorted(causes.items()):
        # Of changes close to each other each has its event in its own window.
        after = max(begins, default=None)
        begin = since_us(at_ms) - _lead_us(why)
        begins[at_ms] = begin if after is None else max(begin, since_us(after) + 1)
    following = [*list(begins.values())[1:], None] if begins else []
    return tuple(
        ScriptChange(
            epoch=bisect_right(epochs, at_ms, key=lambda epoch: epoch.from_ms) - 1,
            change_ms=at_ms,
            earliest_us=_earliest_us(at_ms, causes[at_ms], broker_lives, since_us(at_ms)),
            begin_us=begin,
            end_us=_end_us(at_ms, end, settle_ms),
            causes=causes[at_ms],
        )
        for (at_ms, begin), end in zip(begins.items(), following, strict=True)
    )


def _earliest_us(
    at_ms: int, causes: tuple[str, ...], broker_lives: Sequence[BrokerLife], since_us: int
) -> int:
    """Passes suffer from a lost host before anybody notices it."""
    lost = any(
        life.host_lost and life.down is not None and since_us <= life.down.event_us <= at_ms * MS_US
        for life in broker_lives
    )
    silence_us = draws.SHORTEST_SILENCE_US + draws.SILENCE_SPREAD_US if lost else 0
    return since_us - _lead_us(causes) - silence_us


def _lead_us(causes: tuple[str, ...]) -> int:
    return (draws.LONGEST_LEAD_MS if events.CONSUMER_JOIN in causes else _LEAD_MS) * MS_US


def _end_us(at_ms: int, next_begin_us: int | None, settle_ms: int) -> int:
    settled = (at_ms + settle_ms) * MS_US
    return settled if next_begin_us is None else min(settled, next_begin_us)


def _settle_ms(lives: Sequence[Life]) -> int:
    """`SETTLE_MS`, and how much longer than RocketMQ's own intervals the slowest ones are."""
    over = 0
    for name in INTERVALS:
        usual = int(getattr(DEFAULT_INTERVALS, name))
        over += max((int(getattr(life.intervals, name)) - usual for life in lives), default=0)
    return SETTLE_MS + max(0, over)


# A group's history as a script: the same events and epochs as the replay's.


def script_of(history: GroupHistory, options: ClockOptions) -> Script:
    """The script of a group.

    Args:
        history: of the group, its rows checked.
        options: `exact_times` decides how whole seconds are read.

    Returns:
        The script; topics that are popped at any time, retry topics and epochs without a change
        are left out.
    """
    whole = replace(history, events=tuple(e for e in history.events if not _is_partial_end(e)))
    replay = replay_events(whole, _settle_first(), include_retry_topics=False)
    popped = {topic for epoch in replay.epochs for topic in epoch.shared}
    mates = tuple(script_of(mate, options) for mate in history.mates)
    return _Builder(history, options, replay, frozenset(popped)).script(mates)


class _Builder:
    """Walks the events once, with the replay's own state."""

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
        self._lives = LifeBook(history.cluster, history.consumer_group, replicas, self._moment)

    def script(self, mates: tuple[Script, ...]) -> Script:
        unknown = self._walk()
        topics = tuple(sorted(self._routes.versions, key=java_string_key))
        named = {topic: self._routes.versions[topic] for topic in topics}
        queues = sort_queues(
            {queue for versions in named.values() for _, queues in versions for queue in queues}
        )
        numbers = {queue: number for number, queue in enumerate(queues)}
        lives = with_shared_timers(self._lives.lives, mates) if mates else tuple(self._lives.lives)
        names = tuple(self._replicas.numbers)
        return Script(
            cluster=self._history.cluster,
            consumer_group=self._history.consumer_group,
            settings=self._history.settings,
            brokers=(*names, *(f"{names[broker]}{MASTER}" for broker in self._replicas.masters)),
            topics=topics,
            queues=tuple(queues),
            lives=lives,
            routes=tuple(self._versions(topic, named[topic], numbers) for topic in topics),
            broker_lives=tuple(self._broker_book.lives),
            lockless=tuple(self._broker_book.lockless),
            changes=changes_of(
                self._replay.epochs,
                self._partial,
                self._broker_book.lives,
                self._since_us,
                _settle_ms(lives),
            ),
            initial=self._initial(lives, numbers),
            masters=self._replicas.masters,
            popped=tuple(sorted(self._popped, key=java_string_key)),
            unknown_members=unknown,
            notices=tuple(self._broker_book.notices),
            mates=mates,
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
            self._lives.end_instant(state)
            self._routes.take(self._moment(instant[0]), state.routes)
        return tuple(unknown)

    def _take(self, event: Event, state: GroupState) -> bool:
        is_member = (event.client_id, event.channel_id) in state.members
        if _is_partial_end(event) and not is_member:
            return False
        # One broker alone saw the process go, or come back: it lives on, and no epoch begins.
        if _is_partial_end(event) or (is_member and _is_partial_join(event)):
            self._partial.setdefault(event.event_ms, event.event_type)
        else:
            try:
                state.apply(event)
            except UnknownMember:
                return False
        if event.event_type in events.CONSUMER_EVENTS:
            self._lives.take(event, state)
        else:
            self._broker_book.take(event, self._moment(event))
        if event.event_type in events.MASTER_EVENTS and self._routes.reads(event.broker_name or ""):
            # Brokers tell of other members, though the ledger's shares are as before.
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
        """The earliest that an event may have happened."""
        return (at_ms // 1_000 * 1_000 if self._is_coarse(at_ms) else at_ms) * MS_US

    def _topics(self) -> frozenset[str]:
        """Return the topics any member ever subscribes, without retry topics and what is popped."""
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
        self, lives: tuple[Life, ...], queues: dict[MessageQueue, int]
    ) -> tuple[frozenset[int], ...]:
        first = self._replay.epochs[0] if self._replay.epochs else None
        if first is None or not first.initial:
            return tuple(frozenset() for _ in lives)
        held = {
            key: frozenset(queues[queue] for queue in held if queue in queues)
            for key, held in first.holdings.items()
        }
        found: list[frozenset[int]] = []
        for life in lives:
            present = life.observed and life.joined.event_us == self._since_us(first.from_ms)
            key = (life.client_id, life.channel_id)
            found.append(held.pop(key, frozenset()) if present else frozenset())
        return tuple(found)


def _is_partial_join(event: Event) -> bool:
    """One broker alone saw the process come."""
    return event.event_type == events.CONSUMER_JOIN and event.broker_name is not None


def _is_partial_end(event: Event) -> bool:
    """One broker alone lost the process, which lives on."""
    ends = (events.CONSUMER_LEAVE, events.CONSUMER_LOST)
    return event.event_type in ends and event.broker_name is not None


def _settle_first() -> Callable[[GroupView, Settled], Settled]:
    """Who holds what in the first epoch; nobody anything after it, which is not asked for."""
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

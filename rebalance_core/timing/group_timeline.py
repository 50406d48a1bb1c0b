"""A group's timeline and its parts; queues, topics, brokers and lifetimes are numbered within
it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from rebalance_core.model.events import Event
from rebalance_core.model.group_settings import GroupSettings
from rebalance_core.model.intervals import DEFAULT_INTERVALS, Intervals
from rebalance_core.model.queue import MessageQueue
from rebalance_core.replay.member import Member
from rebalance_core.timing.delays import OUT_OF_STEP, RECORDED_BROKERS
from rebalance_core.timing.draws import entity_of


@dataclass(frozen=True, slots=True)
class ProcessStop:
    """A period in which a process stood still, suspended or in a long garbage collection.

    Attributes:
        lifetime: the number of its lifetime in the timeline.
        since_us: microseconds since the epoch.
        until_us: when it continued.
    """

    lifetime: int
    since_us: int
    until_us: int


@dataclass(frozen=True, slots=True)
class WatcherKnowledge:
    """What a recorder knows because it caused all of a cluster's events itself.

    No input table contains it.

    A broker's logged start is then the time at which name servers learned of it, to the
    millisecond, and only the recorded stops put processes out of step.

    Attributes:
        stops: all stops. They delay passes, except in the unsimulated gaps, which begin four
            minutes after a change.
    """

    stops: tuple[ProcessStop, ...] = ()

    def due_us(self, lifetime: int, at_us: int) -> int:
        """Return when a process performs an action due at a given time, which a stop may delay."""
        held_up = (s.until_us for s in self.stops if s.lifetime == lifetime and s.since_us <= at_us)
        return max((until_us for until_us in held_up if until_us > at_us), default=at_us)


@dataclass(frozen=True, slots=True)
class LoggedTime:
    """The time of an event, as precisely as its log states it.

    Attributes:
        event_us: the logged time in microseconds since the epoch; the start of the second for an
            event logged to the second.
        to_the_second: whether the event may have happened at any time within that second.
        entity: the owner of the draw within that second; all of a group's events in the second
            share it, which preserves their order.
    """

    event_us: int
    to_the_second: bool
    entity: int


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a process.

    Attributes:
        moment: when it ended.
        graceful: whether it unregistered and released its order locks.
        notified: whether brokers notify the others; False if the broker's scan detected the end.
    """

    moment: LoggedTime
    graceful: bool
    notified: bool


@dataclass(frozen=True, slots=True)
class Sighting:
    """The addition of a live process to a single broker's list, or its removal from that list.

    Attributes:
        moment: when it happens.
        broker: its number.
        listed: whether the broker adds the process, rather than removing it.
        notified: whether the broker notifies the others; False if its scan removed the process.
    """

    moment: LoggedTime
    broker: int
    listed: bool
    notified: bool = True


@dataclass(frozen=True, slots=True)
class ProcessLifetime:
    """The time that a process spends in the group.

    Attributes:
        index: its number in the timeline.
        entity: the owner of its draws.
        client_id: its id in member lists.
        channel_id: the channel id of the process; None for a nameless process.
        joined: when its join was logged.
        observed: whether it existed before the log began.
        only_broker: the number of the only broker that saw it; None if all did.
        stale_entry: whether it is an entry in a member list without a process of its own.
        first_brokers: the brokers with which it registers at its join, in Java order.
        states: its subscriptions, and whether it is suspended, from each moment on.
        sightings: events that only one broker saw after its join.
        ending: its end; None if it stays.
        intervals: the intervals of its timers.
        dated_by_broker: whether a broker's log dates `joined`.
    """

    index: int
    entity: int
    client_id: str
    channel_id: str | None
    joined: LoggedTime
    observed: bool
    only_broker: int | None
    stale_entry: bool
    first_brokers: tuple[int, ...]
    states: tuple[tuple[LoggedTime, Member], ...]
    sightings: tuple[Sighting, ...] = ()
    ending: Ending | None = None
    intervals: Intervals = DEFAULT_INTERVALS
    dated_by_broker: bool = False

    @property
    def joins_at_first_broker(self) -> bool:
        """Return True if `joined` is its registration with the first broker rather than the return
        of its ``start()``.

        With few brokers the two are so close that the recorded delays apply to both.
        """
        return self.dated_by_broker and len(self.first_brokers) > RECORDED_BROKERS

    @property
    def instance(self) -> tuple[str, str | None]:
        """The client id and connection."""
        return self.client_id, self.channel_id

    @property
    def is_notified(self) -> bool:
        """Whether the client reacts to brokers' notices."""
        return self.states[0][1].profile.notified


def sharing_of(
    lifetimes: Sequence[ProcessLifetime], sharing_groups: Sequence[GroupTimeline]
) -> tuple[tuple[tuple[int, ProcessLifetime], ...], ...]:
    """Return, for each lifetime, pairs (number of a sharing group, its first lifetime in the same
    client instance).

    An MQClientInstance is a client id on a connection (rocketmq.md §1.1).
    """
    by_instance: list[dict[tuple[str, str | None], list[ProcessLifetime]]] = []
    for sharing_group in sharing_groups:
        by_instance.append({})
        for lifetime in sharing_group.lifetimes:
            if not lifetime.stale_entry:
                by_instance[-1].setdefault(lifetime.instance, []).append(lifetime)
    return tuple(
        tuple(
            (number, first)
            for number, instances in enumerate(by_instance)
            if not lifetime.stale_entry
            and (
                first := next(
                    (e for e in instances.get(lifetime.instance, ()) if _meet(lifetime, e)), None
                )
            )
        )
        for lifetime in lifetimes
    )


def with_shared_timers(
    lifetimes: Sequence[ProcessLifetime], sharing_groups: Sequence[GroupTimeline]
) -> tuple[ProcessLifetime, ...]:
    """Return the lifetimes with the timers of their instances, which are the timers of the
    instances' creators.
    """
    with_timers = []
    for lifetime, shared in zip(lifetimes, sharing_of(lifetimes, sharing_groups), strict=True):
        intervals = min((lifetime, *(each for _, each in shared)), key=came_first).intervals
        timers = {
            name: getattr(intervals, name)
            for name in (
                "poll_name_server_interval_ms",
                "heartbeat_broker_interval_ms",
                "persist_consumer_offset_interval_ms",
            )
        }
        with_timers.append(replace(lifetime, intervals=replace(lifetime.intervals, **timers)))
    return tuple(with_timers)


def _meet(earlier: ProcessLifetime, later: ProcessLifetime) -> bool:
    """Return whether the two lifetimes exist at the same time."""
    return all(
        a.ending is None or a.ending.moment.event_us > b.joined.event_us
        for a, b in ((earlier, later), (later, earlier))
    )


def came_first(lifetime: ProcessLifetime) -> tuple[int, int]:
    """Return a sort key that puts the creator of an instance first and orders the others by
    draws.
    """
    return lifetime.joined.event_us, lifetime.entity


@dataclass(frozen=True, slots=True)
class RouteVersion:
    """A topic's route from a moment on.

    Attributes:
        moment: when events created it; None if it predates the log.
        entity: the owner of the draw for its delay on the way to the name server.
        queues: numbers of the readable queues, in Java order (mqAll).
        brokers: numbers of its brokers, in Java order; a pass queries one of them.
        heartbeat_targets: numbers of the processes that receive heartbeats, slaves included.
        masterless: brokers without a master in the route; clients request no order locks from them.
        gone: whether no broker is left, so that no client ever adopts it.
    """

    moment: LoggedTime | None
    entity: int
    queues: tuple[int, ...]
    brokers: tuple[int, ...]
    heartbeat_targets: tuple[int, ...]
    masterless: tuple[int, ...]
    gone: bool


@dataclass(frozen=True, slots=True)
class BrokerLifetime:
    """A period in which a broker is up; its member list is empty at first.

    Attributes:
        broker: its number.
        up: when it came up; None if before the log begins.
        down: when it went down; None if never.
        host_lost: whether its host was lost without closing connections, at most two minutes
            earlier.
    """

    broker: int
    up: LoggedTime | None
    down: LoggedTime | None = None
    host_lost: bool = False


@dataclass(frozen=True, slots=True)
class LocklessSpan:
    """A period in which a broker has no master and grants no order locks.

    Its length is zero if a slave takes over or the master returns at once; granted locks are lost
    even then.
    """

    broker: int
    since: LoggedTime
    until: LoggedTime | None = None


@dataclass(frozen=True, slots=True)
class NoticeSwitch:
    """A switch in how a broker notifies members; ``mode`` is one of `NOTICE_MODES`."""

    broker: int
    since: LoggedTime
    mode: str


@dataclass(frozen=True, slots=True)
class TimelineChange:
    """An epoch of the replay; its spread through the group is simulated.

    Attributes:
        epoch: its number.
        change_ms: epoch ms, as in the ledger.
        earliest_us: the earliest time of its effects; a join is logged after the first
            registration, and passes wait for a lost host before any broker notices the loss.
        begin_us: the same, but no earlier than the event of the previous change.
        end_us: the end of its simulation.
        causes: event types.
    """

    epoch: int
    change_ms: int
    earliest_us: int
    begin_us: int
    end_us: int
    causes: tuple[str, ...]


@dataclass(frozen=True)
class GroupTimeline:
    """The events of a group.

    Attributes:
        cluster: its cluster.
        consumer_group: its name.
        settings: the group's settings.
        brokers: names, in Java order; then the masters of `masters`.
        topics: names, in Java order, without retry topics and popped topics.
        queues: every queue that is readable at any time, in the clients' order.
        lifetimes: processes in order of their joins.
        routes: by topic number, the route's versions in order.
        broker_lifetimes: the broker lifetimes, in chronological order.
        lockless: periods without order locks.
        changes: the changes, in chronological order.
        initial: the queues that each lifetime holds before the first change.
        masters: numbers of masters that leave or return, by the number of their broker
            (`broker_replicas.BrokerReplicas`).
        popped: topics left out because at least one member pops them.
        unknown_members: events naming a process that is not a member.
        watched: what a recorder knows beyond the log, if any.
        notices: switches in how brokers notify members, in chronological order; until the first,
            brokers notify at once.
        sharing_groups: the timelines of other groups that share client instances with it.
    """

    cluster: str
    consumer_group: str
    settings: GroupSettings
    brokers: tuple[str, ...]
    topics: tuple[str, ...]
    queues: tuple[MessageQueue, ...]
    lifetimes: tuple[ProcessLifetime, ...]
    routes: tuple[tuple[RouteVersion, ...], ...]
    broker_lifetimes: tuple[BrokerLifetime, ...]
    lockless: tuple[LocklessSpan, ...]
    changes: tuple[TimelineChange, ...]
    initial: tuple[frozenset[int], ...]
    masters: Mapping[int, int] = field(default_factory=dict, hash=False)
    popped: tuple[str, ...] = ()
    unknown_members: tuple[Event, ...] = ()
    watched: WatcherKnowledge | None = None
    notices: tuple[NoticeSwitch, ...] = ()
    sharing_groups: tuple[GroupTimeline, ...] = ()

    @property
    def out_of_step(self) -> float:
        """The share of members whose pass clocks an unlogged stop may shift at a change."""
        return OUT_OF_STEP if self.watched is None else 0.0

    @cached_property
    def begin_us(self) -> int:
        """The earliest time of all events; `changes` must not be empty."""
        return min(change.earliest_us for change in self.changes)

    @cached_property
    def sharing(self) -> tuple[tuple[tuple[int, ProcessLifetime], ...], ...]:
        """Return `sharing_of` for the timeline's lifetimes."""
        return sharing_of(self.lifetimes, self.sharing_groups)

    @cached_property
    def together(self) -> tuple[GroupTimeline, ...]:
        """This timeline and those of the groups sharing its instances, each linked to the groups
        that share its own.
        """
        alone = [replace(timeline, sharing_groups=()) for timeline in (self, *self.sharing_groups)]
        timelines = [self]
        for sharing_group in alone[1:]:
            others = [each for each in alone if each is not sharing_group]
            sharing = sharing_of(sharing_group.lifetimes, others)
            numbers = sorted({number for shared in sharing for number, _ in shared})
            sharing_groups = tuple(others[number] for number in numbers)
            timelines.append(
                replace(
                    sharing_group,
                    sharing_groups=sharing_groups,
                    lifetimes=with_shared_timers(sharing_group.lifetimes, sharing_groups),
                )
            )
        return tuple(timelines)

    @property
    def broker_names(self) -> tuple[str, ...]:
        """The names in Java order; a name's index is the broker's number."""
        return self.brokers[: len(self.brokers) - len(self.masters)]

    @cached_property
    def broker_entities(self) -> tuple[int, ...]:
        """The entity from which each broker's draws derive."""
        return tuple(entity_of(self.cluster, "broker", name) for name in self.brokers)

    @cached_property
    def topic_of_queue(self) -> tuple[int, ...]:
        """The number of each queue's topic."""
        number = {topic: index for index, topic in enumerate(self.topics)}
        return tuple(number[queue.topic] for queue in self.queues)

    @cached_property
    def broker_of_queue(self) -> tuple[int, ...]:
        """The number of each queue's broker."""
        number = {broker: index for index, broker in enumerate(self.brokers)}
        return tuple(number[queue.broker_name] for queue in self.queues)

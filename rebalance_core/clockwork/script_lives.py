"""Lives of a script: members from consumer events, routes and brokers from the topics' events."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain

from rebalance_core.clockwork.draws import entity_of
from rebalance_core.clockwork.script import (
    BrokerLife,
    Ending,
    Life,
    LocklessSpan,
    LoggedTime,
    NoticeSwitch,
    RouteVersion,
    Sighting,
)
from rebalance_core.model import events
from rebalance_core.model.clients import client_intervals
from rebalance_core.model.events import Event
from rebalance_core.model.queue import MessageQueue, java_string_key
from rebalance_core.protocol.routes import Routes
from rebalance_core.replay.group_state import GroupState, Member, ProcessKey

# The processes behind a broker name whose master comes or goes (rocketmq.md §15).
#
# Such a broker has two numbers: its own stands for its slaves, which list members and are asked
# while the master is away, and for its order locks; the other one for its master, whose member
# list begins empty when it is back. A broker whose master stays has one number.

MASTER = "/master"
"""After the name of its broker, the name of a master."""


@dataclass(frozen=True, slots=True)
class BrokerReplicas:
    """Numbers of brokers and of masters.

    Attributes:
        numbers: of each broker, by name, in Java order.
        masters: number of the master, by that of its broker.
    """

    numbers: Mapping[str, int]
    masters: Mapping[int, int]

    def asked(self, name: str, masterless: Collection[str]) -> int:
        """The process that clients ask whose route has it; ``masterless`` are brokers."""
        number = self.numbers[name]
        return number if name in masterless else self.masters.get(number, number)

    def hearing(self, name: str, masterless: Collection[str]) -> tuple[int, ...]:
        """The processes that clients whose route has the broker send heartbeats to."""
        asked, slaves = self.asked(name, masterless), self.numbers[name]
        return (slaves,) if asked == slaves else (slaves, asked)


def replicas_of(ordered: Collection[Event], topics: Collection[str]) -> BrokerReplicas:
    """The brokers that events name, and the masters of those that have any of the topics."""
    names = {e.broker_name for e in ordered if e.broker_name is not None}
    numbers = {name: n for n, name in enumerate(sorted(names, key=java_string_key))}
    with_master_events = {e.broker_name for e in ordered if e.event_type in events.MASTER_EVENTS}
    read = {
        e.broker_name for e in ordered if e.event_type == events.TOPIC_CONFIG and e.topic in topics
    }
    moving = [number for name, number in numbers.items() if name in with_master_events & read]
    return BrokerReplicas(numbers, {number: len(numbers) + n for n, number in enumerate(moving)})


# Who was in the group, from when to when, with what: lives from consumer events.


@dataclass(slots=True)
class LifeBook:
    """Lives as their events come; give it each event after the group's state has taken it."""

    cluster: str
    consumer_group: str
    replicas: BrokerReplicas
    moment_of: Callable[[Event], LoggedTime]
    lives: list[Life] = field(default_factory=list)
    _open: dict[ProcessKey, int] = field(default_factory=dict)
    _stays: dict[ProcessKey, int] = field(default_factory=dict)
    _new: list[int] = field(default_factory=list)

    def take(self, event: Event, state: GroupState) -> None:
        """Take a consumer event that the state knew the member of."""
        assert event.client_id is not None
        key = (event.client_id, event.channel_id)
        ends = event.event_type in (events.CONSUMER_LEAVE, events.CONSUMER_LOST)
        if key not in self._open:
            self._begin(key, event, state)
        elif event.broker_name is not None and (ends or event.event_type == events.CONSUMER_JOIN):
            self._see(key, event, state, listed=not ends)
        elif ends:
            self._end(key, event, state)
        else:
            self._change(key, self.moment_of(event), state.members[key])

    def end_instant(self, state: GroupState) -> None:
        """Whoever joined in this instant registers with the brokers of all its events."""
        for index in self._new:
            life = self.lives[index]
            if life.only_broker is None:
                names = _reachable(state, life.states[0][1])
                masterless = state.routes.masterless
                known = chain(*(self.replicas.hearing(name, masterless) for name in names))
                self.lives[index] = replace(life, first_brokers=tuple(sorted(known)))
        self._new.clear()

    def _begin(self, key: ProcessKey, event: Event, state: GroupState) -> None:
        client_id, channel_id = key
        only = self._one_broker(event, state)
        stay = self._stays[key] = self._stays.get(key, -1) + 1
        moment, member = self.moment_of(event), state.members[key]
        self._open[key] = len(self.lives)
        self._new.append(len(self.lives))
        self.lives.append(
            Life(
                index=len(self.lives),
                entity=entity_of(
                    self.cluster, self.consumer_group, client_id, channel_id, str(stay)
                ),
                client_id=client_id,
                channel_id=channel_id,
                joined=moment,
                observed=event.detail == events.OBSERVED,
                only_broker=only,
                ghost=only is not None and self._lives_elsewhere(key),
                first_brokers=() if only is None else (only,),
                states=((moment, member),),
                intervals=client_intervals(state.settings, event),
            )
        )

    def _lives_elsewhere(self, key: ProcessKey) -> bool:
        return any(client_id == key[0] and (client_id, channel) != key
                   for client_id, channel in self._open)  # fmt: skip

    def _one_broker(self, event: Event, state: GroupState) -> int | None:
        name = event.broker_name
        return None if name is None else self.replicas.asked(name, state.routes.masterless)

    def _see(self, key: ProcessKey, event: Event, state: GroupState, *, listed: bool) -> None:
        broker = self._one_broker(event, state)
        if broker is not None:
            index = self._open[key]
            life = self.lives[index]
            notifies = event.detail != events.EXPIRED and _is_told(event, state)
            seen = Sighting(self.moment_of(event), broker, listed, notifies)
            self.lives[index] = replace(life, sightings=(*life.sightings, seen))

    def _end(self, key: ProcessKey, event: Event, state: GroupState) -> None:
        index = self._open.pop(key)
        graceful = event.event_type == events.CONSUMER_LEAVE
        notifies = event.detail != events.EXPIRED and _is_told(event, state)
        ending = Ending(self.moment_of(event), graceful, notifies)
        self.lives[index] = replace(self.lives[index], ending=ending)

    def _change(self, key: ProcessKey, moment: LoggedTime, member: Member) -> None:
        index = self._open[key]
        life = self.lives[index]
        if life.states[-1][1] != member:
            self.lives[index] = replace(life, states=(*life.states, (moment, member)))


def _is_told(event: Event, state: GroupState) -> bool:
    """The group's switch is on; a channel that closes is told all the same (rocketmq.md §6.2)."""
    return state.settings.notified or event.event_type == events.CONSUMER_LOST


def _reachable(state: GroupState, member: Member) -> Collection[str]:
    """Brokers that are up and in a route that the member reads."""
    return {
        broker
        for topic in member.subscriptions
        for broker in state.routes.brokers_of(topic)
        if broker not in state.routes.down
    }


# The routes of a group's topics over time, and the lives of the brokers in them.

_MASTER = "MASTER"


NamedRoute = tuple[RouteVersion, tuple[MessageQueue, ...]]
"""A route version before its queues have numbers, and these queues."""


@dataclass(slots=True)
class RouteBook:
    """Versions of the routes as instants go by; only versions that differ are kept."""

    topics: frozenset[str]
    replicas: BrokerReplicas
    versions: dict[str, list[NamedRoute]] = field(default_factory=dict)

    def take(self, moment: LoggedTime, routes: Routes) -> None:
        """Take the routes as they are after an instant."""
        for topic in self.topics & routes.configs.keys() | self.versions.keys():
            names = sorted(routes.brokers_of(topic) - routes.down, key=java_string_key)
            hearing = [self.replicas.hearing(name, routes.masterless) for name in names]
            queues = tuple(routes.readable_queues(topic))
            known = self.versions.setdefault(topic, [])
            route = RouteVersion(
                moment,
                entity=0,
                queues=(),
                brokers=tuple(self.replicas.asked(name, routes.masterless) for name in names),
                hearing=tuple(chain(*hearing)),
                masterless=tuple(
                    self.replicas.numbers[name] for name in names if name in routes.lockless
                ),
                gone=not names,
            )
            last, last_queues = known[-1] if known else (None, ())
            if last is None or (replace(last, moment=moment), last_queues) != (route, queues):
                known.append((route, queues))

    def reads(self, broker_name: str) -> bool:
        """Some topic is on the broker."""
        number = self.replicas.numbers.get(broker_name)
        return any(number in each[-1][0].hearing for each in self.versions.values())


@dataclass(slots=True)
class BrokerBook:
    """Lives of brokers and their stretches without a master, from their events."""

    replicas: BrokerReplicas
    lives: list[BrokerLife] = field(default_factory=list)
    lockless: list[LocklessSpan] = field(default_factory=list)
    notices: list[NoticeSwitch] = field(default_factory=list)
    _locks_by: dict[int, str | None] = field(default_factory=dict)
    """Who gives order locks for each broker: `_MASTER`, `ACTING`, None: nobody."""

    def __post_init__(self) -> None:
        numbers = (*self.replicas.numbers.values(), *self.replicas.masters.values())
        self.lives = [BrokerLife(number, None) for number in numbers]
        self._locks_by = dict.fromkeys(self.replicas.numbers.values(), _MASTER)

    def take(self, event: Event, moment: LoggedTime) -> None:
        """Take a broker or master event; others, and brokers without queues, pass by."""
        broker = self.replicas.numbers.get(event.broker_name or "")
        if broker is None:
            return
        master = self.replicas.masters.get(broker)
        match event.event_type:
            case events.BROKER_DOWN:
                self._down(broker, moment, event.detail == events.EXPIRED)
                self._down(master, moment, event.detail == events.EXPIRED)
            case events.BROKER_UP:
                self._up(broker, moment)
                if self._locks_by[broker] == _MASTER:
                    self._up(master, moment)
            case events.MASTER_DOWN:
                self._down(master, moment, host_lost=False)
                self._locks_go_to(
                    events.ACTING if event.detail == events.ACTING else None, broker, moment
                )
            case events.NOTICES:
                numbers = (broker,) if master is None else (broker, master)
                mode = event.detail or events.ON
                self.notices += [NoticeSwitch(number, moment, mode) for number in numbers]
            case events.MASTER_UP:
                if self._life(broker).down is None:
                    self._up(master, moment)
                self._locks_go_to(_MASTER, broker, moment)

    def _up(self, number: int | None, moment: LoggedTime) -> None:
        if number is not None and self._life(number).down is not None:
            self.lives.append(BrokerLife(number, moment))

    def _down(self, number: int | None, moment: LoggedTime, host_lost: bool) -> None:
        life = None if number is None else self._life(number)
        if life is not None and life.down is None:
            self.lives[self.lives.index(life)] = replace(life, down=moment, host_lost=host_lost)

    def _locks_go_to(self, giver: str | None, broker: int, moment: LoggedTime) -> None:
        """Another process gives locks, or nobody does; what was given before is gone."""
        before, self._locks_by[broker] = self._locks_by[broker], giver
        if before == giver:
            return
        if before is not None:
            self.lockless.append(LocklessSpan(broker, moment, None if giver is None else moment))
            return
        begun = next(each for each in reversed(self.lockless) if each.broker == broker)
        self.lockless[self.lockless.index(begun)] = replace(begun, until=moment)

    def _life(self, number: int) -> BrokerLife:
        return next(life for life in reversed(self.lives) if life.broker == number)

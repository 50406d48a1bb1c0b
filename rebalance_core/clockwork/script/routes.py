"""The routes of a group's topics over time, and the lives of the brokers in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import chain

from rebalance_core.clockwork.script.parts import BrokerLife, Lockless, Moment, RouteVersion
from rebalance_core.clockwork.script.replicas import Replicas
from rebalance_core.model import events
from rebalance_core.model.events import ACTING, EXPIRED, Event
from rebalance_core.model.ordering import java_string_key
from rebalance_core.model.queue import MessageQueue
from rebalance_core.protocol.routes import Routes

_MASTER = "MASTER"


@dataclass(frozen=True, slots=True)
class NamedRoute:
    """A route version before queues have numbers."""

    moment: Moment | None
    queues: tuple[MessageQueue, ...]
    brokers: tuple[int, ...]
    hearing: tuple[int, ...]
    masterless: tuple[int, ...]
    gone: bool


@dataclass(slots=True)
class RouteBook:
    """Versions of the routes as instants go by; only versions that differ are kept."""

    topics: frozenset[str]
    replicas: Replicas
    versions: dict[str, list[NamedRoute]] = field(default_factory=dict)

    def take(self, moment: Moment, routes: Routes) -> None:
        """Take the routes as they are after an instant."""
        for topic in self.topics & routes.configs.keys() | self.versions.keys():
            names = sorted(routes.brokers_of(topic) - routes.down, key=java_string_key)
            hearing = [self.replicas.hearing(name, routes.masterless) for name in names]
            queues = tuple(routes.readable_queues(topic))
            known = self.versions.setdefault(topic, [])
            route = NamedRoute(
                moment,
                queues,
                brokers=tuple(self.replicas.asked(name, routes.masterless) for name in names),
                hearing=tuple(chain(*hearing)),
                masterless=tuple(
                    self.replicas.numbers[name] for name in names if name in routes.lockless
                ),
                gone=not names,
            )
            if not known or replace(known[-1], moment=moment) != route:
                known.append(route)

    def reads(self, broker_name: str) -> bool:
        """Some topic is on the broker."""
        number = self.replicas.numbers.get(broker_name)
        return any(number in each[-1].hearing for each in self.versions.values())


@dataclass(slots=True)
class BrokerBook:
    """Lives of brokers and their stretches without a master, from their events."""

    replicas: Replicas
    lives: list[BrokerLife] = field(default_factory=list)
    lockless: list[Lockless] = field(default_factory=list)
    _locks_by: dict[int, str | None] = field(default_factory=dict)
    """Who gives order locks for each broker: `_MASTER`, `ACTING`, None: nobody."""

    def __post_init__(self) -> None:
        numbers = (*self.replicas.numbers.values(), *self.replicas.masters.values())
        self.lives = [BrokerLife(number, None) for number in numbers]
        self._locks_by = dict.fromkeys(self.replicas.numbers.values(), _MASTER)

    def take(self, event: Event, moment: Moment) -> None:
        """Take a broker or master event; others, and brokers without queues, pass by."""
        broker = self.replicas.numbers.get(event.broker_name or "")
        if broker is None:
            return
        master = self.replicas.masters.get(broker)
        match event.event_type:
            case events.BROKER_DOWN:
                self._down(broker, moment, event.detail == EXPIRED)
                self._down(master, moment, event.detail == EXPIRED)
            case events.BROKER_UP:
                self._up(broker, moment)
                if self._locks_by[broker] == _MASTER:
                    self._up(master, moment)
            case events.MASTER_DOWN:
                self._down(master, moment, host_lost=False)
                self._locks_go_to(ACTING if event.detail == ACTING else None, broker, moment)
            case events.MASTER_UP:
                if self._life(broker).down is None:
                    self._up(master, moment)
                self._locks_go_to(_MASTER, broker, moment)

    def _up(self, number: int | None, moment: Moment) -> None:
        if number is not None and self._life(number).down is not None:
            self.lives.append(BrokerLife(number, moment))

    def _down(self, number: int | None, moment: Moment, host_lost: bool) -> None:
        life = None if number is None else self._life(number)
        if life is not None and life.down is None:
            self.lives[self.lives.index(life)] = replace(life, down=moment, host_lost=host_lost)

    def _locks_go_to(self, giver: str | None, broker: int, moment: Moment) -> None:
        """Another process gives locks, or nobody does; what was given before is gone."""
        before, self._locks_by[broker] = self._locks_by[broker], giver
        if before == giver:
            return
        if before is not None:
            self.lockless.append(Lockless(broker, moment, None if giver is None else moment))
            return
        begun = next(each for each in reversed(self.lockless) if each.broker == broker)
        self.lockless[self.lockless.index(begun)] = replace(begun, until=moment)

    def _life(self, number: int) -> BrokerLife:
        return next(life for life in reversed(self.lives) if life.broker == number)


def numbered(
    named: NamedRoute,
    entity: int,
    queues: Mapping[MessageQueue, int],
) -> RouteVersion:
    """A route version with the script's numbers of queues."""
    return RouteVersion(
        moment=named.moment,
        entity=entity,
        queues=tuple(queues[queue] for queue in named.queues),
        brokers=named.brokers,
        hearing=named.hearing,
        masterless=named.masterless,
        gone=named.gone,
    )

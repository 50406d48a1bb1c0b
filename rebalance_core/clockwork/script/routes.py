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
    _masterless: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        numbers = (*self.replicas.numbers.values(), *self.replicas.masters.values())
        self.lives = [BrokerLife(number, None) for number in numbers]

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
                if broker not in self._masterless:
                    self._up(master, moment)
            case events.MASTER_DOWN:
                self._masterless.add(broker)
                self._down(master, moment, host_lost=False)
                if not self._is_lockless(broker):
                    acting = event.detail == ACTING
                    self.lockless.append(Lockless(broker, moment, moment if acting else None))
            case events.MASTER_UP if broker in self._masterless:
                self._masterless.discard(broker)
                if not self._is_lockless(broker):
                    self.lockless.append(Lockless(broker, moment, moment))
                if self._life(broker).down is None:
                    self._up(master, moment)
                self.lockless = [
                    replace(each, until=moment)
                    if each.broker == broker and each.until is None else each
                    for each in self.lockless
                ]  # fmt: skip

    def _up(self, number: int | None, moment: Moment) -> None:
        if number is not None and self._life(number).down is not None:
            self.lives.append(BrokerLife(number, moment))

    def _down(self, number: int | None, moment: Moment, host_lost: bool) -> None:
        life = None if number is None else self._life(number)
        if life is not None and life.down is None:
            self.lives[self.lives.index(life)] = replace(life, down=moment, host_lost=host_lost)

    def _is_lockless(self, broker: int) -> bool:
        return any(each.broker == broker and each.until is None for each in self.lockless)

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

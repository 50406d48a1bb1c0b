"""The routes of a group's topics over time, and the lives of the brokers in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from rebalance_core.clockwork.script.parts import BrokerLife, Lockless, Moment, RouteVersion
from rebalance_core.model import events
from rebalance_core.model.events import ACTING, EXPIRED, Event
from rebalance_core.model.ordering import java_string_key
from rebalance_core.model.queue import MessageQueue
from rebalance_core.protocol.routes import Routes


@dataclass(frozen=True, slots=True)
class NamedRoute:
    """A route version before queues and brokers have numbers."""

    moment: Moment | None
    queues: tuple[MessageQueue, ...]
    brokers: tuple[str, ...]
    gone: bool


@dataclass(slots=True)
class RouteBook:
    """Versions of the routes as instants go by; only versions that differ are kept."""

    topics: frozenset[str]
    versions: dict[str, list[NamedRoute]] = field(default_factory=dict)

    def take(self, moment: Moment, routes: Routes) -> None:
        """Take the routes as they are after an instant."""
        for topic in self.topics & routes.configs.keys() | self.versions.keys():
            brokers = sorted(routes.brokers_of(topic) - routes.down, key=java_string_key)
            queues = tuple(routes.readable_queues(topic))
            known = self.versions.setdefault(topic, [])
            route = NamedRoute(moment, queues, tuple(brokers), not brokers)
            if not known or replace(known[-1], moment=moment) != route:
                known.append(route)


@dataclass(slots=True)
class BrokerBook:
    """Lives of brokers and their stretches without a master, from their events."""

    brokers: Mapping[str, int]
    lives: list[BrokerLife] = field(default_factory=list)
    lockless: list[Lockless] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.lives = [BrokerLife(number, None) for number in self.brokers.values()]

    def take(self, event: Event, moment: Moment) -> None:
        """Take a broker or master event; others, and brokers without queues, pass by."""
        broker = self.brokers.get(event.broker_name or "")
        if broker is None:
            return
        match event.event_type:
            case events.BROKER_DOWN:
                self._down(broker, moment, event.detail == EXPIRED)
            case events.BROKER_UP if self._life(broker).down is not None:
                self.lives.append(BrokerLife(broker, moment))
            case events.MASTER_DOWN if event.detail != ACTING and not self._is_lockless(broker):
                self.lockless.append(Lockless(broker, moment))
            case events.MASTER_UP:
                self.lockless = [
                    replace(each, until=moment)
                    if each.broker == broker and each.until is None else each
                    for each in self.lockless
                ]  # fmt: skip

    def _down(self, broker: int, moment: Moment, host_lost: bool) -> None:
        life = self._life(broker)
        if life.down is None:
            self.lives[self.lives.index(life)] = replace(life, down=moment, host_lost=host_lost)

    def _is_lockless(self, broker: int) -> bool:
        return any(each.broker == broker and each.until is None for each in self.lockless)

    def _life(self, broker: int) -> BrokerLife:
        return next(life for life in reversed(self.lives) if life.broker == broker)


def numbered(
    named: NamedRoute,
    entity: int,
    queues: Mapping[MessageQueue, int],
    brokers: Mapping[str, int],
) -> RouteVersion:
    """A route version with the script's numbers."""
    return RouteVersion(
        moment=named.moment,
        entity=entity,
        queues=tuple(queues[queue] for queue in named.queues),
        brokers=tuple(brokers[name] for name in named.brokers),
        gone=named.gone,
    )

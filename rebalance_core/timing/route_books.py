"""Routes of a group's topics over time, and the lifetimes of the brokers in them."""

from dataclasses import dataclass, field, replace
from itertools import chain

from rebalance_core.model import events
from rebalance_core.model.events import Event
from rebalance_core.model.queue import MessageQueue, java_string_key
from rebalance_core.protocol.routes import Routes
from rebalance_core.timing.broker_replicas import BrokerReplicas
from rebalance_core.timing.group_timeline import (
    BrokerLifetime,
    LocklessSpan,
    LoggedTime,
    NoticeSwitch,
    RouteVersion,
)

_MASTER = "MASTER"


NamedRoute = tuple[RouteVersion, tuple[MessageQueue, ...]]
"""A route version whose queues have no numbers yet, and these queues."""


@dataclass(slots=True)
class RouteBook:
    """Collects the versions of routes instant by instant, skipping versions equal to the previous
    one.
    """

    topics: frozenset[str]
    replicas: BrokerReplicas
    versions: dict[str, list[NamedRoute]] = field(default_factory=dict)

    def take(self, moment: LoggedTime, routes: Routes) -> None:
        """Record the routes after an instant."""
        for topic in self.topics & routes.configs.keys() | self.versions.keys():
            names = sorted(routes.brokers_of(topic) - routes.down, key=java_string_key)
            heartbeat_targets = [
                self.replicas.heartbeat_targets(name, routes.masterless) for name in names
            ]
            queues = tuple(routes.readable_queues(topic))
            versions = self.versions.setdefault(topic, [])
            route = RouteVersion(
                moment,
                entity=0,
                queues=(),
                brokers=tuple(self.replicas.asked(name, routes.masterless) for name in names),
                heartbeat_targets=tuple(chain(*heartbeat_targets)),
                masterless=tuple(
                    self.replicas.numbers[name] for name in names if name in routes.lockless
                ),
                gone=not names,
            )
            last, last_queues = versions[-1] if versions else (None, ())
            if last is None or (replace(last, moment=moment), last_queues) != (route, queues):
                versions.append((route, queues))

    def reads(self, broker_name: str) -> bool:
        """Return whether any topic is on the broker."""
        number = self.replicas.numbers.get(broker_name)
        return any(number in each[-1][0].heartbeat_targets for each in self.versions.values())


@dataclass(slots=True)
class BrokerBook:
    """Collects the lifetimes of brokers and their periods without a master from events."""

    replicas: BrokerReplicas
    lifetimes: list[BrokerLifetime] = field(default_factory=list)
    lockless: list[LocklessSpan] = field(default_factory=list)
    notices: list[NoticeSwitch] = field(default_factory=list)
    _locks_by: dict[int, str | None] = field(default_factory=dict)
    """The process that grants each broker's order locks: `_MASTER`, `ACTING`, or None."""

    def __post_init__(self) -> None:
        numbers = (*self.replicas.numbers.values(), *self.replicas.masters.values())
        self.lifetimes = [BrokerLifetime(number, None) for number in numbers]
        self._locks_by = dict.fromkeys(self.replicas.numbers.values(), _MASTER)

    def take(self, event: Event, moment: LoggedTime) -> None:
        """Apply a broker or master event, ignoring other events and brokers without queues."""
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
                if self._lifetime(broker).down is None:
                    self._up(master, moment)
                self._locks_go_to(_MASTER, broker, moment)

    def _up(self, number: int | None, moment: LoggedTime) -> None:
        if number is not None and self._lifetime(number).down is not None:
            self.lifetimes.append(BrokerLifetime(number, moment))

    def _down(self, number: int | None, moment: LoggedTime, host_lost: bool) -> None:
        lifetime = None if number is None else self._lifetime(number)
        if lifetime is not None and lifetime.down is None:
            self.lifetimes[self.lifetimes.index(lifetime)] = replace(
                lifetime, down=moment, host_lost=host_lost
            )

    def _locks_go_to(self, giver: str | None, broker: int, moment: LoggedTime) -> None:
        """Let another process, or none, grant locks; earlier locks are lost."""
        before, self._locks_by[broker] = self._locks_by[broker], giver
        if before == giver:
            return
        if before is not None:
            self.lockless.append(LocklessSpan(broker, moment, None if giver is None else moment))
            return
        begun = next(each for each in reversed(self.lockless) if each.broker == broker)
        self.lockless[self.lockless.index(begun)] = replace(begun, until=moment)

    def _lifetime(self, number: int) -> BrokerLifetime:
        return next(lifetime for lifetime in reversed(self.lifetimes) if lifetime.broker == number)

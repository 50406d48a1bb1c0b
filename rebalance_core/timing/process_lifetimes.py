"""Build the lifetimes of a group's processes from consumer events."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from itertools import chain

from rebalance_core.model import events
from rebalance_core.model.clients import client_intervals
from rebalance_core.model.events import Event
from rebalance_core.replay.group_state import GroupState
from rebalance_core.replay.member import Member, ProcessKey
from rebalance_core.timing.broker_replicas import BrokerReplicas
from rebalance_core.timing.draws import entity_of
from rebalance_core.timing.group_timeline import (
    Ending,
    LoggedTime,
    ProcessLifetime,
    Sighting,
)

BROKER_LOGS = "brokers/"
"""The folder of a collection that contains the brokers' logs; a ``source`` in it dates a join by
the first broker.
"""


@dataclass(slots=True)
class LifetimeBuilder:
    """Builds lifetimes event by event; pass each event after the group's state has applied it."""

    cluster: str
    consumer_group: str
    replicas: BrokerReplicas
    moment_of: Callable[[Event], LoggedTime]
    lifetimes: list[ProcessLifetime] = field(default_factory=list)
    _open: dict[ProcessKey, int] = field(default_factory=dict)
    _stays: dict[ProcessKey, int] = field(default_factory=dict)
    _new: list[int] = field(default_factory=list)

    def take(self, event: Event, state: GroupState) -> None:
        """Apply a consumer event for a member that the group's state contained."""
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
        """Register the members that joined at this instant with the brokers of all its events."""
        for index in self._new:
            lifetime = self.lifetimes[index]
            if lifetime.only_broker is None:
                names = _reachable(state, lifetime.states[0][1])
                masterless = state.routes.masterless
                brokers = chain(
                    *(self.replicas.heartbeat_targets(name, masterless) for name in names)
                )
                self.lifetimes[index] = replace(lifetime, first_brokers=tuple(sorted(brokers)))
        self._new.clear()

    def _begin(self, key: ProcessKey, event: Event, state: GroupState) -> None:
        client_id, channel_id = key
        only = self._one_broker(event, state)
        stay = self._stays[key] = self._stays.get(key, -1) + 1
        moment, member = self.moment_of(event), state.members[key]
        self._open[key] = len(self.lifetimes)
        self._new.append(len(self.lifetimes))
        self.lifetimes.append(
            ProcessLifetime(
                index=len(self.lifetimes),
                entity=entity_of(
                    self.cluster, self.consumer_group, client_id, channel_id, str(stay)
                ),
                client_id=client_id,
                channel_id=channel_id,
                joined=moment,
                observed=event.detail == events.OBSERVED,
                only_broker=only,
                stale_entry=only is not None and self._is_listed_elsewhere(key),
                first_brokers=() if only is None else (only,),
                states=((moment, member),),
                intervals=client_intervals(state.settings, event),
                dated_by_broker=(event.source or "").startswith(BROKER_LOGS),
            )
        )

    def _is_listed_elsewhere(self, key: ProcessKey) -> bool:
        return any(
            client_id == key[0] and (client_id, channel) != key for client_id, channel in self._open
        )

    def _one_broker(self, event: Event, state: GroupState) -> int | None:
        name = event.broker_name
        return None if name is None else self.replicas.asked(name, state.routes.masterless)

    def _see(self, key: ProcessKey, event: Event, state: GroupState, *, listed: bool) -> None:
        broker = self._one_broker(event, state)
        if broker is not None:
            index = self._open[key]
            lifetime = self.lifetimes[index]
            notifies = event.detail != events.EXPIRED and _is_notified(event, state)
            seen = Sighting(self.moment_of(event), broker, listed, notifies)
            self.lifetimes[index] = replace(lifetime, sightings=(*lifetime.sightings, seen))

    def _end(self, key: ProcessKey, event: Event, state: GroupState) -> None:
        index = self._open.pop(key)
        graceful = event.event_type == events.CONSUMER_LEAVE
        notifies = event.detail != events.EXPIRED and _is_notified(event, state)
        ending = Ending(self.moment_of(event), graceful, notifies)
        self.lifetimes[index] = replace(self.lifetimes[index], ending=ending)

    def _change(self, key: ProcessKey, moment: LoggedTime, member: Member) -> None:
        index = self._open[key]
        lifetime = self.lifetimes[index]
        if lifetime.states[-1][1] != member:
            self.lifetimes[index] = replace(lifetime, states=(*lifetime.states, (moment, member)))


def _is_notified(event: Event, state: GroupState) -> bool:
    """Return whether members are notified, which is always the case for a closed channel
    (rocketmq.md §6.2).
    """
    return state.settings.notified or event.event_type == events.CONSUMER_LOST


def _reachable(state: GroupState, member: Member) -> Collection[str]:
    """Return the brokers that are up and in a route that the member reads."""
    return {
        broker
        for topic in member.subscriptions
        for broker in state.routes.brokers_of(topic)
        if broker not in state.routes.down
    }

"""What the settled allocation of one group depends on, and how each event changes it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TypeAlias

from rebalance_core.model import events
from rebalance_core.model.events import Event
from rebalance_core.model.group_settings import BROADCASTING, PUSH, GroupSettings
from rebalance_core.model.ordering import java_string_key
from rebalance_core.model.queue import MessageQueue, retry_topic, sort_queues
from rebalance_core.protocol.routes import Routes

ProcessKey: TypeAlias = tuple[str, str | None]
"""(client_id, channel_id): one process as the brokers see it."""


@dataclass(frozen=True, slots=True)
class Member:
    """One live process of the group with its own settings resolved against the group's."""

    client_id: str
    channel_id: str | None
    subscriptions: frozenset[str]
    strategy: str
    version: str
    message_model: str
    consume_from_where: str
    suspended: bool = False

    @property
    def key(self) -> ProcessKey:
        """What tells this process from another with the same client id."""
        return self.client_id, self.channel_id


class UnknownMember(Exception):
    """An event names a process that is not in the group."""


@dataclass(slots=True)
class GroupState:
    """Members, routes and the retry topic's brokers of one group at one instant."""

    consumer_group: str
    settings: GroupSettings
    include_retry_topics: bool = True
    strategy_override: str | None = None
    members: dict[ProcessKey, Member] = field(default_factory=dict)
    routes: Routes = field(default_factory=Routes)
    retry_brokers: set[str] = field(default_factory=set)
    last_topics: frozenset[str] = frozenset()

    @property
    def retry_topic(self) -> str:
        """The group's retry topic."""
        return retry_topic(self.consumer_group)

    def apply(self, event: Event) -> None:
        """Apply one event. Raises `UnknownMember` for one about a process that is not there."""
        if event.event_type not in events.CONSUMER_EVENTS:
            self.routes.apply(event)
        elif event.event_type == events.CONSUMER_JOIN:
            self._join(event)
        else:
            self._change_member(event)
        if self.members:
            self.last_topics = self._subscribed_topics()
        self._create_retry_topic()

    def _join(self, event: Event) -> None:
        assert event.client_id is not None
        key = (event.client_id, event.channel_id)
        given = event.subscriptions
        self.members[key] = Member(
            client_id=event.client_id,
            channel_id=event.channel_id,
            subscriptions=frozenset(self.settings.subscriptions if given is None else given)
            - {self.retry_topic},
            strategy=self.strategy_override or event.strategy or self.settings.strategy,
            version=event.version or self.settings.client_version,
            message_model=event.message_model or self.settings.message_model,
            consume_from_where=event.consume_from_where or self.settings.consume_from_where,
            suspended=key in self.members and self.members[key].suspended,
        )

    def _change_member(self, event: Event) -> None:
        assert event.client_id is not None
        key = (event.client_id, event.channel_id)
        if key not in self.members:
            raise UnknownMember
        member = self.members[key]
        topics = frozenset() if event.topic is None else frozenset({event.topic})
        match event.event_type:
            case events.CONSUMER_LEAVE | events.CONSUMER_LOST:
                del self.members[key]
                return
            case events.SUBSCRIBE:
                member = replace(member, subscriptions=member.subscriptions | topics)
            case events.UNSUBSCRIBE:
                member = replace(member, subscriptions=member.subscriptions - topics)
            case events.CONSUMER_SUSPEND:
                member = replace(member, suspended=True)
            case events.CONSUMER_RESUME:
                member = replace(member, suspended=False)
        self.members[key] = member

    def _create_retry_topic(self) -> None:
        """Each broker creates the retry topic at the first heartbeat it gets (SEM §3.4)."""
        for member in self.members.values():
            if self.has_retry_topic(member):
                for topic in member.subscriptions:
                    self.retry_brokers |= self.routes.brokers_of(topic)

    def has_retry_topic(self, member: Member) -> bool:
        """Only push CLUSTERING consumers subscribe the retry topic."""
        return (
            self.include_retry_topics
            and self.settings.consumer_type == PUSH
            and member.message_model != BROADCASTING
        )

    def _subscribed_topics(self) -> frozenset[str]:
        topics: set[str] = set()
        for member in self.members.values():
            topics |= member.subscriptions
            if self.has_retry_topic(member):
                topics.add(self.retry_topic)
        return frozenset(topics)

    def readable_queues(self, topic: str) -> list[MessageQueue]:
        """MqAll of one topic; the retry topic has one queue on each of its brokers that is up."""
        if topic != self.retry_topic:
            return self.routes.readable_queues(topic)
        return sort_queues(
            MessageQueue(topic, broker, 0)
            for broker in self.retry_brokers
            if broker not in self.routes.down
        )

    def readable_by_topic(self) -> dict[str, list[MessageQueue]]:
        """MqAll of each topic of the group, in Java order of the topics.

        The group's topics are those a current member subscribes; with no member left, those of
        its last members.
        """
        return {
            topic: self.readable_queues(topic)
            for topic in sorted(self.last_topics, key=java_string_key)
            if topic != self.retry_topic or self.retry_brokers
        }

    def signature(self) -> tuple[object, ...]:
        """Equal before and after an instant exactly when no new epoch begins there."""
        members = frozenset(
            (m.key, m.subscriptions, m.strategy, m.version, m.message_model, m.suspended)
            for m in self.members.values()
        )
        queues = tuple((topic, tuple(queues)) for topic, queues in self.readable_by_topic().items())
        return members, queues

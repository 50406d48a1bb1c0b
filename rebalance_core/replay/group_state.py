"""What the settled allocation of one group depends on, and how each event changes it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TypeAlias

from rebalance_core.model import events
from rebalance_core.model.events import Event
from rebalance_core.model.group_settings import BROADCASTING, PUSH, GroupSettings
from rebalance_core.model.ordering import java_string_key
from rebalance_core.model.queue import MessageQueue, retry_topic, sort_queues
from rebalance_core.model.request_mode import can_be_popped, parse_request_mode
from rebalance_core.protocol.asks_broker import asks_broker
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
    rebalance_mode: str
    suspended: bool = False
    retry_topic: str | None = None
    """The group's retry topic, if the member subscribes it."""

    def subscribes(self, topic: str) -> bool:
        """True if the member reads the topic, or would if it had queues."""
        return topic in self.subscriptions or topic == self.retry_topic

    def asks_broker(self, settings: GroupSettings) -> bool:
        """The broker divides for this member of a group with these settings (rocketmq.md §2.8)."""
        return asks_broker(
            self.rebalance_mode,
            settings.consumer_type,
            self.message_model,
            settings.ordered,
            self.version,
        )

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
    pop_topics: set[str] = field(default_factory=set)
    """Topics whose request mode is POP, whether somebody asks for it or not."""
    topics: frozenset[str] = frozenset()
    """What its members subscribe; with no member left, what all did before the instant in which
    the last of them went."""
    topics_before: frozenset[str] = frozenset()
    """`topics` as they were when the instant began."""

    @property
    def retry_topic(self) -> str:
        """The group's retry topic."""
        return retry_topic(self.consumer_group)

    def begin_instant(self) -> None:
        """Events of a new instant follow; whoever goes in it leaves the topics of now."""
        self.topics_before = self.topics

    def apply(self, event: Event) -> None:
        """Apply one event. Raises `UnknownMember` for one about a process that is not there."""
        if event.event_type == events.REQUEST_MODE:
            self._set_mode(event)
        elif event.event_type not in events.CONSUMER_EVENTS:
            self.routes.apply(event)
        elif event.event_type == events.CONSUMER_JOIN:
            self._join(event)
        else:
            self._change_member(event)
        self.topics = self._subscribed_topics() if self.members else self.topics_before
        self._create_retry_topic()

    def _set_mode(self, event: Event) -> None:
        assert event.topic is not None
        assert event.detail is not None
        if parse_request_mode(event.detail).is_pop and can_be_popped(event.topic):
            self.pop_topics.add(event.topic)
        else:
            self.pop_topics.discard(event.topic)

    def _join(self, event: Event) -> None:
        assert event.client_id is not None
        key = (event.client_id, event.channel_id)
        given, model = event.subscriptions, event.message_model or self.settings.message_model
        self.members[key] = Member(
            client_id=event.client_id,
            channel_id=event.channel_id,
            subscriptions=frozenset(self.settings.subscriptions if given is None else given)
            - {self.retry_topic},
            strategy=self.strategy_override or event.strategy or self.settings.strategy,
            version=event.version or self.settings.client_version,
            message_model=model,
            consume_from_where=event.consume_from_where or self.settings.consume_from_where,
            rebalance_mode=event.rebalance_mode or self.settings.rebalance_mode,
            suspended=key in self.members and self.members[key].suspended,
            retry_topic=self.retry_topic if self._has_retry_topic(model) else None,
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
        """Each broker creates the retry topic at the first heartbeat it gets (rocketmq.md §3.4)."""
        for member in self.members.values():
            if member.retry_topic is not None:
                for topic in member.subscriptions:
                    self.retry_brokers |= self.routes.brokers_of(topic)

    def _has_retry_topic(self, message_model: str) -> bool:
        """Only push CLUSTERING consumers subscribe the retry topic."""
        return (
            self.include_retry_topics
            and self.settings.consumer_type == PUSH
            and message_model != BROADCASTING
        )

    def shared_topics(self) -> frozenset[str]:
        """Topics that some member pops now: their queues have no single owner (rocketmq.md §14)."""
        popped: set[str] = set()
        for member in self.members.values() if self.pop_topics else ():
            topics = member.subscriptions & self.pop_topics
            if topics and member.asks_broker(self.settings):
                popped |= topics
        return frozenset(popped)

    def _subscribed_topics(self) -> frozenset[str]:
        # most members subscribe alike
        distinct = {(m.subscriptions, m.retry_topic) for m in self.members.values()}
        return frozenset(
            topic for topics, retry in distinct for topic in (*topics, retry) if topic is not None
        )

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
        """MqAll of each topic of the group, in Java order of the topics; popped ones left out."""
        shared = self.shared_topics()
        return {
            topic: self.readable_queues(topic)
            for topic in sorted(self.topics, key=java_string_key)
            if topic not in shared and (topic != self.retry_topic or self.retry_brokers)
        }

    def lockless_brokers(self) -> frozenset[str]:
        """Brokers with queues of the group that nobody gives the locks of; an orderly group's."""
        if not (self.settings.ordered and self.routes.lockless):
            return frozenset()
        readable = self.readable_by_topic().values()
        return self.routes.lockless & {q.broker_name for queues in readable for q in queues}

    def signature(self) -> tuple[object, ...]:
        """Equal before and after an instant exactly when no new epoch begins there."""
        members = frozenset(
            (m.key, m.subscriptions, m.strategy, m.version, m.message_model, m.rebalance_mode,
             m.suspended)
            for m in self.members.values()
        )  # fmt: skip
        queues = tuple((topic, tuple(queues)) for topic, queues in self.readable_by_topic().items())
        return members, queues, self.lockless_brokers()

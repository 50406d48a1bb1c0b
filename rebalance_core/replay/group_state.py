"""The state on which a group's settled allocation depends, and how each event changes it."""

from dataclasses import dataclass, field, replace
from typing import NamedTuple

from rebalance_core.model import clients, events, queue
from rebalance_core.model.events import Event
from rebalance_core.model.group_settings import BROADCASTING, PROXY_REBALANCE, PUSH, GroupSettings
from rebalance_core.model.queue import MessageQueue, retry_topic
from rebalance_core.model.request_mode import can_be_popped, parse_request_mode
from rebalance_core.protocol.routes import Routes
from rebalance_core.replay.member import Member, ProcessKey, Traits
from rebalance_core.replay.shared_topics import SharedTopic, shared_topics
from rebalance_core.strategies.texts import own_strategy


class UnknownMember(Exception):
    """An event names a process that is not in the group."""


class Signature(NamedTuple):
    """The state whose change begins a new epoch."""

    turned: frozenset[tuple[ProcessKey, Traits | None]]
    """Members that have changed since the start of the instant; None if gone."""
    queues: tuple[tuple[str, tuple[MessageQueue, ...]], ...]
    shared: tuple[tuple[str, SharedTopic], ...]
    lockless: frozenset[str]


@dataclass(slots=True)
class GroupState:
    """A group's members, routes and retry-topic brokers at an instant.

    A process is live while any broker has a connection from it, so an event that only one broker
    saw about a member that others know changes nothing.
    """

    consumer_group: str
    settings: GroupSettings
    include_retry_topics: bool = True
    strategy_override: str | None = None
    members: dict[ProcessKey, Member] = field(default_factory=dict)
    routes: Routes = field(default_factory=Routes)
    retry_brokers: set[str] = field(default_factory=set)
    """The brokers on which members created the retry topic, unless its own TOPIC_CONFIG states its
    queues.
    """
    retry_exists: bool = False
    """Whether a member that subscribes to the retry topic saw or created it on any broker, up or
    down.
    """
    pop_shares: dict[str, int] = field(default_factory=dict)
    """The share number of each topic whose request mode is POP, whether or not a member asks for
    it.
    """
    listed_at: dict[ProcessKey, set[str]] = field(default_factory=dict)
    """The brokers that saw a process join, for processes not known to be listed by all brokers."""
    topics: frozenset[str] = frozenset()
    """The topics to which its members subscribe; without members, those before the instant in which
    the last member left.
    """
    topics_before: frozenset[str] = frozenset()
    """`topics` as they were when the instant began."""
    _kinds: dict[Traits, dict[ProcessKey, Member]] = field(default_factory=dict)
    """The members by traits; most groups have only one kind."""
    _turned: dict[ProcessKey, Traits | None] = field(default_factory=dict)
    """The traits that the members concerned by the instant's events had at its start."""

    @property
    def retry_topic(self) -> str:
        """The group's retry topic."""
        return retry_topic(self.consumer_group)

    def begin_instant(self) -> None:
        """Begin a new instant; members that depart in it leave behind the current topics."""
        self.topics_before = self.topics
        self._turned.clear()

    def apply(self, event: Event) -> None:
        """Apply an event.

        Raises:
            UnknownMember: the event is about a process that is not a member.
        """
        if event.event_type == events.REQUEST_MODE:
            self._set_mode(event)
        elif event.event_type not in events.CONSUMER_EVENTS:
            self.routes.apply(event)
        elif self._stays(event):
            return
        elif event.event_type == events.CONSUMER_JOIN:
            self._join(event)
        else:
            self._change_member(event)
        self.topics = self._subscribed_topics() if self.members else self.topics_before
        self._create_retry_topic()

    def _stays(self, event: Event) -> bool:
        """Return True if only one broker saw the join or departure of a member known to others."""
        key = (event.client_id or "", event.channel_id)
        broker, is_member = event.broker_name, key in self.members
        if event.event_type == events.CONSUMER_JOIN:
            if broker is None:
                self.listed_at.pop(key, None)
                return False
            if is_member and key not in self.listed_at:
                return True
            self.listed_at.setdefault(key, set()).add(broker)
            return is_member
        if event.event_type not in (events.CONSUMER_LEAVE, events.CONSUMER_LOST) or not is_member:
            return False
        if broker is not None:
            brokers = self.listed_at.get(key)
            if brokers is None:
                return True
            brokers.discard(broker)
            if brokers:
                return True
        self.listed_at.pop(key, None)
        return False

    def _set_mode(self, event: Event) -> None:
        assert event.topic is not None
        assert event.detail is not None
        share_queue_num = parse_request_mode(event.detail).share_queue_num
        if share_queue_num is not None and can_be_popped(event.topic):
            self.pop_shares[event.topic] = share_queue_num
        else:
            self.pop_shares.pop(event.topic, None)

    def _join(self, event: Event) -> None:
        assert event.client_id is not None
        key = (event.client_id, event.channel_id)
        model = event.message_model or self.settings.message_model
        stated = event.subscriptions
        topics = self.settings.subscriptions if stated is None else stated
        mode = event.rebalance_mode or self.settings.rebalance_mode
        version = event.version or self.settings.client_version
        profile = clients.member_profile(event.language, version, mode)
        strategy = self.strategy_override or event.strategy or self.settings.strategy
        joined = Member(
            client_id=event.client_id,
            channel_id=event.channel_id,
            subscriptions=frozenset(topics or ()) - {self.retry_topic},
            subscriptions_known=topics is not None,
            strategy=own_strategy(profile, strategy),
            version=version,
            message_model=model,
            consume_from_where=event.consume_from_where or self.settings.consume_from_where,
            rebalance_mode=mode,
            suspended=key in self.members and self.members[key].suspended,
            retry_topic=self.retry_topic
            if profile.retry and self._has_retry_topic(model, mode)
            else None,
            language=event.language,
            profile=profile,
        )
        self._set_member(key, joined)

    def _set_member(self, key: ProcessKey, member: Member | None) -> None:
        """Set a process's member; None means that it is gone."""
        former = self.members.get(key)
        self._turned.setdefault(key, None if former is None else former.traits)
        if former is not None:
            of_kind = self._kinds[former.traits]
            del of_kind[key]
            if not of_kind:
                del self._kinds[former.traits]
        if member is None:
            self.members.pop(key, None)
        else:
            self.members[key] = member
            self._kinds.setdefault(member.traits, {})[key] = member

    def _examples(self) -> list[Member]:
        """Return a member of each kind; all members of a kind have the same subscriptions."""
        return [next(iter(of_kind.values())) for of_kind in self._kinds.values()]

    def _change_member(self, event: Event) -> None:
        assert event.client_id is not None
        key = (event.client_id, event.channel_id)
        if key not in self.members:
            raise UnknownMember
        member = self.members[key]
        topics = frozenset() if event.topic is None else frozenset({event.topic})
        match event.event_type:
            case events.CONSUMER_LEAVE | events.CONSUMER_LOST:
                self._set_member(key, None)
                return
            case events.SUBSCRIBE:
                subscribed = member.subscriptions | topics
                member = replace(member, subscriptions=subscribed, subscriptions_known=True)
            case events.UNSUBSCRIBE:
                member = replace(member, subscriptions=member.subscriptions - topics)
            case events.CONSUMER_SUSPEND:
                member = replace(member, suspended=True)
            case events.CONSUMER_RESUME:
                member = replace(member, suspended=False)
        self._set_member(key, member)

    def _create_retry_topic(self) -> None:
        """Create the retry topic on each broker at the first heartbeat that it receives
        (rocketmq.md §3.4).

        A member sends heartbeats at least to the brokers of its topics. For other members'
        heartbeats, the retry topic's own TOPIC_CONFIG states the queue.
        """
        for member in self._examples():
            if member.retry_topic is not None:
                for topic in member.subscriptions:
                    self.retry_brokers |= self.routes.brokers_of(topic)
                brokers = self.retry_brokers or self.routes.brokers_of(self.retry_topic)
                self.retry_exists = self.retry_exists or bool(brokers)

    def _has_retry_topic(self, message_model: str, rebalance_mode: str) -> bool:
        """Return True for push CLUSTERING consumers without a proxy (rocketmq.md §14)."""
        return (
            self.include_retry_topics
            and self.settings.consumer_type == PUSH
            and message_model != BROADCASTING
            and rebalance_mode != PROXY_REBALANCE
        )

    def shared_topics(self) -> dict[str, SharedTopic]:
        """Return the topics that any member now pops, in Java order (rocketmq.md §14)."""
        shared = shared_topics(self._examples(), self.pop_shares, self.settings)
        return {
            topic: SharedTopic(tuple(self.readable_queues(topic)), share_queue_num)
            for topic, share_queue_num in shared.items()
        }

    def _subscribed_topics(self) -> frozenset[str]:
        return frozenset(
            topic
            for member in self._examples()
            for topic in (*member.subscriptions, member.retry_topic)
            if topic is not None
        )

    def readable_queues(self, topic: str) -> list[MessageQueue]:
        """Return a topic's mqAll.

        The retry topic has one queue on each of its live brokers, or the number that its own
        TOPIC_CONFIG states.
        """
        stated = self.routes.readable_queues(topic)
        if topic != self.retry_topic:
            return stated
        created = self.retry_brokers - self.routes.brokers_of(topic) - self.routes.down
        return queue.sort_queues([*stated, *(MessageQueue(topic, broker, 0) for broker in created)])

    def readable_by_topic(self) -> dict[str, list[MessageQueue]]:
        """Return mqAll of each of the group's topics, in Java order, without shared topics."""
        shared = self.shared_topics()
        return {
            topic: self.readable_queues(topic)
            for topic in sorted(self.topics, key=queue.java_string_key)
            if topic not in shared and (topic != self.retry_topic or self.retry_exists)
        }

    def lockless_brokers(self) -> frozenset[str]:
        """Return the brokers of an orderly group's queues on which no process grants locks."""
        settings = self.settings
        if not (self.routes.lockless and settings.ordered and settings.consumer_type == PUSH):
            return frozenset()
        readable = self.readable_by_topic().values()
        return self.routes.lockless & {q.broker_name for queues in readable for q in queues}

    def signature(self) -> Signature:
        """Return a signature that is equal at two moments exactly when no epoch begins between
        them.
        """
        now = {key: self.members[key].traits for key in self._turned if key in self.members}
        turned = frozenset(
            (key, now.get(key)) for key, before in self._turned.items() if now.get(key) != before
        )
        queues = tuple((topic, tuple(queues)) for topic, queues in self.readable_by_topic().items())
        shared = tuple(self.shared_topics().items())
        return Signature(turned, queues, shared, self.lockless_brokers())

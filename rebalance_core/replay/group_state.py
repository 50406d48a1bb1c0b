"""A group at one moment: its live processes, what its settled allocation depends on, how events
change that, what members see of it, and which topics members share instead of owning queues.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import NamedTuple, TypeAlias

from rebalance_core.model import clients, events, queue
from rebalance_core.model.clients import ClientProfile, rules_version
from rebalance_core.model.events import Event
from rebalance_core.model.group_settings import (
    BROADCASTING,
    PROXY_REBALANCE,
    PUSH,
    GroupSettings,
    can_be_popped,
    parse_request_mode,
)
from rebalance_core.model.queue import MessageQueue, java_string_key, retry_topic
from rebalance_core.protocol.members import asks_broker
from rebalance_core.protocol.routes import Routes
from rebalance_core.strategies.texts import own_strategy

# One live process of a group, and the topics whose queues members share instead of owning them.

# One live process of a group.

ProcessKey: TypeAlias = tuple[str, str | None]
"""(client_id, channel_id): one process as the brokers see it."""

Traits: TypeAlias = frozenset[tuple[str, object]]
"""What decides which queues a member takes, its client id aside, by attribute."""

_TRAITS = (
    "subscriptions",
    "subscriptions_known",
    "strategy",
    "version",
    "message_model",
    "rebalance_mode",
    "suspended",
    "retry_topic",
    "language",
    "profile",
)


@lru_cache(maxsize=1 << 12)  # equal ones are mostly one object, which compares at once
def _kept_once(traits: Traits) -> Traits:
    return traits


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
    subscriptions_known: bool = True
    """False: no row states them, and ``subscriptions`` is empty for want of anything better."""
    language: str | None = None
    profile: ClientProfile = clients.JAVA_PROFILE
    """How its client behaves; of one behind a proxy, which divides for it, as Java's."""
    traits: Traits = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        traits = frozenset((name, getattr(self, name)) for name in _TRAITS)
        object.__setattr__(self, "traits", _kept_once(traits))

    def subscribes(self, topic: str) -> bool:
        """True if the member is known to read the topic, or would if it had queues."""
        return topic in self.subscriptions or topic == self.retry_topic

    def asks_broker(self, settings: GroupSettings) -> bool:
        """The broker divides for this member of a group with these settings (rocketmq.md §2.8)."""
        return asks_broker(
            self.rebalance_mode,
            settings.consumer_type,
            self.message_model,
            settings.ordered,
            self.rules_version,
        )

    @property
    def rules_version(self) -> str:
        """The RocketMQ version whose rules it follows in what its profile does not say."""
        return rules_version(self.language, self.version)

    @property
    def rule_known(self) -> bool:
        """False: nobody knows by which rule, or by which order of the members, it divides."""
        return self.message_model == BROADCASTING or self.profile.share_known(self.strategy)

    @property
    def share_known(self) -> bool:
        """False: nobody can say which queues it takes."""
        return self.subscriptions_known and self.rule_known

    @property
    def key(self) -> ProcessKey:
        """Return the key that tells this process from another with the same client id."""
        return self.client_id, self.channel_id


# Topics whose queues members share instead of owning them (rocketmq.md §2.8, §14).


@dataclass(frozen=True, slots=True)
class SharedTopic:
    """A topic that some member pops.

    Attributes:
        queues: mqAll.
        share_queue_num: of its request mode POP; None: no member asks a broker to pop it, those
            that pop it are behind proxies.
    """

    queues: tuple[MessageQueue, ...]
    share_queue_num: int | None


def shared_topics(
    members: Iterable[Member], pop_shares: Mapping[str, int], settings: GroupSettings
) -> dict[str, int | None]:
    """The topics that some member pops, in Java order, each with its `SharedTopic.share_queue_num`.

    Args:
        members: the live ones.
        pop_shares: share number of each topic whose request mode is POP.
        settings: the group's.
    """
    popped: set[str] = set()
    behind_proxies: set[str] = set()
    for member in members:
        if member.rebalance_mode == PROXY_REBALANCE:
            behind_proxies |= member.subscriptions
        elif pop_shares and member.asks_broker(settings):
            popped |= member.subscriptions & pop_shares.keys()
    return {
        topic: pop_shares[topic] if topic in popped else None
        for topic in sorted(popped | behind_proxies, key=java_string_key)
    }


# What the settled allocation of one group depends on, how events change it, and what members see
# of it.

# What the settled allocation of one group depends on, and how each event changes it.


class UnknownMember(Exception):
    """An event names a process that is not in the group."""


class Signature(NamedTuple):
    """What begins a new epoch when it changes."""

    turned: frozenset[tuple[ProcessKey, Traits | None]]
    """Members that are not as they were when the instant began; None: gone."""
    queues: tuple[tuple[str, tuple[MessageQueue, ...]], ...]
    shared: tuple[tuple[str, SharedTopic], ...]
    lockless: frozenset[str]


@dataclass(slots=True)
class GroupState:
    """Members, routes and the retry topic's brokers of one group at one instant.

    A process is there while any broker has a connection of it: what one broker alone saw of a
    member that others know changes nothing.
    """

    consumer_group: str
    settings: GroupSettings
    include_retry_topics: bool = True
    strategy_override: str | None = None
    members: dict[ProcessKey, Member] = field(default_factory=dict)
    routes: Routes = field(default_factory=Routes)
    retry_brokers: set[str] = field(default_factory=set)
    """Where members created the retry topic, unless its own TOPIC_CONFIG says what is there."""
    retry_exists: bool = False
    """A member that subscribes the retry topic found or created it on some broker, up or down."""
    pop_shares: dict[str, int] = field(default_factory=dict)
    """Share number of each topic whose request mode is POP, whether somebody asks for it or not."""
    listed_at: dict[ProcessKey, set[str]] = field(default_factory=dict)
    """Brokers that saw a process come, of those that no event says all brokers know."""
    topics: frozenset[str] = frozenset()
    """What its members subscribe; with no member left, what all did before the instant in which
    the last of them went."""
    topics_before: frozenset[str] = frozenset()
    """`topics` as they were when the instant began."""
    _kinds: dict[Traits, dict[ProcessKey, Member]] = field(default_factory=dict)
    """The members by traits: most groups have one kind."""
    _turned: dict[ProcessKey, Traits | None] = field(default_factory=dict)
    """What the members that events of this instant are about were when it began."""

    @property
    def retry_topic(self) -> str:
        """The group's retry topic."""
        return retry_topic(self.consumer_group)

    def begin_instant(self) -> None:
        """Events of a new instant follow; whoever goes in it leaves the topics of now."""
        self.topics_before = self.topics
        self._turned.clear()

    def apply(self, event: Event) -> None:
        """Apply one event. Raises `UnknownMember` for one about a process that is not there."""
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
        """True if one broker alone saw a member come or go that others know."""
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
            known = self.listed_at.get(key)
            if known is None:
                return True
            known.discard(broker)
            if known:
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
        given = event.subscriptions
        topics = self.settings.subscriptions if given is None else given
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
        """A process comes or is another one; None: it is gone."""
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
        """A member of each kind; what it subscribes and how, the others of its kind do, too."""
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
                known = member.subscriptions | topics
                member = replace(member, subscriptions=known, subscriptions_known=True)
            case events.UNSUBSCRIBE:
                member = replace(member, subscriptions=member.subscriptions - topics)
            case events.CONSUMER_SUSPEND:
                member = replace(member, suspended=True)
            case events.CONSUMER_RESUME:
                member = replace(member, suspended=False)
        self._set_member(key, member)

    def _create_retry_topic(self) -> None:
        """Each broker creates the retry topic at the first heartbeat it gets (rocketmq.md §3.4).

        A member sends heartbeats at least to the brokers of its topics. Where others sent one, the
        retry topic's own TOPIC_CONFIG states the queue.
        """
        for member in self._examples():
            if member.retry_topic is not None:
                for topic in member.subscriptions:
                    self.retry_brokers |= self.routes.brokers_of(topic)
                found = self.retry_brokers or self.routes.brokers_of(self.retry_topic)
                self.retry_exists = self.retry_exists or bool(found)

    def _has_retry_topic(self, message_model: str, rebalance_mode: str) -> bool:
        """Only push CLUSTERING consumers subscribe the retry topic, and none behind a proxy
        (rocketmq.md §14).
        """
        return (
            self.include_retry_topics
            and self.settings.consumer_type == PUSH
            and message_model != BROADCASTING
            and rebalance_mode != PROXY_REBALANCE
        )

    def shared_topics(self) -> dict[str, SharedTopic]:
        """Topics that some member pops now, in Java order: nobody owns a queue of them alone
        (rocketmq.md §14).
        """
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
        """MqAll of one topic; the retry topic has one queue on each of its brokers that is up,
        or as many as its own TOPIC_CONFIG states.
        """
        stated = self.routes.readable_queues(topic)
        if topic != self.retry_topic:
            return stated
        created = self.retry_brokers - self.routes.brokers_of(topic) - self.routes.down
        return queue.sort_queues([*stated, *(MessageQueue(topic, broker, 0) for broker in created)])

    def readable_by_topic(self) -> dict[str, list[MessageQueue]]:
        """MqAll of each topic of the group, in Java order of the topics; shared ones left out."""
        shared = self.shared_topics()
        return {
            topic: self.readable_queues(topic)
            for topic in sorted(self.topics, key=queue.java_string_key)
            if topic not in shared and (topic != self.retry_topic or self.retry_exists)
        }

    def lockless_brokers(self) -> frozenset[str]:
        """Brokers with queues of the group that nobody gives the locks of; an orderly group's."""
        settings = self.settings
        if not (self.routes.lockless and settings.ordered and settings.consumer_type == PUSH):
            return frozenset()
        readable = self.readable_by_topic().values()
        return self.routes.lockless & {q.broker_name for queues in readable for q in queues}

    def signature(self) -> Signature:
        """Equal at two moments of an instant exactly when no new epoch begins between them."""
        now = {key: self.members[key].traits for key in self._turned if key in self.members}
        turned = frozenset(
            (key, now.get(key)) for key, before in self._turned.items() if now.get(key) != before
        )
        queues = tuple((topic, tuple(queues)) for topic, queues in self.readable_by_topic().items())
        shared = tuple(self.shared_topics().items())
        return Signature(turned, queues, shared, self.lockless_brokers())


# What members see of their group when they rebalance: read-only, and all that `settle` asks for.
#
# A recorded history gives it at every epoch, a plan states it outright. (Kafka's assignors are
# handed a ``GroupSpec`` to the same end.)


@dataclass(frozen=True, slots=True)
class Kind:
    """Members of a view with the same traits.

    Attributes:
        example: One of them.
        keys: All of them, in the view's order.
    """

    example: Member
    keys: list[ProcessKey]


@dataclass(frozen=True)
class GroupView:
    """One state of a group.

    Attributes:
        settings: The group's.
        members: Its live processes.
        readable: mqAll of each of the group's topics, in Java's order of the topics; the shared
            ones left out.
        shared: The topics that some member pops: no client owns a queue of them alone.
        lockless: Brokers whose queues nobody gives the order locks of, and so no new owner.
    """

    settings: GroupSettings
    members: Mapping[ProcessKey, Member]
    readable: Mapping[str, Sequence[MessageQueue]]
    shared: Mapping[str, SharedTopic] = field(default_factory=dict)
    lockless: frozenset[str] = frozenset()

    @cached_property
    def kinds(self) -> list[Kind]:
        """The members by their traits, in the order of the first of each kind."""
        of_kind: defaultdict[Traits, list[ProcessKey]] = defaultdict(list)
        for key, member in self.members.items():
            of_kind[member.traits].append(key)
        return [Kind(self.members[keys[0]], keys) for keys in of_kind.values()]

    def topics_of(self, member: Member) -> list[str]:
        """Return the topics that the member subscribes, its retry topic included once that
        exists; in Java order.
        """
        topics = set(member.subscriptions)
        if member.retry_topic is not None and member.retry_topic in self.readable:
            topics.add(member.retry_topic)
        return sorted(topics, key=queue.java_string_key)

    def sorted_client_ids(self, order: str = clients.UTF16) -> list[str]:
        """cidAll: one entry a process, so an id that several processes have is repeated.

        In the order of Java, or in that of the bytes of UTF-8.
        """
        client_ids = [client_id for client_id, _ in self.members]
        if order == clients.BYTES:
            return sorted(client_ids)  # by code points, as UTF-8 is
        return queue.sort_client_ids(client_ids)


def group_view(state: GroupState) -> GroupView:
    """The view of a replayed group as it is now; later events leave it as it is."""
    return GroupView(
        settings=state.settings,
        members=dict(state.members),
        readable=state.readable_by_topic(),
        shared=state.shared_topics(),
        lockless=state.lockless_brokers(),
    )

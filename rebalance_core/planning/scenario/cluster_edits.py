"""Edits of brokers, topics and groups: lost brokers and rooms, scaled queues, another strategy."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from glob import escape

from rebalance_core.model.group_settings import BROKER_REBALANCE, CLIENT_REBALANCE
from rebalance_core.model.request_mode import (
    DEFAULT_SHARE_QUEUE_NUM,
    PULL_MODE,
    RequestMode,
    can_be_popped,
)
from rebalance_core.model.times import MINUTE_MS, read_duration
from rebalance_core.planning import table_keys
from rebalance_core.planning.scenario import edit
from rebalance_core.planning.scenario.cluster_life import (
    TOPIC_COLUMNS,
    ClusterLife,
    ConfigRule,
    TopicSettings,
)
from rebalance_core.planning.scenario.edit import Edit, GroupEdit
from rebalance_core.planning.scenario.group_life import GroupLife, MemberData
from rebalance_core.planning.scenario.member_edits import DOWN_MS
from rebalance_core.planning.scenario.places import Places, read_places
from rebalance_core.planning.table_keys import MOST_QUEUES
from rebalance_core.protocol.routes import DEFAULT_PERM
from rebalance_core.strategies.machine_room_nearby import DEFAULT_ROOM_SEPARATOR


@dataclass(frozen=True, kw_only=True)
class BrokerLoss(Edit):
    """Removal of all brokers that ``broker`` matches, or of each one in a scenario of its own."""

    broker: tuple[str, ...] = table_keys.key(table_keys.patterns, ())
    each: str | None = table_keys.key(table_keys.one_of(edit.BROKER))

    @classmethod
    def contradictions(cls, values: Mapping[str, object]) -> Iterator[tuple[str, str]]:
        """Yield a mistake if no broker is named."""
        yield from edit.needs_each(values, "broker")

    def globs(self) -> dict[str, tuple[str, Sequence[str]]]:
        """Return the brokers."""
        return {"broker": ("brokers", self.broker)}

    def matched(self, life: ClusterLife) -> list[str]:
        """Return the brokers that ``broker`` matches."""
        return [name for name in sorted(life.brokers) if edit.matches(name, self.broker)]


STOPPED = "STOPPED"


@dataclass(frozen=True, kw_only=True)
class LoseBroker(BrokerLoss):
    """Loss of every broker that ``broker`` matches, for ``back_after`` or until the end.

    ``how``: ``stopped`` gracefully, its connection ``closed``, or ``expired`` at the name server.
    """

    KIND = "lose_broker"

    how: str = table_keys.key(table_keys.one_of("stopped", "closed", "expired"), "closed")
    back_after: int | None = table_keys.key(read_duration)

    def on_cluster(self, life: ClusterLife, source: str) -> None:
        """Take the brokers down."""
        for name in self.matched(life):
            life.lose(name, self.how.upper(), self.back_after, source)


@dataclass(frozen=True, kw_only=True)
class LoseMaster(BrokerLoss):
    """Loss of the master of every broker that ``broker`` matches, for ``back_after`` or until the
    end.

    ``slaves``: reads are ``refused`` (RocketMQ's default), allowed (``slave_read``), or a slave is
    ``acting`` as master (rocketmq.md §15).
    """

    KIND = "lose_master"

    each: str | None = table_keys.key(table_keys.one_of(edit.MASTER))
    slaves: str = table_keys.key(table_keys.one_of("refused", "slave_read", "acting"), "refused")
    back_after: int | None = table_keys.key(read_duration)

    def on_cluster(self, life: ClusterLife, source: str) -> None:
        """Take their masters away."""
        for name in self.matched(life):
            life.lose_master(name, self.slaves.upper(), self.back_after, source)


@dataclass(frozen=True, kw_only=True)
class LoseRoom(Edit):
    """Failure of all brokers and members in machine rooms, which return after ``back_after``.

    A room contains the names that begin with one of ``broker_prefixes`` or ``client_prefixes``;
    without prefixes, those that have the room's name before the first ``separator``. ``each``: the
    rooms are hosts (from client ids, or the nodes in ``places``) or the zones in ``places``.
    ``how``: ``crash`` closes the connections; ``expired`` (default: the network is cut) leaves
    detection to the scans.
    """

    KIND = "lose_room"

    room: tuple[str, ...] = table_keys.key(table_keys.texts, ())
    each: str | None = table_keys.key(table_keys.one_of(edit.HOST, edit.ZONE))
    places: Places | None = table_keys.key(read_places)  # noqa: RUF009  # a field, made once
    separator: str = table_keys.key(table_keys.words, DEFAULT_ROOM_SEPARATOR)
    broker_prefixes: tuple[str, ...] | None = table_keys.key(table_keys.texts)
    client_prefixes: tuple[str, ...] | None = table_keys.key(table_keys.texts)
    how: str = table_keys.key(table_keys.one_of("crash", "expired"), "expired")
    back_after: int | None = table_keys.key(read_duration)

    @classmethod
    def contradictions(cls, values: Mapping[str, object]) -> Iterator[tuple[str, str]]:
        """Yield a mistake if no room is named, or if its location is unknown."""
        yield from edit.needs_each(values, "room")
        yield from edit.each_at_end(values)
        if values.get("each") == edit.ZONE and "places" not in values:
            yield "each", f'= "{edit.ZONE}" needs places, a CSV file with pod, node, zone'
        if "each" in values:
            for name in ("room", "separator", "broker_prefixes", "client_prefixes"):
                if name in values:
                    yield name, "excludes each"
        elif "places" in values:
            yield "places", "needs each"

    def concerns_group(self, consumer_group: str) -> bool:
        """Return True: every group may have members there."""
        return True

    def on_cluster(self, life: ClusterLife, source: str) -> None:
        """Take the brokers down."""
        lost = [name for name in sorted(life.brokers) if self._inside(name, self.broker_prefixes)]
        if not lost and self.broker_prefixes != ():
            rooms = ", ".join(self.room)
            life.log.warn(f"{source}: no broker of {life.cluster} is in the room {rooms}")
        for name in lost:
            life.lose(name, edit.LOSS_DETAILS[self.how] or "", self.back_after, source)

    def on_group(self, life: GroupLife, source: str) -> None:
        """Lose the members."""
        detail = edit.LOSS_DETAILS[self.how]
        for member in life.members():
            if not self._inside(member.key[0], self.client_prefixes):
                continue
            if self.back_after is None:
                life.remove(member, source, detail)
            else:
                life.replace(member, source, self.back_after + DOWN_MS, detail=detail)

    def _inside(self, name: str, prefixes: tuple[str, ...] | None) -> bool:
        if prefixes is not None:
            return name.startswith(prefixes)
        room, separator, _ = name.partition(self.separator)
        return bool(separator) and room in self.room


@dataclass(frozen=True, kw_only=True)
class ScaleQueues(Edit):
    """Scaling to ``queues`` on each broker, to ``read`` and ``write`` separately, or by ``factor``.

    Numbers are per broker, as RocketMQ counts: 8 -> 16 doubles the topic. Later recorded changes of
    these topics are scaled as well.
    """

    KIND = "scale_queues"

    topic: tuple[str, ...] = table_keys.needed(table_keys.patterns)
    broker: tuple[str, ...] = table_keys.key(table_keys.patterns, ("*",))
    queues: int | None = table_keys.key(table_keys.whole(0, MOST_QUEUES))
    read: int | None = table_keys.key(table_keys.whole(0, MOST_QUEUES))
    write: int | None = table_keys.key(table_keys.whole(0, MOST_QUEUES))
    factor: float | None = table_keys.key(table_keys.number(0, 1_024))

    @classmethod
    def contradictions(cls, values: Mapping[str, object]) -> Iterator[tuple[str, str]]:
        """Yield a mistake unless the number is stated in exactly one way."""
        apart = "read" if "read" in values else "write"
        yield from edit.exactly_one(values, "queues", apart, "factor")

    def globs(self) -> dict[str, tuple[str, Sequence[str]]]:
        """Return the topics and brokers."""
        return {"topic": ("topics", self.topic), "broker": ("brokers", self.broker)}

    def scaled(self, topic: str, broker: str, settings: TopicSettings) -> TopicSettings:
        """Return the settings of a topic on a broker under this edit."""
        if not (edit.matches(topic, self.topic) and edit.matches(broker, self.broker)):
            return settings
        read, write = settings["read_queue_nums"] or 0, settings["write_queue_nums"] or 0
        if self.factor is not None:
            read, write = self._times(read), self._times(write)
        else:
            read = next((n for n in (self.queues, self.read) if n is not None), read)
            write = next((n for n in (self.queues, self.write) if n is not None), write)
        return settings | {"read_queue_nums": read, "write_queue_nums": write}

    def on_cluster(self, life: ClusterLife, source: str) -> None:
        """Change the current configuration and any later one."""
        life.rescale(self.scaled, source)

    def _times(self, queues: int) -> int:
        assert self.factor is not None
        return min(MOST_QUEUES, max(1, round(queues * self.factor))) if queues else 0


NO_QUEUES = 0
_QUEUE_NUMBERS = _, _WRITTEN = ("read_queue_nums", "write_queue_nums")


@dataclass(frozen=True, kw_only=True)
class AddBroker(Edit):
    """Addition of the broker ``name``, with the topics of the broker ``like``.

    It gets as many queues of each topic as ``like`` (default: the first broker by name), or
    ``queues``. With ``writes_from``, those brokers are no longer written to.
    """

    KIND = "add_broker"

    name: str = table_keys.needed(table_keys.words)
    topic: tuple[str, ...] = table_keys.key(table_keys.patterns, ("*",))
    like: str | None = table_keys.key(table_keys.words)
    queues: int | None = table_keys.key(table_keys.whole(1, MOST_QUEUES))
    writes_from: tuple[str, ...] = table_keys.key(table_keys.patterns, ())

    def globs(self) -> dict[str, tuple[str, Sequence[str]]]:
        """Return the topics and brokers."""
        like = () if self.like is None else (escape(self.like),)
        return {
            "topic": ("topics", self.topic),
            "like": ("brokers", like),
            "writes_from": ("brokers", self.writes_from),
        }

    def on_cluster(self, life: ClusterLife, source: str) -> None:
        """Register it, create its topics, and stop writes to others."""
        if self.name in life.brokers:
            life.log.warn(f"{source}: {life.cluster} already has a broker {self.name}")
            return
        like = self.like or min(life.brokers, default=None)
        if like not in life.brokers:
            life.log.warn(f"{source}: {life.cluster} has no broker to be like")
            return
        life.raise_broker(self.name, life.brokers[like].version, source)
        for topic in sorted(life.configs):
            settings = life.configs[topic].get(like)
            if settings is None or not edit.matches(topic, self.topic):
                continue
            if self.queues is not None:
                settings = settings | dict.fromkeys(_QUEUE_NUMBERS, self.queues)
            life.configure(topic, self.name, settings, source)
        if self.writes_from:
            life.rescale(self._unwritten, source)

    def _unwritten(self, topic: str, broker: str, settings: TopicSettings) -> TopicSettings:
        moved = edit.matches(topic, self.topic) and edit.matches(broker, self.writes_from)
        if not moved or broker == self.name:
            return settings
        return settings | {_WRITTEN: NO_QUEUES}


@dataclass(frozen=True, kw_only=True)
class DrainBroker(BrokerLoss):
    """Orderly removal of brokers: no writes, after ``read_within`` no reads, then the stop.

    ``read_within`` is the time that the groups need to read the remaining messages; the broker
    stops ``stop_after`` the removal of its last queue.
    """

    KIND = "drain_broker"

    read_within: int = table_keys.key(read_duration, 10 * MINUTE_MS)
    stop_after: int = table_keys.key(read_duration, MINUTE_MS)

    def on_cluster(self, life: ClusterLife, source: str) -> None:
        """Stop the writes and plan the rest."""
        brokers = self.matched(life)
        life.rescale(self._without(brokers, (_WRITTEN,)), source)
        unread = self._without(brokers, _QUEUE_NUMBERS)
        life.after(self.read_within, life.rescale, unread, source)
        for name in brokers:
            after_ms = self.read_within + self.stop_after
            life.after(after_ms, life.lose, name, STOPPED, None, source)

    def _without(self, brokers: Sequence[str], columns: Sequence[str]) -> ConfigRule:
        """Return the rule by which these brokers' topics have none of these queues."""

        def rule(topic: str, broker: str, settings: TopicSettings) -> TopicSettings:
            return settings | dict.fromkeys(columns, NO_QUEUES) if broker in brokers else settings

        return rule


@dataclass(frozen=True, kw_only=True)
class NewTopic(Edit):
    """Creation of the topic ``name`` with ``queues`` on each of the brokers.

    The members of the groups ``subscribed_by`` subscribe to it ``subscribe_after`` its creation, at
    intervals of ``every``, while they run; members that join later have it from the start.
    """

    KIND = "new_topic"

    name: str = table_keys.needed(table_keys.words)
    queues: int = table_keys.needed(table_keys.whole(1, MOST_QUEUES))
    broker: tuple[str, ...] = table_keys.key(table_keys.patterns, ("*",))
    subscribed_by: tuple[str, ...] = table_keys.key(table_keys.patterns, ())
    subscribe_after: int = table_keys.key(read_duration, 0)
    every: int = table_keys.key(read_duration, 0)

    def globs(self) -> dict[str, tuple[str, Sequence[str]]]:
        """Return the brokers and groups."""
        return {"broker": ("brokers", self.broker), "subscribed_by": ("groups", self.subscribed_by)}

    def concerns_group(self, consumer_group: str) -> bool:
        """Return True for the groups that subscribe to it."""
        return edit.matches(consumer_group, self.subscribed_by)

    def subscribed(self) -> Sequence[str]:
        """Return the new topic."""
        return (self.name,)

    def on_cluster(self, life: ClusterLife, source: str) -> None:
        """Create the topic on brokers that do not have it."""
        for broker in sorted(life.brokers):
            if not edit.matches(broker, self.broker):
                continue
            if broker in life.configs.get(self.name, {}):
                life.log.warn(f"{source}: topic {self.name} already exists on broker {broker}")
            else:
                values = (self.queues, self.queues, DEFAULT_PERM)
                settings = dict(zip(TOPIC_COLUMNS, values, strict=True))
                life.configure(self.name, broker, settings, source)

    def on_group(self, life: GroupLife, source: str) -> None:
        """Plan the subscriptions."""
        life.after(self.subscribe_after, self._subscribe, life, source)

    def _subscribe(self, life: GroupLife, source: str) -> None:
        members = life.draws(f"{source}/order").shuffled(life.members())
        if not members:
            life.log.warn(
                f"{source}: {life.consumer_group} has no member at that time that could subscribe "
                "to the topic"
            )
        for i, member in enumerate(members):
            life.after(i * self.every, life.subscribe, member, self.name, source)

        def with_topic(settings: MemberData) -> MemberData:
            return life.resubscribed(settings, more=[self.name])

        life.join_rules.append(with_topic)


POP, PULL = "POP", "PULL"
LARGEST_SHARE_QUEUE_NUM = 10_000
_GLOB_SIGNS = frozenset("*?[")


@dataclass(frozen=True, kw_only=True)
class SwitchRequestMode(GroupEdit):
    """A change of the topics' request mode to ``mode``, as made by ``mqadmin setConsumeMode``.

    The mode only affects members that query a broker (``clientRebalance=false``); from then on,
    ``rebalance_mode`` makes all members query brokers, or divide queues themselves, under the same
    ids. A mode that the history sets later for one of these topics is dropped.
    """

    KIND = "switch_request_mode"

    topic: tuple[str, ...] = table_keys.key(table_keys.patterns, ("*",))
    mode: str = table_keys.needed(table_keys.one_of(POP, PULL))
    share_queue_num: int | None = table_keys.key(table_keys.whole(-1, LARGEST_SHARE_QUEUE_NUM))
    rebalance_mode: str | None = table_keys.key(
        table_keys.one_of(CLIENT_REBALANCE, BROKER_REBALANCE)
    )

    @classmethod
    def contradictions(cls, values: Mapping[str, object]) -> Iterator[tuple[str, str]]:
        """Yield a mistake if a mode other than POP has a share number."""
        if values.get("mode") == PULL and "share_queue_num" in values:
            yield "share_queue_num", f"is valid with mode = {POP!r} only"

    def globs(self) -> dict[str, tuple[str, Sequence[str]]]:
        """Return the groups and topics."""
        return super().globs() | {"topic": ("topics", self.topic)}

    @property
    def request_mode(self) -> RequestMode:
        """The mode and its share number."""
        if self.mode == PULL:
            return PULL_MODE
        number = self.share_queue_num
        return RequestMode(DEFAULT_SHARE_QUEUE_NUM if number is None else number)

    def on_group(self, life: GroupLife, source: str) -> None:
        """Set the mode now and keep it; switch current members and those that join later."""
        named = [glob for glob in self.topic if not _GLOB_SIGNS & set(glob)]
        topics = sorted({*life.topics, *named})
        topics = [
            topic for topic in topics if edit.matches(topic, self.topic) and can_be_popped(topic)
        ]
        if not topics:
            life.log.warn(f"{source}: {life.consumer_group} has no topic whose mode could be set")
            return
        if self.rebalance_mode is not None:
            life.join_rules.append(self._switched)
            for member in life.members():
                life.rejoin(member, self._switched, source)
        elif self.mode == POP and not life.asks_broker():
            life.log.warn(
                f"{source}: no member of {life.consumer_group} queries a broker, so the mode "
                "has no effect; set rebalance_mode = "
                f'"{BROKER_REBALANCE}" to make them query brokers'
            )
        for topic in topics:  # after the joins, so that it also becomes a cause of the epoch
            life.set_request_mode(topic, self.request_mode, source)

    def _switched(self, settings: MemberData) -> MemberData:
        return settings | {"rebalance_mode": self.rebalance_mode}

"""A group as a planner states it: its members, its topics, its queues and request modes."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from rebalance_core.model.errors import RebalanceError, UsageError, did_you_mean
from rebalance_core.model.group_settings import (
    BROADCASTING,
    CLIENT_REBALANCE,
    CLUSTERING,
    REBALANCE_MODES,
    GroupSettings,
)
from rebalance_core.model.languages import JAVA, parse_language
from rebalance_core.model.queue import MessageQueue, java_string_key
from rebalance_core.model.request_mode import RequestMode, can_be_popped, parse_request_mode
from rebalance_core.planning.known_strategies import as_planning_strategy
from rebalance_core.planning.movement import member_of
from rebalance_core.planning.strategies import PlanningStrategy, by_topic
from rebalance_core.planning.table_keys import MOST_QUEUES, one_of, whole
from rebalance_core.protocol.mixed_group import MixedGroup
from rebalance_core.protocol.shares import MemberStrategy
from rebalance_core.replay.group_view import GroupView
from rebalance_core.replay.member import Member, ProcessKey
from rebalance_core.replay.shared_topics import SharedTopic, shared_topics
from rebalance_core.strategies.texts import own_strategy

_number_of_queues = whole(0, MOST_QUEUES)


def check_queue_numbers(name: str, numbers: Any, mistakes: list[str]) -> dict[str, dict[str, int]]:
    """Return the valid part of the mapping; the rest becomes mistakes.

    Args:
        name: The mapping's name in messages.
        numbers: Topic -> broker name -> number of queues, 0 or more.
        mistakes: Receives one sentence per mistake.
    """
    example = 'e.g. {"orders": {"broker-a": 8}}'
    if not isinstance(numbers, Mapping) or not numbers:
        mistakes.append(
            f"{name} = {numbers!r}: expected topic -> broker -> number of queues, {example}"
        )
        return {}
    right: dict[str, dict[str, int]] = {}
    for topic, brokers in numbers.items():
        if not isinstance(topic, str) or not topic:
            mistakes.append(f"{name}: {topic!r} is not a topic")
            continue
        right[topic] = {}
        if not isinstance(brokers, Mapping) or not brokers:
            mistakes.append(
                f"{name}.{topic} = {brokers!r}: expected broker -> number of queues, {example}"
            )
            continue
        for broker, number in brokers.items():
            if not isinstance(broker, str) or not broker:
                mistakes.append(f"{name}.{topic}: {broker!r} is not a broker name")
                continue
            try:
                right[topic][broker] = _number_of_queues(number)
            except ValueError as error:
                mistakes.append(f"{name}.{topic}.{broker} = {number!r}: {error}")
    return right


def queues_of_numbers(
    name: str, numbers: Any, mistakes: list[str]
) -> dict[str, tuple[MessageQueue, ...]]:
    """Return each topic's queues 0 to n - 1 on each broker, in RocketMQ's order.

    >>> [str(q.queue_id) + q.broker_name
    ...  for q in queues_of_numbers("queues", {"T": {"b": 1, "a": 2}}, [])["T"]]
    ['0a', '1a', '0b']
    """
    right = check_queue_numbers(name, numbers, mistakes)
    queues = [
        MessageQueue(topic, broker, queue_id)
        for topic, brokers in right.items()
        for broker, number in brokers.items()
        for queue_id in range(number)
    ]
    sorted_queues = by_topic(queues)
    return {topic: tuple(sorted_queues.get(topic, ())) for topic in right}


RequestModes = Mapping[str, "str | RequestMode"]
"""Topic -> ``PULL`` or ``POP(share_queue_num=N)``."""


def read_request_modes(name: str, modes: Any, mistakes: list[str]) -> dict[str, RequestMode]:
    """Return the modes by topic; invalid modes are left out and reported.

    Args:
        name: The mapping's name in messages.
        modes: Topic -> its mode.
        mistakes: Receives one sentence per mistake.
    """
    if not isinstance(modes, Mapping):
        mistakes.append(
            f"{name} = {modes!r}: expected topic -> request mode, e.g. "
            '{"orders": "POP(share_queue_num=1)"}'
        )
        return {}
    right: dict[str, RequestMode] = {}
    for topic, stated in modes.items():
        try:
            mode = stated if isinstance(stated, RequestMode) else parse_request_mode(str(stated))
        except UsageError as error:
            mistakes.append(f"{name}.{topic}: {error}")
            continue
        if mode.is_pop and not can_be_popped(str(topic)):
            mistakes.append(f"{name}.{topic}: retry topics are always pulled")
            continue
        right[str(topic)] = mode
    return right


read_rebalance_mode = one_of(*REBALANCE_MODES)
"""Reads CLIENT, BROKER or PROXY."""


def check_topics(
    modes: Mapping[str, RequestMode], topics: Iterable[str], mistakes: list[str]
) -> None:
    """Add a mistake for every topic that has a mode but is not in the group."""
    topics = list(topics)
    for topic in modes:
        if topic not in topics:
            mistakes.append(
                f"request_modes: {topic!r} is not a topic of the group; topics: "
                f"{', '.join(topics) or 'none'}{did_you_mean(topic, topics)}"
            )


Members: TypeAlias = "Iterable[str] | Mapping[str, Iterable[str]]"
Queues: TypeAlias = "Iterable[MessageQueue] | Mapping[str, Mapping[str, int]]"
Strategy: TypeAlias = Any
"""A string, a RocketMQ or planning strategy, or an object from
`rebalance_core.register_strategy`.
"""

Process: TypeAlias = tuple[str, frozenset[str]]
"""A client id and the topics that it subscribes to."""


@dataclass(frozen=True)
class PlannedGroup:
    """A state of a group.

    Attributes:
        processes: One entry per process, in Java's order of the ids; a repeated id is a second
            process with that id.
        queues: Topic -> its readable queues in RocketMQ's order; a topic may have none.
        strategy: The strategy that all members use.
        message_model: CLUSTERING or BROADCASTING.
        topics: The topics that the group reads or, without members, those that its last members
            read.
        request_modes: The modes of its topics; PULL where none is stated.
        rebalance_mode: The mode of all members: CLIENT, BROKER or PROXY.
        ordered: Whether the listener is orderly.
        languages: The clients' languages by id; missing ids count as Java.
    """

    processes: tuple[Process, ...]
    queues: Mapping[str, tuple[MessageQueue, ...]]
    strategy: PlanningStrategy
    message_model: str
    topics: frozenset[str]
    request_modes: Mapping[str, RequestMode] = field(default_factory=dict)
    rebalance_mode: str = CLIENT_REBALANCE
    ordered: bool = False
    languages: Mapping[str, str] = field(default_factory=dict)

    @property
    def client_ids(self) -> tuple[str, ...]:
        """cidAll: one entry per process."""
        return tuple(client_id for client_id, _ in self.processes)

    def view(self) -> GroupView:
        """Return what its members see when they rebalance, without retry topics."""
        settings = GroupSettings(
            message_model=self.message_model,
            rebalance_mode=self.rebalance_mode,
            ordered=self.ordered,
        )
        members = self._members()
        modes = self.request_modes.items()
        pop_shares = {t: m.share_queue_num for t, m in modes if m.share_queue_num is not None}
        shared = {
            topic: SharedTopic(self.queues.get(topic, ()), share_queue_num)
            for topic, share_queue_num in shared_topics(
                members.values(), pop_shares, settings
            ).items()
        }
        alone = sorted(self.topics - shared.keys(), key=java_string_key)
        readable = {topic: self.queues.get(topic, ()) for topic in alone}
        return GroupView(settings, members, readable, shared)

    def _members(self) -> dict[ProcessKey, Member]:
        members: dict[ProcessKey, Member] = {}
        text = str(self.strategy) if self.strategy.of_rocketmq else ""
        for client_id, topics in self.processes:
            channel, number = None, 1
            while (client_id, channel) in members:
                number += 1
                channel = str(number)
            member = member_of(
                client_id,
                channel,
                topics,
                self.message_model,
                self.rebalance_mode,
                self.languages.get(client_id),
            )
            divides_by = own_strategy(member.profile, text) if text else text
            members[client_id, channel] = replace(member, strategy=divides_by)
        return members

    def mixed(self) -> MixedGroup | None:
        """Return the members that allocate by themselves, if their clients differ in language."""
        languages = {self.languages.get(client_id, JAVA) for client_id in self.client_ids}
        divides = self.message_model == CLUSTERING and self.rebalance_mode == CLIENT_REBALANCE
        if len(languages) < 2 or not divides or not self.strategy.of_rocketmq:
            return None
        members = {
            MemberStrategy(
                client_id, str(self.strategy), self.languages.get(client_id, JAVA)
            ): topics
            for client_id, topics in self.processes
        }
        queues = [queue for of_topic in self.queues.values() for queue in of_topic]
        return MixedGroup(members, self.client_ids, queues)


def read_group(
    members: Members,
    queues: Queues,
    strategy: Strategy,
    message_model: str,
    mistakes: list[str],
    request_modes: RequestModes | None = None,
    rebalance_mode: str = CLIENT_REBALANCE,
    ordered: bool = False,
    languages: Mapping[str, str] | None = None,
) -> PlannedGroup | None:
    """Return the group that the arguments describe, or None with the reasons in ``mistakes``.

    Args:
        members: Client ids (which subscribe to every topic), or client id -> its topics.
        queues: Queues, or topic -> broker name -> number of queues.
        strategy: A text or an object.
        message_model: CLUSTERING or BROADCASTING.
        mistakes: Receives one sentence per mistake.
        request_modes: Topic -> PULL or POP(share_queue_num=N).
        rebalance_mode: CLIENT, BROKER or PROXY.
        ordered: Whether the listener is orderly.
        languages: The clients' languages by id.
    """
    earlier = len(mistakes)
    of_topic = _read_queues(queues, mistakes)
    processes = _read_members(members, of_topic, mistakes)
    if message_model not in (CLUSTERING, BROADCASTING):
        mistakes.append(
            f"message_model = {message_model!r}: expected {CLUSTERING} or {BROADCASTING}"
            f"{did_you_mean(str(message_model), (CLUSTERING, BROADCASTING))}"
        )
    modes = read_request_modes("request_modes", request_modes or {}, mistakes)
    check_topics(modes, of_topic, mistakes)
    try:
        read_rebalance_mode(rebalance_mode)
    except ValueError as error:
        mistakes.append(f"rebalance_mode = {rebalance_mode!r}: {error}")
    of_client = _read_languages(
        languages or {}, [client_id for client_id, _ in processes], mistakes
    )
    strategy_read = read_strategy(strategy, mistakes)
    if strategy_read is None or len(mistakes) > earlier:
        return None
    topics = frozenset[str]().union(*(topics for _, topics in processes)) or frozenset(of_topic)
    return PlannedGroup(
        processes=processes,
        queues=of_topic,
        strategy=strategy_read,
        message_model=message_model,
        topics=topics,
        request_modes=modes,
        rebalance_mode=rebalance_mode,
        ordered=ordered,
        languages=of_client,
    )


def read_strategy(strategy: Any, mistakes: list[str]) -> PlanningStrategy | None:
    """Return the strategy, or None and add a mistake."""
    if not isinstance(strategy, str | PlanningStrategy) and not hasattr(strategy, "allocate"):
        mistakes.append(f"strategy = {strategy!r}: expected a strategy text, e.g. AVG, or object")
        return None
    try:
        return as_planning_strategy(strategy)
    except RebalanceError as error:
        mistakes.append(f"strategy = {strategy!r}: {error}")
        return None


def sort_processes(processes: Iterable[Process]) -> tuple[Process, ...]:
    """Return processes by client id in Java's order, keeping the order of equal ids."""
    return tuple(sorted(processes, key=lambda process: java_string_key(process[0])))


def _read_queues(queues: Any, mistakes: list[str]) -> dict[str, tuple[MessageQueue, ...]]:
    if isinstance(queues, Mapping):
        return queues_of_numbers("queues", queues, mistakes)
    listed = [] if isinstance(queues, str) or not isinstance(queues, Iterable) else list(queues)
    wrong = [queue for queue in listed if not isinstance(queue, MessageQueue)]
    mistakes += [f"queues: {queue!r} is not a MessageQueue" for queue in wrong]
    if not listed:
        mistakes.append(
            f"queues = {queues!r}: expected at least one MessageQueue, or topic -> broker -> number"
            ' of queues, e.g. {"orders": {"broker-a": 8}}'
        )
    right = [queue for queue in listed if isinstance(queue, MessageQueue)]
    times = Counter(right)
    mistakes += [
        f"queues: {queue} is listed {times[queue]} times" for queue in times if times[queue] > 1
    ]
    return {topic: tuple(of_topic) for topic, of_topic in by_topic(right).items()}


def _read_members(
    members: Any, queues: Mapping[str, Any], mistakes: list[str]
) -> tuple[Process, ...]:
    if isinstance(members, str) or not isinstance(members, Iterable):
        mistakes.append(
            f"members = {members!r}: expected client ids, or client id -> the topics that it "
            "subscribes to"
        )
        return ()
    processes: list[Process] = []
    for client_id in members:
        if not isinstance(client_id, str) or not client_id:
            mistakes.append(f"members: {client_id!r} is not a client id")
            continue
        topics = members[client_id] if isinstance(members, Mapping) else queues
        processes.append((client_id, read_topics(client_id, topics, queues, mistakes)))
    return sort_processes(processes)


def _read_languages(
    languages: Mapping[str, str], members: Sequence[str], mistakes: list[str]
) -> dict[str, str]:
    """Return each member's language; invalid entries are left out and reported."""
    right: dict[str, str] = {}
    for client_id, language in languages.items():
        try:
            right[client_id] = parse_language(str(language))
        except UsageError as error:
            mistakes.append(f"languages.{client_id}: {error}")
        if client_id not in members:
            mistakes.append(
                f"languages: {client_id!r} is not a member{did_you_mean(client_id, members)}"
            )
    return right


def read_topics(
    client_id: str, subscribed: Any, routed: Iterable[str], mistakes: list[str]
) -> frozenset[str]:
    """Return the topics to which a member subscribes; each must be known."""
    if isinstance(subscribed, str) or not isinstance(subscribed, Iterable):
        mistakes.append(
            f"members: {client_id!r} subscribes to {subscribed!r}: expected a list of topics"
        )
        return frozenset()
    topics = list(subscribed)
    for topic in topics:
        if topic not in routed:
            mistakes.append(
                f"members: {client_id!r} subscribes to {topic!r}, which has no queues; topics "
                f"with queues: {', '.join(routed) or 'none'}{did_you_mean(str(topic), routed)}"
            )
    return frozenset(topic for topic in topics if topic in routed)


def refuse(mistakes: list[str]) -> None:
    """Raise `UsageError` with every mistake, if there are any."""
    if mistakes:
        raise UsageError("\n".join(mistakes))

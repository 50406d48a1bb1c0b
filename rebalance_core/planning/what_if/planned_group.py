"""A group as a planner states it: who is there, what it reads, which queues there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from rebalance_core.model.errors import RebalanceError, UsageError, did_you_mean
from rebalance_core.model.group_settings import (
    BROADCASTING,
    CLIENT_REBALANCE,
    CLUSTERING,
    GroupSettings,
    RequestMode,
)
from rebalance_core.model.ordering import java_string_key
from rebalance_core.model.queue import MessageQueue
from rebalance_core.planning.movement import member_of
from rebalance_core.planning.strategies.known_strategies import as_planning_strategy
from rebalance_core.planning.strategies.planning_strategy import PlanningStrategy, by_topic
from rebalance_core.planning.what_if.queue_numbers import queues_of_numbers
from rebalance_core.planning.what_if.request_modes import (
    RequestModes,
    check_topics,
    read_rebalance_mode,
    read_request_modes,
)
from rebalance_core.replay.group_state import GroupView
from rebalance_core.replay.shared_topics import Member, ProcessKey, SharedTopic, shared_topics
from rebalance_core.strategies import AllocationStrategy

Members: TypeAlias = "Iterable[str] | Mapping[str, Iterable[str]]"
Queues: TypeAlias = "Iterable[MessageQueue] | Mapping[str, Mapping[str, int]]"
Strategy: TypeAlias = "str | AllocationStrategy | PlanningStrategy"

Process: TypeAlias = tuple[str, frozenset[str]]
"""Client id and the topics it subscribes."""


@dataclass(frozen=True)
class PlannedGroup:
    """One state of a group.

    Attributes:
        processes: One entry a process in Java's order of the ids; a repeated id is a second process
            under it.
        queues: Topic -> its readable queues in RocketMQ's order; a topic may have none.
        strategy: What all members use.
        message_model: CLUSTERING or BROADCASTING.
        topics: What the group reads; with no member left, what its last members read.
        request_modes: Of its topics; PULL where none is stated.
        rebalance_mode: Of all members: CLIENT, BROKER or PROXY.
        ordered: The listener is orderly.
    """

    processes: tuple[Process, ...]
    queues: Mapping[str, tuple[MessageQueue, ...]]
    strategy: PlanningStrategy
    message_model: str
    topics: frozenset[str]
    request_modes: Mapping[str, RequestMode] = field(default_factory=dict)
    rebalance_mode: str = CLIENT_REBALANCE
    ordered: bool = False

    @property
    def client_ids(self) -> tuple[str, ...]:
        """cidAll: one entry a process."""
        return tuple(client_id for client_id, _ in self.processes)

    def view(self) -> GroupView:
        """What its members see when they rebalance; there are no retry topics."""
        settings = GroupSettings(
            message_model=self.message_model,
            rebalance_mode=self.rebalance_mode,
            ordered=self.ordered,
        )
        members = self._members()
        shared = {
            topic: SharedTopic(self.queues.get(topic, ()), share_queue_num)
            for topic, share_queue_num in shared_topics(
                members.values(), self._pop_shares(), settings
            ).items()
        }
        alone = sorted(self.topics - shared.keys(), key=java_string_key)
        readable = {topic: self.queues.get(topic, ()) for topic in alone}
        return GroupView(settings, members, readable, shared)

    def _pop_shares(self) -> dict[str, int]:
        return {
            topic: mode.share_queue_num
            for topic, mode in self.request_modes.items()
            if mode.share_queue_num is not None
        }

    def _members(self) -> dict[ProcessKey, Member]:
        members: dict[ProcessKey, Member] = {}
        for client_id, topics in self.processes:
            channel, number = None, 1
            while (client_id, channel) in members:
                number += 1
                channel = str(number)
            members[client_id, channel] = member_of(
                client_id, channel, topics, self.message_model, self.rebalance_mode
            )
        return members


def read_group(
    members: Members,
    queues: Queues,
    strategy: Strategy,
    message_model: str,
    mistakes: list[str],
    request_modes: RequestModes | None = None,
    rebalance_mode: str = CLIENT_REBALANCE,
    ordered: bool = False,
) -> PlannedGroup | None:
    """The group that the arguments state; None if anything is wrong, which ``mistakes`` then says.

    Args:
        members: Client ids (they subscribe every topic), or client id -> its topics.
        queues: Queues, or topic -> broker name -> number of queues.
        strategy: A text or an object.
        message_model: CLUSTERING or BROADCASTING.
        mistakes: Gets one sentence per mistake.
        request_modes: Topic -> PULL or POP(share_queue_num=N).
        rebalance_mode: CLIENT, BROKER or PROXY.
        ordered: The listener is orderly.
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
    rebalance_mode = read_rebalance_mode("rebalance_mode", rebalance_mode, mistakes)
    strategy_read = read_strategy(strategy, mistakes)
    if strategy_read is None or len(mistakes) > earlier:
        return None
    topics = frozenset[str]().union(*(topics for _, topics in processes)) or frozenset(of_topic)
    return PlannedGroup(
        processes, of_topic, strategy_read, message_model, topics, modes, rebalance_mode,
        ordered,
    )  # fmt: skip


def read_strategy(strategy: Any, mistakes: list[str]) -> PlanningStrategy | None:
    """The strategy, or None and one more mistake."""
    if not isinstance(strategy, str | AllocationStrategy | PlanningStrategy):
        mistakes.append(f"strategy = {strategy!r}: expected a strategy text, e.g. AVG, or object")
        return None
    try:
        return as_planning_strategy(strategy)
    except RebalanceError as error:
        mistakes.append(f"strategy = {strategy!r}: {error}")
        return None


def sort_processes(processes: Iterable[Process]) -> tuple[Process, ...]:
    """By client id in Java's order; of one id as they come."""
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
        f"queues: {queue} is there {times[queue]} times" for queue in times if times[queue] > 1
    ]
    return {topic: tuple(of_topic) for topic, of_topic in by_topic(right).items()}


def _read_members(
    members: Any, queues: Mapping[str, Any], mistakes: list[str]
) -> tuple[Process, ...]:
    if isinstance(members, str) or not isinstance(members, Iterable):
        mistakes.append(
            f"members = {members!r}: expected client ids, or client id -> the topics it subscribes"
        )
        return ()
    processes: list[Process] = []
    for client_id in members:
        if not isinstance(client_id, str) or not client_id:
            mistakes.append(f"members: {client_id!r} is not a client id")
            continue
        given = members[client_id] if isinstance(members, Mapping) else queues
        processes.append((client_id, read_topics(client_id, given, queues, mistakes)))
    return sort_processes(processes)


def read_topics(
    client_id: str, given: Any, known: Iterable[str], mistakes: list[str]
) -> frozenset[str]:
    """Topics that a member subscribes; each must be known."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        mistakes.append(f"members: {client_id!r} subscribes {given!r}: expected a list of topics")
        return frozenset()
    topics = list(given)
    for topic in topics:
        if topic not in known:
            mistakes.append(
                f"members: {client_id!r} subscribes {topic!r}, which has no queues; topics with"
                f" queues: {', '.join(known) or 'none'}{did_you_mean(str(topic), known)}"
            )
    return frozenset(topic for topic in topics if topic in known)


def refuse(mistakes: list[str]) -> None:
    """Raises `UsageError` with every mistake, if there is any."""
    if mistakes:
        raise UsageError("\n".join(mistakes))

"""The view that members have of their group when they rebalance: the read-only input of `settle`.

A recorded history provides a view for every epoch, whereas a plan states one directly. (Kafka's
assignors receive a ``GroupSpec`` to the same end.)
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from rebalance_core.model import client_profile, queue
from rebalance_core.model.group_settings import (
    GroupSettings,
)
from rebalance_core.model.queue import MessageQueue
from rebalance_core.replay.group_state import GroupState
from rebalance_core.replay.member import Member, ProcessKey, Traits
from rebalance_core.replay.shared_topics import SharedTopic


@dataclass(frozen=True, slots=True)
class Kind:
    """The members of a view that have the same traits.

    Attributes:
        example: A member of the kind.
        keys: The members' keys, in the view's order.
    """

    example: Member
    keys: list[ProcessKey]


@dataclass(frozen=True)
class GroupView:
    """A state of a group.

    Attributes:
        settings: The group's settings.
        members: Its live processes.
        readable: mqAll of each of the group's topics, in Java's order of the topics, without the
            shared topics.
        shared: The topics that any member pops, whose queues no client owns exclusively.
        lockless: Brokers that grant no order locks, so their queues get no new owner.
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
        """Return the topics to which the member subscribes, including an existing retry topic, in
        Java order.
        """
        topics = set(member.subscriptions)
        if member.retry_topic is not None and member.retry_topic in self.readable:
            topics.add(member.retry_topic)
        return sorted(topics, key=queue.java_string_key)

    def sorted_client_ids(self, order: str = client_profile.UTF16) -> list[str]:
        """Return cidAll, with one entry per process, so an id with several processes is repeated.

        Entries are in Java's order, or in that of their UTF-8 bytes.
        """
        client_ids = [client_id for client_id, _ in self.members]
        if order == client_profile.BYTES:
            return sorted(client_ids)  # by code points, like UTF-8
        return queue.sort_client_ids(client_ids)


def group_view(state: GroupState) -> GroupView:
    """Return the current view of a replayed group; later events do not change it."""
    return GroupView(
        settings=state.settings,
        members=dict(state.members),
        readable=state.readable_by_topic(),
        shared=state.shared_topics(),
        lockless=state.lockless_brokers(),
    )

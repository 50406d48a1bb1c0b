"""What members see of their group when they rebalance: read-only, and all that `settle` asks for.

A recorded history gives it at every epoch, a plan states it outright. (Kafka's assignors are
handed a ``GroupSpec`` to the same end.)
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
        lockless: Brokers that give no order locks, so that their queues get no new owner.
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

    def sorted_client_ids(self, order: str = client_profile.UTF16) -> list[str]:
        """cidAll: one entry a process, so an id that several processes have is repeated.

        In the order of Java, or in that of the bytes of UTF-8.
        """
        client_ids = [client_id for client_id, _ in self.members]
        if order == client_profile.BYTES:
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

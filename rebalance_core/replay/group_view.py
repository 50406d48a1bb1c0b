"""What members see of their group when they rebalance: read-only, and all that `settle` asks for.

A recorded history gives it at every epoch, a plan states it outright. (Kafka's assignors are handed
a ``GroupSpec`` to the same end.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rebalance_core.model.group_settings import GroupSettings
from rebalance_core.model.ordering import java_string_key, sort_client_ids
from rebalance_core.model.queue import MessageQueue
from rebalance_core.replay.group_state import GroupState
from rebalance_core.replay.member import Member, ProcessKey
from rebalance_core.replay.shared_topics import SharedTopic


@dataclass(frozen=True, slots=True)
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

    def topics_of(self, member: Member) -> list[str]:
        """What the member subscribes, its retry topic included once that exists; in Java order."""
        topics = set(member.subscriptions)
        if member.retry_topic is not None and member.retry_topic in self.readable:
            topics.add(member.retry_topic)
        return sorted(topics, key=java_string_key)

    def sorted_client_ids(self) -> list[str]:
        """cidAll: one entry a process, so an id that several processes have is repeated."""
        return sort_client_ids(client_id for client_id, _ in self.members)


def group_view(state: GroupState) -> GroupView:
    """The view of a replayed group as it is now; later events leave it as it is."""
    return GroupView(
        settings=state.settings,
        members=dict(state.members),
        readable=state.readable_by_topic(),
        shared=state.shared_topics(),
        lockless=state.lockless_brokers(),
    )

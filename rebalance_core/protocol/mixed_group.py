"""The queues that each member takes, and those it would take if all clients had the same
language.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from rebalance_core.model.queue import MessageQueue, sort_client_ids, sort_queues
from rebalance_core.protocol.shares import MORE_QUEUES, MemberStrategy, Owners, shares_of
from rebalance_core.strategies.registry import CANDIDATES


@dataclass(frozen=True)
class MixedGroup:
    """Members that divide the queues of a group.

    Attributes:
        members: each with the topics that it subscribes to; None if unknown.
        client_ids: the client ids of all members, one for each process.
        queues: the queues of all topics.
    """

    members: Mapping[MemberStrategy, frozenset[str] | None]
    client_ids: Sequence[str]
    queues: Sequence[MessageQueue]

    @cached_property
    def unsure(self) -> list[MemberStrategy]:
        """Return the members whose queues are unknown."""
        ordered = sorted(self.queues), sorted(self.client_ids)
        alike = ordered == (sort_queues(self.queues), sort_client_ids(self.client_ids))
        return [
            member
            for member in self.members
            if not (member.is_known and (alike or "order" not in member.profile.read))
        ]

    @cached_property
    def _shares(self) -> dict[str, dict[MemberStrategy, list[MessageQueue] | None]]:
        """By topic, the shares of the members that subscribe to it and whose rules are known."""
        topics: dict[str, list[MessageQueue]] = {}
        for queue in self.queues:
            topics.setdefault(queue.topic, []).append(queue)
        return {
            topic: shares_of(
                [member for member in self._readers(topic) if member not in self.unsure],
                queues,
                self.client_ids,
            )
            for topic, queues in topics.items()
        }

    def _readers(self, topic: str) -> list[MemberStrategy]:
        return [
            member for member, topics in self.members.items() if topics is None or topic in topics
        ]

    @property
    def keeping(self) -> bool:
        """Whether a member's client throws, so that it keeps all its queues."""
        return any(share is None for shares in self._shares.values() for share in shares.values())

    @cached_property
    def owners(self) -> Owners:
        """Return the members that take each queue, among those whose queues are known."""
        owners: dict[MessageQueue, list[str]] = {queue: [] for queue in self.queues}
        for shares in self._shares.values():
            for member, share in shares.items():
                for queue in owners.keys() & set(share or ()):
                    owners[queue].append(member.client_id)
        return {queue: tuple(clients) for queue, clients in owners.items()}

    @cached_property
    def _uniform(self) -> list[Owners]:
        """Return the members that would take each queue if all were clients of one of their
        languages.
        """
        versions = {member.language: member.version for member in self.members if member.is_known}
        return [
            self._as_of(
                {
                    member._replace(language=language, version=version): topics
                    for member, topics in self.members.items()
                }
            )
            for language, version in sorted(versions.items(), key=str)
        ]

    def _as_of(self, members: Mapping[MemberStrategy, frozenset[str] | None]) -> Owners:
        return MixedGroup(members, self.client_ids, self.queues).owners

    @property
    def is_alike(self) -> bool:
        """True if members take the same queues as they would if all had the same language."""
        return not self.unsure and all(owners == self.owners for owners in self._uniform)

    @cached_property
    def unowned(self) -> list[MessageQueue]:
        """Queues without a reader that would have one if all members had the same language."""
        return [
            queue
            for queue, clients in self.owners.items()
            if not clients
            and queue.topic not in self._open_topics
            and any(owners[queue] for owners in self._uniform)
        ]

    @cached_property
    def _open_topics(self) -> set[str]:
        """Topics with a member that may or may not read them, or whose queues are unknown."""
        return {
            topic
            for topic, shares in self._shares.items()
            if any(
                shares.get(member) is None or self.members[member] is None
                for member in self._readers(topic)
            )
        }

    @cached_property
    def several(self) -> Owners:
        """Queues with several readers that would have at most one if all members had the same
        language.
        """
        return {
            queue: clients
            for queue, clients in self.owners.items()
            if len(clients) > 1 and any(len(owners[queue]) < 2 for owners in self._uniform)
        }

    def alike_by(self) -> list[str]:
        """Return the texts of `CANDIDATES` under which all clients divide these queues, and more,
        identically.
        """
        more = {queue._replace(queue_id=number) for queue in self.queues for number in MORE_QUEUES}
        queues = sort_queues(more | {*self.queues})
        return [
            text
            for text in CANDIDATES
            if MixedGroup(
                {member._replace(text=text): topics for member, topics in self.members.items()},
                self.client_ids,
                queues,
            ).is_alike
        ]

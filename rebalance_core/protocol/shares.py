"""Which queues members take, each by the rules of its own client, and how that fits together.

Upstream: ``RebalanceImpl.rebalanceByTopic`` of every language.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from rebalance_core.model.clients import (
    BYTES,
    ClientProfile,
    is_modelled,
    profile_of,
    rules_version,
)
from rebalance_core.model.errors import AllocationError
from rebalance_core.model.queue import MessageQueue, sort_client_ids, sort_queues
from rebalance_core.strategies import parse_strategy
from rebalance_core.strategies.registry import CANDIDATES, DEFAULT_VERSION
from rebalance_core.strategies.texts import own_strategy

MORE_QUEUES = range(64)
"""Ids of each broker's queues of a topic that such a one has to divide alike, too."""

Owners = dict[MessageQueue, tuple[str, ...]]


class Divider(NamedTuple):
    """A member that divides by itself.

    Attributes:
        client_id: Its id.
        text: The strategy that its group is said to divide by.
        language: Of its client; None: not known, taken as Java.
        version: The release of its client.
    """

    client_id: str
    text: str
    language: str | None = None
    version: str = DEFAULT_VERSION

    @property
    def is_known(self) -> bool:
        """`share_known`, and not because it is taken as Java for want of anything better."""
        return is_modelled(self.language) and self.share_known

    @property
    def share_known(self) -> bool:
        """False if nobody ran its client with the strategy, or its share hangs on its host."""
        return self.profile.share_known(self.text)

    @property
    def profile(self) -> ClientProfile:
        """Return how its client behaves."""
        return profile_of(self.language, self.version)


def shares_of(
    members: Iterable[Divider], queues: Iterable[MessageQueue], client_ids: Iterable[str]
) -> dict[Divider, list[MessageQueue] | None]:
    """The share of each member of the queues of one topic, in the order of its client.

    Args:
        members: Who asks.
        queues: The readable queues of the topic, in any order.
        client_ids: All members of the group, duplicates kept, in any order.

    Returns:
        None for a member whose client throws: it keeps what it holds.

    >>> queues = [MessageQueue("T", "a", n) for n in range(4)]
    >>> ring = "CONSISTENT_HASH(virtual_nodes=10)"
    >>> shares = shares_of([Divider("x", ring, "JAVA"), Divider("y", ring, "GO")], queues, "xy")
    >>> [[queue.queue_id for queue in share] for share in shares.values()]
    [[0, 1, 3], [0, 1, 2]]
    """
    queues, client_ids = list(queues), list(client_ids)
    # code points are in the order of their UTF-8
    by_bytes = sorted(queues), sorted(client_ids)
    as_java = sort_queues(queues), sort_client_ids(client_ids)
    shares: dict[Divider, list[MessageQueue] | None] = {}
    for member in members:
        profile = member.profile
        strategy = parse_strategy(
            own_strategy(profile, member.text),
            version=rules_version(member.language, member.version),
        )
        given = by_bytes if profile.order == BYTES else as_java
        try:
            shares[member] = strategy.allocate(member.client_id, *given)
        except AllocationError:
            shares[member] = None
    return shares


# What each member takes, and what it would take if all were clients of one language.


@dataclass(frozen=True)
class MixedGroup:
    """Members that divide the queues of a group.

    Attributes:
        members: each with the topics that it subscribes; None: not known.
        client_ids: of all members, one for each process.
        queues: of all topics.
    """

    members: Mapping[Divider, frozenset[str] | None]
    client_ids: Sequence[str]
    queues: Sequence[MessageQueue]

    @cached_property
    def unsure(self) -> list[Divider]:
        """Return the members of which it is not known which queues they take."""
        ordered = sorted(self.queues), sorted(self.client_ids)
        alike = ordered == (sort_queues(self.queues), sort_client_ids(self.client_ids))
        return [
            member
            for member in self.members
            if not (member.is_known and (alike or "order" not in member.profile.read))
        ]

    @cached_property
    def _shares(self) -> dict[str, dict[Divider, list[MessageQueue] | None]]:
        """By topic the share of each member that subscribes it and whose rules are known."""
        topics: dict[str, list[MessageQueue]] = {}
        for queue in self.queues:
            topics.setdefault(queue.topic, []).append(queue)
        return {
            topic: shares_of(
                [one for one in self._readers(topic) if one not in self.unsure],
                queues,
                self.client_ids,
            )
            for topic, queues in topics.items()
        }

    def _readers(self, topic: str) -> list[Divider]:
        return [one for one, topics in self.members.items() if topics is None or topic in topics]

    @property
    def keeping(self) -> bool:
        """Somebody's client throws: it keeps what it holds, whatever that is."""
        return any(share is None for shares in self._shares.values() for share in shares.values())

    @cached_property
    def owners(self) -> Owners:
        """Return who takes each queue, of those of whom it is known."""
        found: dict[MessageQueue, list[str]] = {queue: [] for queue in self.queues}
        for shares in self._shares.values():
            for member, share in shares.items():
                for queue in found.keys() & set(share or ()):
                    found[queue].append(member.client_id)
        return {queue: tuple(clients) for queue, clients in found.items()}

    @cached_property
    def _uniform(self) -> list[Owners]:
        """Who would take each queue if all members were clients of one of their languages."""
        versions = {one.language: one.version for one in self.members if one.is_known}
        return [
            self._as_of(
                {
                    member._replace(language=language, version=version): topics
                    for member, topics in self.members.items()
                }
            )
            for language, version in sorted(versions.items(), key=str)
        ]

    def _as_of(self, members: Mapping[Divider, frozenset[str] | None]) -> Owners:
        return MixedGroup(members, self.client_ids, self.queues).owners

    @property
    def is_alike(self) -> bool:
        """True if members take what they would take, too, if all were of one language."""
        return not self.unsure and all(one == self.owners for one in self._uniform)

    @cached_property
    def nobody(self) -> list[MessageQueue]:
        """Queues without a reader that have one if all are of some one language."""
        return [
            queue
            for queue, clients in self.owners.items()
            if not clients
            and queue.topic not in self._open_topics
            and any(one[queue] for one in self._uniform)
        ]

    @cached_property
    def _open_topics(self) -> set[str]:
        """Topics with a member of which it is not known whether it reads them, or which queues."""
        return {
            topic
            for topic, shares in self._shares.items()
            if any(shares.get(one) is None or self.members[one] is None
                   for one in self._readers(topic))
        }  # fmt: skip

    @cached_property
    def several(self) -> Owners:
        """Queues with several readers that have no more than one if all are of one language."""
        return {
            queue: clients
            for queue, clients in self.owners.items()
            if len(clients) > 1 and any(len(one[queue]) < 2 for one in self._uniform)
        }

    def alike_by(self) -> list[str]:
        """The texts of `CANDIDATES` by which all divide these queues alike, and more than these."""
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

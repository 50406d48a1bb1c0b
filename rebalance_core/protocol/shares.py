"""The queues that members take, each by its own client's rules, and how these shares fit together.

Upstream: ``RebalanceImpl.rebalanceByTopic`` in every language.
"""

from collections.abc import Iterable, Mapping
from math import ceil
from typing import NamedTuple

from rebalance_core.model.client_profile import BYTES, ClientProfile
from rebalance_core.model.clients import is_modelled, profile_of, rules_version
from rebalance_core.model.errors import AllocationError
from rebalance_core.model.queue import MessageQueue, sort_client_ids, sort_queues
from rebalance_core.strategies import parse_strategy
from rebalance_core.strategies.registry import DEFAULT_VERSION
from rebalance_core.strategies.texts import own_strategy

MORE_QUEUES = range(64)
"""Queue ids, on each broker of a topic, that such a strategy must also divide identically."""

Owners = dict[MessageQueue, tuple[str, ...]]


class MemberStrategy(NamedTuple):
    """A member that allocates queues itself, with its strategy.

    Attributes:
        client_id: Its id.
        text: The strategy that its group is assumed to use.
        language: The language of its client; None if unknown, which is treated as Java.
        version: The release of its client.
    """

    client_id: str
    text: str
    language: str | None = None
    version: str = DEFAULT_VERSION

    @property
    def is_known(self) -> bool:
        """Like `share_known`, but False for a client that is only treated as Java for want of
        evidence.
        """
        return is_modelled(self.language) and self.share_known

    @property
    def share_known(self) -> bool:
        """Return False if its client was never run with the strategy, or if the result depends on
        its host.
        """
        return self.profile.share_known(self.text)

    @property
    def profile(self) -> ClientProfile:
        """Return how its client behaves."""
        return profile_of(self.language, self.version)


def busiest_rate(queues: Mapping[str, int], rates: Mapping[str, float], members: int) -> float:
    """Return the messages per second of the member to which AVG gives the most queues of each
    topic.

    Args:
        queues: Topic -> number of its queues, which receive messages at equal rates.
        rates: Topic -> messages per second.
        members: How many members share the queues; 1 or more.

    >>> busiest_rate({"T": 8}, {"T": 80.0}, 3)
    30.0
    """
    return sum(ceil(number / members) * rates[topic] / number for topic, number in queues.items())


def shares_of(
    members: Iterable[MemberStrategy], queues: Iterable[MessageQueue], client_ids: Iterable[str]
) -> dict[MemberStrategy, list[MessageQueue] | None]:
    """Return each member's share of the queues of one topic, in the order in which its client has
    them.

    Args:
        members: The members whose shares are requested.
        queues: The readable queues of the topic, in any order.
        client_ids: All members of the group, duplicates kept, in any order.

    Returns:
        None for a member whose client throws, so that it keeps its queues.

    >>> queues = [MessageQueue("T", "a", n) for n in range(4)]
    >>> ring = "CONSISTENT_HASH(virtual_nodes=10)"
    >>> members = [MemberStrategy("x", ring, "JAVA"), MemberStrategy("y", ring, "GO")]
    >>> shares = shares_of(members, queues, "xy")
    >>> [[queue.queue_id for queue in share] for share in shares.values()]
    [[0, 1, 3], [0, 1, 2]]
    """
    queues, client_ids = list(queues), list(client_ids)
    # code points sort in the same order as their UTF-8 bytes
    by_bytes = sorted(queues), sorted(client_ids)
    as_java = sort_queues(queues), sort_client_ids(client_ids)
    shares: dict[MemberStrategy, list[MessageQueue] | None] = {}
    for member in members:
        profile = member.profile
        strategy = parse_strategy(
            own_strategy(profile, member.text),
            version=rules_version(member.language, member.version),
        )
        sorted_lists = by_bytes if profile.order == BYTES else as_java
        try:
            shares[member] = strategy.allocate(member.client_id, *sorted_lists)
        except AllocationError:
            shares[member] = None
    return shares

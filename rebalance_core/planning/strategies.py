"""The strategy interface of plans: a group's whole allocation, given the previous one.

RocketMQ's strategies ignore the previous allocation; hypothetical strategies, which RocketMQ lacks,
may use it. Both implement `PlanningStrategy`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

from rebalance_core.model.errors import UsageError
from rebalance_core.model.queue import MessageQueue, sort_client_ids, sort_queues
from rebalance_core.strategies import AllocationStrategy
from rebalance_core.strategies.parameters import Parameter

Previous: TypeAlias = Mapping[MessageQueue, str | None]
"""The previous owner of each queue: a client id; None or a missing key means no owner. Other queues
are ignored.
"""

Owners: TypeAlias = Mapping[MessageQueue, tuple[str, ...]]
"""The holders of each queue: client ids in Java's order, each once; () means no owner."""


@dataclass(frozen=True)
class PlanningStrategy(ABC):
    """A strategy as plans use it: frozen, comparable, picklable."""

    of_rocketmq: ClassVar[bool] = False
    """False if RocketMQ has no such strategy, which every table and figure must show."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name in the text form."""

    @abstractmethod
    def assign(
        self, previous: Previous, queues: Iterable[MessageQueue], members: Iterable[str]
    ) -> dict[MessageQueue, tuple[str, ...]]:
        """Return the owners of every queue, topic by topic, as RocketMQ allocates.

        Args:
            previous: The previous allocation; RocketMQ's strategies ignore it.
            queues: Readable queues of any number of topics, in any order.
            members: Client ids in any order, with one entry per process, so a repeated id is a
                second process.

        Returns:
            Keys are the queues in RocketMQ's order. Without members, no queue has an owner.

        Raises:
            AllocationError: RocketMQ's strategy throws (a real client then keeps what it holds).
        """

    @abstractmethod
    def as_allocation(self, previous: Previous) -> AllocationStrategy:
        """Return the strategy as each client calls it, in **one** step from ``previous``."""

    def settings(self) -> list[tuple[str, str]]:
        """Return the (key, value) pairs of the strategy text."""
        return []

    def __str__(self) -> str:
        """Return the strategy text, which `planning_strategy` reads back."""
        settings = ", ".join(f"{key}={value}" for key, value in self.settings())
        return f"{self.name}({settings})" if settings else self.name


@dataclass(frozen=True)
class HypotheticalStrategy(PlanningStrategy):
    """A strategy that RocketMQ lacks: every queue has one owner, and a repeated id counts once."""

    NAME: ClassVar[str]
    """The name used in strategy texts."""
    PARAMETERS: ClassVar[Mapping[str, Parameter]] = {}
    """Parameters by name, as passed to the constructor."""
    LEAGUE: ClassVar[tuple[str, ...]] = ()
    """The strategy texts that `plan` with ``--strategy league`` uses for it."""

    @property
    def name(self) -> str:
        """The name in the text form."""
        return self.NAME

    @abstractmethod
    def assign_topic(
        self, previous: Previous, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> dict[MessageQueue, str]:
        """Return the owner of every queue of a topic, in the order of the queues.

        Args:
            previous: As in `assign`.
            queues: At least one queue, each once, in RocketMQ's order.
            client_ids: At least one id, each once, in Java's order.
        """

    def assign_one(
        self, previous: Previous, queues: Iterable[MessageQueue], members: Iterable[str]
    ) -> dict[MessageQueue, str]:
        """Return the owner of every queue, topic by topic, as `assign` does; repeats count once.

        Raises:
            UsageError: There are queues but no member.
        """
        client_ids = sort_client_ids(set(members))
        topics = by_topic(queues)
        if topics and not client_ids:
            raise UsageError(f"{self.name}: there are queues but no member to own them")
        owners: dict[MessageQueue, str] = {}
        for of_topic in topics.values():
            owners.update(self.assign_topic(previous, of_topic, client_ids))
        return owners

    def assign(
        self, previous: Previous, queues: Iterable[MessageQueue], members: Iterable[str]
    ) -> dict[MessageQueue, tuple[str, ...]]:
        """Return the owners given by `assign_one`, or none without a member; raise nothing."""
        present = tuple(dict.fromkeys(members))
        if not present:
            return dict.fromkeys(sort_queues(set(queues)), ())
        owners = self.assign_one(previous, queues, present)
        return {queue: (owner,) for queue, owner in owners.items()}

    def as_allocation(self, previous: Previous) -> AllocationStrategy:
        """Return a strategy that gives every member its part of the same result."""
        return _AskedByMembers(self, previous)


@dataclass(frozen=True)
class _AskedByMembers(AllocationStrategy):
    """A step of a hypothetical strategy; all members call it with the same queues and client
    ids.
    """

    strategy: HypotheticalStrategy
    previous: Previous
    shares_of_topic: dict[str, dict[str, list[MessageQueue]]] = field(
        default_factory=dict, compare=False, repr=False
    )

    @property
    def name(self) -> str:
        return self.strategy.name

    def allocate(
        self, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        return self._shares(queues, client_ids).get(client_id, [])

    def allocate_all(
        self, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> dict[str, list[MessageQueue]]:
        shares = self._shares(queues, client_ids)
        return {client_id: shares.get(client_id, []) for client_id in client_ids}

    def _shares(
        self, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> dict[str, list[MessageQueue]]:
        topic = queues[0].topic
        shares = self.shares_of_topic.get(topic)
        if shares is None:
            shares = {}
            # Clients sort before they call the strategy, so only ids of several processes are
            # repeated.
            distinct = tuple(dict.fromkeys(client_ids))
            owners = self.strategy.assign_topic(self.previous, queues, distinct)
            for queue, owner in owners.items():
                shares.setdefault(owner, []).append(queue)
            self.shares_of_topic[topic] = shares
        return shares


def by_topic(queues: Iterable[MessageQueue]) -> dict[str, list[MessageQueue]]:
    """Return the distinct queues of each topic, both in RocketMQ's order.

    >>> {t: [q.queue_id for q in qs] for t, qs in by_topic([MessageQueue("T", "a", 10),
    ...     MessageQueue("T", "a", 2), MessageQueue("S", "a", 0)]).items()}
    {'S': [0], 'T': [2, 10]}
    """
    topics: dict[str, list[MessageQueue]] = {}
    for queue in sort_queues(set(queues)):
        topics.setdefault(queue.topic, []).append(queue)
    return topics

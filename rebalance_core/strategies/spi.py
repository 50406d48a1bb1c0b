"""What a strategy is: a frozen value with a name, a text and one question to answer."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from rebalance_core.model.errors import AllocationError, UsageError
from rebalance_core.model.queue import MessageQueue


class StrategyRefusedError(AllocationError, UsageError):
    """Upstream's constructor throws: both an upstream exception and a mistake in the settings."""


@dataclass(frozen=True)
class AllocationStrategy(ABC):
    """One ``AllocateMessageQueueStrategy`` of the client, with its settings.

    Hashable, comparable and picklable, so that it is resolved once and shipped as an object.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """``getName()``, the name that logs print."""

    @abstractmethod
    def allocate(
        self, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """The queues of one client, in the order upstream returns them.

        Args:
            client_id: Who asks (currentCID).
            queues: All readable queues of one topic (mqAll), sorted by `sort_queues`.
            client_ids: All members, duplicates kept (cidAll), sorted by `sort_client_ids`.

        Raises:
            AllocationError: Upstream throws; the caller upstream then keeps what it holds.
        """

    def allocate_all(
        self, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> dict[str, list[MessageQueue]]:
        """`allocate` of every distinct member, in the order of ``client_ids``.

        Strategies override it where the whole group costs less than the sum of its members; the
        answer is always that of this loop.
        """
        return {cid: self.allocate(cid, queues, client_ids) for cid in dict.fromkeys(client_ids)}

    @property
    def returns_null(self) -> bool:
        """True if upstream returns Java's null where `allocate` returns an empty list."""
        return False

    def settings(self) -> list[tuple[str, str]]:
        """(key, escaped value) pairs of the strategy text."""
        return []

    def __str__(self) -> str:
        """The strategy text; `parse_strategy` of the same version gives an equal strategy."""
        settings = ", ".join(f"{key}={value}" for key, value in self.settings())
        return f"{self.name}({settings})" if settings else self.name

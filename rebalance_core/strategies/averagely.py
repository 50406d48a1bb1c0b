"""AVG: contiguous slices, the surplus to the first clients."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rebalance_core.model.queue import MessageQueue
from rebalance_core.strategies.spi import AllocationStrategy, check_every_member, is_member


def average_slice(index: int, queues: int, members: int) -> slice:
    """The slice of the sorted queues that the member at ``index`` gets; may be empty. O(1).

    >>> [average_slice(i, 8, 3) for i in range(3)]
    [slice(0, 3, None), slice(3, 6, None), slice(6, 8, None)]
    """
    mod = queues % members
    has_extra = mod > 0 and index < mod
    average = 1 if queues <= members else queues // members + has_extra
    start = index * average if has_extra else index * average + mod
    return slice(start, start + max(0, min(average, queues - start)))


def _served(queues: Sequence[MessageQueue], client_ids: Sequence[str]) -> Iterable[tuple[str, int]]:
    """The first place of each client id, of those that may get a queue: of more, none is left."""
    first: dict[str, int] = {}
    for index, client_id in enumerate(client_ids[: len(queues)]):
        first.setdefault(client_id, index)
    return first.items()


@dataclass(frozen=True)
class Averagely(AllocationStrategy):
    """``AllocateMessageQueueAveragely``, the default of every consumer. rocketmq.md §2.2.

    Sizes differ by at most one. A duplicated id takes the slice of its first position for all its
    processes, the slices of the other positions have no owner. Cost: O(members + result).
    """

    @property
    def name(self) -> str:
        """``getName()``."""
        return "AVG"

    @property
    def by_place(self) -> bool:
        """Ids only say who is first."""
        return True

    @property
    def throws_for_all(self) -> bool:
        """Nothing but an empty argument throws."""
        return True

    def allocate(
        self, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """The contiguous slice of the first position of ``client_id``."""
        if not is_member(client_id, queues, client_ids):
            return []
        index = client_ids.index(client_id)
        return list(queues[average_slice(index, len(queues), len(client_ids))])

    def allocate_all(
        self, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> dict[str, list[MessageQueue]]:
        """`allocate` of every distinct member in one sweep."""
        check_every_member(queues, client_ids)
        shares: dict[str, list[MessageQueue]] = {client_id: [] for client_id in client_ids}
        for client_id, index in _served(queues, client_ids):
            shares[client_id] += queues[average_slice(index, len(queues), len(client_ids))]
        return shares


# AVG_BY_CIRCLE: the queues are assigned in turn.


@dataclass(frozen=True)
class AveragelyByCircle(AllocationStrategy):
    """``AllocateMessageQueueAveragelyByCircle``. rocketmq.md §2.3.

    Same sizes as AVG, and the same sharing and orphans with duplicated ids.
    Cost: O(members + result).
    """

    @property
    def name(self) -> str:
        """``getName()``."""
        return "AVG_BY_CIRCLE"

    @property
    def by_place(self) -> bool:
        """Ids only say who is first."""
        return True

    @property
    def throws_for_all(self) -> bool:
        """Nothing but an empty argument throws."""
        return True

    def allocate(
        self, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """Every members-th queue from the first position of ``client_id`` on."""
        if not is_member(client_id, queues, client_ids):
            return []
        return list(queues[client_ids.index(client_id) :: len(client_ids)])

    def allocate_all(
        self, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> dict[str, list[MessageQueue]]:
        """`allocate` of every distinct member in one sweep."""
        check_every_member(queues, client_ids)
        shares: dict[str, list[MessageQueue]] = {client_id: [] for client_id in client_ids}
        for client_id, index in _served(queues, client_ids):
            shares[client_id] += queues[index :: len(client_ids)]
        return shares

"""AVG_BY_CIRCLE: the queues are assigned in turn."""

from collections.abc import Sequence
from dataclasses import dataclass

from rebalance_core.model.queue import MessageQueue
from rebalance_core.strategies.spi import AllocationStrategy, check_every_member, is_member


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
        shares: dict[str, list[MessageQueue]] = {}
        for index, client_id in enumerate(client_ids):
            if client_id not in shares:
                shares[client_id] = list(queues[index :: len(client_ids)])
        return shares

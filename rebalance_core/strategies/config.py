"""CONFIG: a fixed list, whatever is asked."""

from collections.abc import Sequence
from dataclasses import dataclass

from rebalance_core.model.queue import MessageQueue
from rebalance_core.strategies.spi import AllocationStrategy, escape


@dataclass(frozen=True)
class Config(AllocationStrategy):
    """``AllocateMessageQueueByConfig``: the list verbatim, to everybody, for every topic.
    rocketmq.md §2.4.

    No argument is checked and nothing is intersected with the queues that exist.

    Attributes:
        queues: The list; None is upstream's unset list, which it returns as null.
    """

    queues: tuple[MessageQueue, ...] | None = None

    @property
    def name(self) -> str:
        """``getName()``."""
        return "CONFIG"

    @property
    def keeps_to_topic(self) -> bool:
        """False: the list comes back whole."""
        return False

    @property
    def returns_null(self) -> bool:
        """True without a list."""
        return self.queues is None

    def allocate(
        self, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """The configured list, whatever the arguments; empty where upstream returns null."""
        return list(self.queues or ())

    def settings(self) -> list[tuple[str, str]]:
        """(key, escaped value) pairs of the strategy text."""
        if self.queues is None:
            return []
        texts = (
            f"{escape(q.topic, also='/')}/{escape(q.broker_name, also='/')}/{q.queue_id}"
            for q in self.queues
        )
        return [("queues", "|".join(texts))]

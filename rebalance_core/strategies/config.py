"""CONFIG, which returns a fixed list for any arguments."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.versions import Version
from rebalance_core.strategies.formula import Formula, Question
from rebalance_core.strategies.parameters import (
    Parameter,
    Params,
    escape,
    optional_queues,
    queues_in_text,
)
from rebalance_core.strategies.spi import AllocationStrategy
from rebalance_core.strategies.vectorised import Listed


@dataclass(frozen=True)
class Config(AllocationStrategy):
    """``AllocateMessageQueueByConfig``: the verbatim list, for all members. rocketmq.md §2.4.

    No argument is checked and the list is not intersected with the existing queues.

    Attributes:
        queues: The list; None means upstream's unset list, which it returns as null.
    """

    NAME = "CONFIG"
    PARAMETERS: ClassVar = {"config": Parameter(optional_queues, queues_in_text, key="queues")}
    JAVA_CLASS = "AllocateMessageQueueByConfig"

    queues: tuple[MessageQueue, ...] | None = None

    @classmethod
    def make(cls, params: Params, version: Version) -> "Config":
        """Return the strategy for a list."""
        return cls(params.get("config"))

    @property
    def keeps_to_topic(self) -> bool:
        """False, because the whole list is returned."""
        return False

    @property
    def returns_null(self) -> bool:
        """True without a list."""
        return self.queues is None

    def allocate(
        self, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """Return the configured list for any arguments; empty where upstream returns null."""
        return list(self.queues or ())

    def vectorised(self) -> Listed | None:
        """Return the list, or None if it contains a negative queue id."""
        listed = self.queues or ()
        return None if any(queue.queue_id < 0 for queue in listed) else Listed(listed)

    def formula(self, asked: Question) -> Formula:
        """Return the queue's position in the list."""
        listed = self.queues or ()
        if asked.queue not in listed:
            return Formula(str(self), (f"not among the {len(listed)} queues of the list",))
        place = listed.index(asked.queue)
        line = f"the list has it at {place + 1} of {len(listed)}, whoever else holds it"
        values = {"listIndex": place, "listed": len(listed)}
        return Formula(str(self), (line,), values, None, asked.client_id)

    def settings(self) -> list[tuple[str, str]]:
        """Return the (key, escaped value) pairs of the strategy text."""
        if self.queues is None:
            return []
        texts = (
            f"{escape(q.topic, also='/')}/{escape(q.broker_name, also='/')}/{q.queue_id}"
            for q in self.queues
        )
        return [("queues", "|".join(texts))]

"""A strategy's assignment of a queue to a client, with its numbers: the output of `explain`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rebalance_core.model.queue import MessageQueue


class Question(NamedTuple):
    """The question which client gets a queue.

    Attributes:
        queue: The queue.
        queues: mqAll, which includes the queue unless the strategy is CONFIG.
        client_ids: cidAll, not empty.
        client_id: The client whose share to write out; None for the client at the entry that gets
            the queue.
    """

    queue: MessageQueue
    queues: Sequence[MessageQueue]
    client_ids: Sequence[str]
    client_id: str | None = None

    def index_at(self, entry: int) -> int:
        """Return the index in cidAll whose share the formula writes out, for a queue that falls
        to ``entry``.
        """
        return entry if self.client_id is None else self.client_ids.index(self.client_id)

    def first_owner(self, entry: int) -> str | None:
        """Return the client of an entry, or None if its id occurs earlier: upstream uses
        indexOf(currentCID).
        """
        owner = self.client_ids[entry]
        return owner if self.client_ids.index(owner) == entry else None


@dataclass(frozen=True, slots=True)
class Formula:
    """A strategy's decision: ``entry`` is the index of cidAll that gets the queue, if any does.

    ``owner`` is None if that index repeats an id, whose share AVG gives to no client, or if the
    strategy leaves out the queue.
    """

    strategy: str
    lines: tuple[str, ...]
    values: Mapping[str, object] = field(default_factory=dict)
    entry: int | None = None
    owner: str | None = None

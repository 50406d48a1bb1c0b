"""AVG_BY_CIRCLE: the queues are assigned in turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rebalance_core.model.queue import MessageQueue
from rebalance_core.strategies.averagely import served
from rebalance_core.strategies.formula import Formula, Question
from rebalance_core.strategies.spi import AllocationStrategy, check_every_member, is_member
from rebalance_core.strategies.vectorised import ByPlace, PlaceRule

if TYPE_CHECKING:
    from rebalance_core.strategies.vectorised import Number


def circle_index(place: Number, queues: Number, members: Number) -> Number:
    """Return the index in cidAll whose turn it is at ``place``.

    >>> [circle_index(place, 5, 3) for place in range(5)]
    [0, 1, 2, 0, 1]
    """
    return place % members


IN_TURN = PlaceRule(circle_index)


@dataclass(frozen=True)
class AveragelyByCircle(AllocationStrategy):
    """``AllocateMessageQueueAveragelyByCircle``. rocketmq.md §2.3.

    Sizes, sharing and orphans with duplicated ids are those of AVG. Cost: O(members + result).
    """

    NAME = "AVG_BY_CIRCLE"
    JAVA_CLASS = "AllocateMessageQueueAveragelyByCircle"
    CANDIDATE = True
    LEAGUE = ("AVG_BY_CIRCLE",)

    @property
    def by_place(self) -> bool:
        """Whether a share depends only on the positions of ids."""
        return True

    @property
    def throws_for_all(self) -> bool:
        """Whether only an empty argument makes it throw."""
        return True

    def allocate(
        self, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """Return every n-th queue for n members, starting at the first position of
        ``client_id``.
        """
        if not is_member(client_id, queues, client_ids):
            return []
        return list(queues[client_ids.index(client_id) :: len(client_ids)])

    def allocate_all(
        self, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> dict[str, list[MessageQueue]]:
        """Return `allocate` of every distinct member in one sweep."""
        check_every_member(queues, client_ids)
        shares: dict[str, list[MessageQueue]] = {client_id: [] for client_id in client_ids}
        for client_id, index in served(queues, client_ids):
            shares[client_id] += queues[index :: len(client_ids)]
        return shares

    def vectorised(self) -> ByPlace:
        """Return the rule."""
        return ByPlace(IN_TURN)

    def formula(self, asked: Question) -> Formula:
        """Return whose turn it is."""
        place, members = asked.queues.index(asked.queue), len(asked.client_ids)
        entry = circle_index(place, len(asked.queues), members)
        index = asked.index_at(entry)
        lines = (
            f"every cidAll-th queue from the index on: i % cidAll = {place} % {members} = {entry}; "
            f"the index is {index}",
        )
        values = {"index": index, "cidAll": members, "queueIndex": place, "remainder": entry}
        return Formula(str(self), lines, values, entry, asked.first_owner(entry))

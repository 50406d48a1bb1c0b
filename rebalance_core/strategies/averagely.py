"""AVG: contiguous slices, with the surplus going to the first clients."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rebalance_core.model.queue import MessageQueue
from rebalance_core.strategies.formula import Formula, Question
from rebalance_core.strategies.spi import AllocationStrategy, check_every_member, is_member
from rebalance_core.strategies.vectorised import ByPlace, PlaceRule

if TYPE_CHECKING:
    from rebalance_core.strategies.vectorised import Number


def average_slice(index: int, queues: int, members: int) -> slice:
    """Return the slice of the sorted queues that the member at ``index`` gets; may be empty. O(1).

    >>> [average_slice(i, 8, 3) for i in range(3)]
    [slice(0, 3, None), slice(3, 6, None), slice(6, 8, None)]
    """
    mod = queues % members
    has_extra = mod > 0 and index < mod
    average = 1 if queues <= members else queues // members + has_extra
    start = index * average if has_extra else index * average + mod
    return slice(start, start + max(0, min(average, queues - start)))


def average_index(place: Number, queues: Number, members: Number) -> Number:
    """Return the index in cidAll whose `average_slice` holds the queue at ``place``.

    It is the greater of the results for slices of only the longer and only the shorter kind.

    >>> [average_index(place, 8, 3) for place in range(8)]
    [0, 0, 0, 1, 1, 1, 2, 2]
    """
    size = queues // members
    longer = queues - size * members
    among_longer = place // (size + 1)
    beyond = (place - longer) // (size + (size == 0)) - among_longer
    index: Number = among_longer + beyond * (beyond > 0)
    return index


def average_size(index: Number, queues: Number, members: Number) -> Number:
    """Return the number of queues in the `average_slice` of an index in cidAll.

    >>> [average_size(index, 8, 3) for index in range(3)]
    [3, 3, 2]
    """
    return queues // members + (index < queues % members)


AVERAGE = PlaceRule(average_index, average_size)


def served(queues: Sequence[MessageQueue], client_ids: Sequence[str]) -> Iterable[tuple[str, int]]:
    """Return the first place of each client id that may get a queue; other ids get none."""
    first: dict[str, int] = {}
    for index, client_id in enumerate(client_ids[: len(queues)]):
        first.setdefault(client_id, index)
    return first.items()


@dataclass(frozen=True)
class Averagely(AllocationStrategy):
    """``AllocateMessageQueueAveragely``, the default of every consumer. rocketmq.md §2.2.

    Sizes differ by at most one. A duplicated id takes the slice of its first position for all its
    processes; the slices of the other positions have no owner. Cost: O(members + result).
    """

    NAME = "AVG"
    JAVA_CLASS = "AllocateMessageQueueAveragely"
    CANDIDATE = True
    LEAGUE = ("AVG",)

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
        """Return the contiguous slice of the first position of ``client_id``."""
        if not is_member(client_id, queues, client_ids):
            return []
        index = client_ids.index(client_id)
        return list(queues[average_slice(index, len(queues), len(client_ids))])

    def allocate_all(
        self, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> dict[str, list[MessageQueue]]:
        """Return `allocate` of every distinct member in one sweep."""
        check_every_member(queues, client_ids)
        shares: dict[str, list[MessageQueue]] = {client_id: [] for client_id in client_ids}
        for client_id, index in served(queues, client_ids):
            shares[client_id] += queues[average_slice(index, len(queues), len(client_ids))]
        return shares

    def vectorised(self) -> ByPlace:
        """Return the division by `AVERAGE`."""
        return ByPlace(AVERAGE)

    def formula(self, asked: Question) -> Formula:
        """Return the steps of upstream's code, using its names."""
        size, members = len(asked.queues), len(asked.client_ids)
        mod, place = size % members, asked.queues.index(asked.queue)
        entry = average_index(place, size, members)
        index = asked.index_at(entry)
        share = average_slice(index, size, members)
        has_extra = mod > 0 and index < mod
        average = 1 if size <= members else size // members + has_extra
        count = share.stop - share.start
        if size <= members:
            why = f"1, because mqAll {size} <= cidAll {members}"
        elif has_extra:
            why = f"{size} / {members} + 1 = {average}, because index {index} < mod {mod}"
        else:
            why = f"{size} / {members} = {average}"
        start = f"{index} * {average}" + ("" if has_extra else f" + {mod}")
        left = size - share.start
        lines = (
            f"mod = mqAll % cidAll = {size} % {members} = {mod}",
            f"averageSize = {why}",
            f"startIndex = index * averageSize{'' if has_extra else ' + mod'} = {start} = "
            f"{share.start}",
            f"range = min(averageSize, mqAll - startIndex) = min({average}, {left}) = {count}",
            f"mqAll[{share.start}] to mqAll[{share.stop - 1}]; this queue is mqAll[{place}]"
            if count > 0
            else f"an empty range; this queue is mqAll[{place}]",
        )
        values = {
            "index": index,
            "mqAll": size,
            "cidAll": members,
            "mod": mod,
            "averageSize": average,
            "startIndex": share.start,
            "range": count,
            "queueIndex": place,
        }
        return Formula(str(self), lines, values, entry, asked.first_owner(entry))

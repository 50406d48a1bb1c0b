"""The forms in which a strategy can be asked for many groups at once; `kernels` has an algorithm
for each.

A form says what the strategy is of that kind: the kernels bring together members, queues and
epochs. Functions of numbers take plain ones, or arrays of equal length.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from rebalance_core.model.queue import MessageQueue

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Number = TypeVar("Number", int, NDArray[np.integer[Any]])


class OfNumbers(Protocol):
    """A function of one number and of how many queues and entries of cidAll there are."""

    def __call__(self, number: Number, queues: Number, members: Number, /) -> Number:
        """Return a number."""


@dataclass(frozen=True)
class PlaceRule:
    """Which member the queue at a place of the sorted list goes to.

    Attributes:
        index: From the place to the index in cidAll.
        size: Where shares are slices one after the other: from an index to how many queues its
            slice has. All places of a topic are then listed by member, which is faster.
    """

    index: OfNumbers
    size: OfNumbers | None = None


@dataclass(frozen=True)
class ByPlace:
    """A queue's place among those that are divided decides, and how many queues and members are.

    Where the entry at the index of the rule repeats an id, the queue has no owner. Nothing throws
    but an empty argument.

    Attributes:
        rule: Strategies with one and the same are computed at once.
        divides: Whether queues on a broker of this name are divided; None: all are.
        blank_is_empty: A client id without a letter throws, too.
    """

    rule: PlaceRule
    divides: Callable[[str], bool] | None = None
    blank_is_empty: bool = False


@dataclass(frozen=True)
class InRooms:
    """Each machine room is divided by place among its members, one without any among all.

    Where a client or broker has no room, the strategy throws.

    Attributes:
        rule: What divides a room.
        client_room: The room of a client id.
        broker_room: The room of a broker name.
    """

    rule: PlaceRule
    client_room: Callable[[str], str | None]
    broker_room: Callable[[str], str | None]


@dataclass(frozen=True)
class OnRing:
    """A queue goes to the owner of the first point of a ring that is not below its own.

    Attributes:
        node_points: The points of a client id; counted from 0, which of its processes has them.
        queue_point: The point of a queue.
    """

    node_points: Callable[[str, int], tuple[int, ...]]
    queue_point: Callable[[MessageQueue], int]


@dataclass(frozen=True)
class Listed:
    """Every member gets the same queues, whatever there is.

    Attributes:
        queues: None below 0.
    """

    queues: tuple[MessageQueue, ...]


@dataclass(frozen=True)
class Asked:
    """The kernels ask `AllocationStrategy.allocate_all` in every epoch in which something changes.

    Answers that throw, name other queues or give a queue to several leave the group to the replay.
    """


Vectorised: TypeAlias = ByPlace | InRooms | OnRing | Listed | Asked

"""Forms in which strategies divide queues for many groups at once; `kernels` has an algorithm for
each.

A form states what distinguishes a strategy from others of its kind, while the kernels combine
members, queues and epochs. Functions of numbers accept plain numbers or arrays of equal length.
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
    """A function of a number and of the numbers of queues and entries of cidAll."""

    def __call__(self, number: Number, queues: Number, members: Number, /) -> Number:
        """Return a number."""


@dataclass(frozen=True)
class PlaceRule:
    """The member that gets the queue at a place of the sorted list.

    Attributes:
        index: Maps the place to the index in cidAll.
        size: If shares are consecutive slices, maps an index to the length of its slice. All places
            of a topic are then listed by member, which is faster.
    """

    index: OfNumbers
    size: OfNumbers | None = None


@dataclass(frozen=True)
class ByPlace:
    """Division by a queue's place among the divided queues and the numbers of queues and members.

    If the entry at the rule's index repeats an id, the queue has no owner. Only an empty argument
    throws.

    Attributes:
        rule: Strategies with the same rule are computed together.
        divides: Whether queues on a broker of this name are divided; None: all are.
        blank_is_empty: Whether a blank client id also throws.
    """

    rule: PlaceRule
    divides: Callable[[str], bool] | None = None
    blank_is_empty: bool = False


@dataclass(frozen=True)
class InRooms:
    """Division of each machine room by place among its members, or among all if it has none.

    If a client or broker has no room, the strategy throws.

    Attributes:
        rule: Divides a room.
        client_room: The room of a client id.
        broker_room: The room of a broker name.
    """

    rule: PlaceRule
    client_room: Callable[[str], str | None]
    broker_room: Callable[[str], str | None]


@dataclass(frozen=True)
class OnRing:
    """A ring: a queue belongs to the owner of the first point that is not below its own.

    Attributes:
        node_points: The points of a client id's process, numbered from 0.
        queue_point: The point of a queue.
    """

    node_points: Callable[[str, int], tuple[int, ...]]
    queue_point: Callable[[MessageQueue], int]


@dataclass(frozen=True)
class Listed:
    """Assigns the same queues to every member for any arguments.

    Attributes:
        queues: The queues, whose ids are not negative.
    """

    queues: tuple[MessageQueue, ...]


@dataclass(frozen=True)
class Asked:
    """A strategy whose `AllocationStrategy.allocate_all` the kernels call in every changed epoch.

    Answers that throw, name other queues or assign a queue twice leave the group to the replay.
    """


Vectorised: TypeAlias = ByPlace | InRooms | OnRing | Listed | Asked

"""The table of single losses: the worst effect on each group of losing one object."""

from dataclasses import dataclass
from typing import Final

LOSSES_ON_PAGE: Final = 100


@dataclass(frozen=True, slots=True)
class LossRow:
    """The worst single loss of a group.

    Attributes:
        cluster: the group's cluster.
        consumer_group: its name.
        kind: the kind of the object: broker, master, host, zone or member.
        lost: the name of the object.
        orphaned: readable queues without an owner; orphaned_before: before the loss.
        left_unread: messages that stay in lost queues; None: unknown.
        no_owner_s: queues x seconds without an owner; None: not simulated.
        moved: queues that got an owner; None: members share all queues.
        peak_queues: most queues of one member; None: there is no member.
        idle: members without a queue.
    """

    cluster: str
    consumer_group: str
    kind: str
    lost: str
    orphaned: int
    orphaned_before: int = 0
    left_unread: int | None = None
    no_owner_s: float | None = None
    moved: int | None = None
    peak_queues: int | None = None
    idle: int = 0

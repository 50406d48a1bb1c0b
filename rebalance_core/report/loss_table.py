"""The table of single losses: the worst that losing a single object does to each group."""

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
        orphaned: readable queues without an owner; orphaned_before: the same before the loss.
        left_unread: messages that remain in lost queues; None if unknown.
        no_owner_s: queues x seconds without an owner; None if not simulated.
        moved: queues that changed owner; None if members share all queues.
        peak_queues: the largest number of queues per member; None without members.
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

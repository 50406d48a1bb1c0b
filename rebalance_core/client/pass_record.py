"""What one client sees when a pass begins, and what the pass did."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rebalance_core.model.queue import MessageQueue


@dataclass(frozen=True, slots=True)
class PassView:
    """A client's own view at the start of a pass; nothing in it is agreed with anybody.

    Attributes:
        queues: per subscribed topic, in the order the pass takes them: the queues of the client's
            route, None while it knows no route.
        members: per subscribed topic: client ids as the sampled broker returned them (unsorted,
            duplicates kept), None when the query failed.
    """

    queues: Mapping[str, tuple[MessageQueue, ...] | None]
    members: Mapping[str, tuple[str, ...] | None]


@dataclass(frozen=True, slots=True)
class Changed:
    """Arguments of ``messageQueueChanged``: size of mqAll and the set of own queues."""

    mq_all_size: int
    mq_divided: frozenset[MessageQueue]


@dataclass(slots=True)
class PassRecord:
    """What a pass did, in the order it did it.

    Attributes:
        added: start offset of each queue added.
        removed: queues dropped and removed.
        removal_failed: queues dropped that stay, as zombies, until a later pass removes them.
        truncated: queues (zombies too) of topics no longer subscribed.
        persisted: last offset committed to a broker, per queue.
        locks: order locks asked for, and whether they were granted.
        delayed_unlocks: delay in ms of an unlock that a timer will do.
        changed: per topic whose pass called ``messageQueueChanged``.
        heartbeats: rounds of heartbeats sent.
        rebalance_later_ms: extra passes asked for.
        first_pull_delay_ms: delay of the first pull of the added queues; None where there is none.
        balanced: what doRebalance returns; None for 4.9, which returns nothing.
    """

    added: dict[MessageQueue, int] = field(default_factory=dict)
    removed: list[MessageQueue] = field(default_factory=list)
    removal_failed: list[MessageQueue] = field(default_factory=list)
    truncated: list[MessageQueue] = field(default_factory=list)
    persisted: dict[MessageQueue, int] = field(default_factory=dict)
    locks: list[tuple[MessageQueue, bool]] = field(default_factory=list)
    delayed_unlocks: dict[MessageQueue, int] = field(default_factory=dict)
    changed: dict[str, Changed] = field(default_factory=dict)
    heartbeats: int = 0
    rebalance_later_ms: list[int] = field(default_factory=list)
    first_pull_delay_ms: int | None = None
    balanced: bool | None = None

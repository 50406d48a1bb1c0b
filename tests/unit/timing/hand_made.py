"""Small groups and ownership logs made by hand, in milliseconds after `T0`."""

from dataclasses import dataclass, field

import numpy as np

from rebalance_core.model import events
from rebalance_core.model.events import OBSERVED, Event
from rebalance_core.model.group_settings import GroupSettings
from rebalance_core.model.queue import MessageQueue
from rebalance_core.replay.history import CommittedOffset, GroupHistory, QueueOffset
from rebalance_core.timing.group_timeline import GroupTimeline
from rebalance_core.timing.measured import Measured, measured
from rebalance_core.timing.options import ClockOptions
from rebalance_core.timing.ownership_log import OwnershipLog, ownership_log
from rebalance_core.timing.ticks import Ticks
from rebalance_core.timing.timeline_builder import build_timeline

T0 = 1_700_000_000_123


@dataclass
class Group:
    """A group of which topic ``T`` has queues on one broker or more; its log is given by hand."""

    events: list[Event] = field(default_factory=list)
    settings: GroupSettings = field(
        default_factory=lambda: GroupSettings(subscriptions=("T",), client_version="4.9")
    )
    """4.9 pulls a queue as soon as it has it."""
    queue_offsets: tuple[QueueOffset, ...] = ()
    committed_offsets: tuple[CommittedOffset, ...] = ()
    counted_ms: tuple[int | None, int | None] = (None, None)
    clock: ClockOptions = field(default_factory=ClockOptions)

    def topic(self, at: int, queues: int, broker: str = "a", *, observed: bool = False) -> None:
        self._add(
            at,
            events.TOPIC_CONFIG,
            topic="T",
            broker_name=broker,
            perm=6,
            read_queue_nums=queues,
            write_queue_nums=queues,
            detail=OBSERVED if observed else None,
        )

    def broker(self, at: int, kind: str, broker: str = "a") -> None:
        self._add(at, kind, broker_name=broker)

    def there(self, *clients: str) -> None:
        """Members from before the log."""
        for client in clients:
            self.consumer(-100_000, events.CONSUMER_JOIN, client, OBSERVED)

    def consumer(self, at: int, kind: str, client: str, detail: str | None = None) -> None:
        self._add(at, kind, client_id=client, channel_id=client, detail=detail)

    def history(self) -> GroupHistory:
        return GroupHistory(
            "c", "g", self.settings, tuple(self.events), self.queue_offsets, self.committed_offsets
        )

    def timeline(self) -> GroupTimeline:
        return build_timeline(self.history(), self.clock)

    def measured(self, *rows: tuple[int, str, int, int, int], seeds: int = 1) -> Measured:
        """Of a log of rows (seed, client, queue, ms, delta)."""
        return self.measured_log(self.log(*rows), seeds)

    def measured_log(
        self, log: OwnershipLog, seeds: int, first_seed: int = 0, kept: int = 1 << 40
    ) -> Measured:
        numbers = np.arange(first_seed, first_seed + seeds, dtype=np.int64)
        ticks = Ticks(self.timeline(), numbers, self.clock)
        return measured(self.history(), ticks, log, kept, self.counted_ms, kept)

    def log(self, *rows: tuple[int, str, int, int, int]) -> OwnershipLog:
        lifetimes = {lifetime.client_id: lifetime.index for lifetime in self.timeline().lifetimes}
        return ownership_log(
            [
                (seed, lifetimes[client], queue, (T0 + ms) * 1_000, delta)
                for seed, client, queue, ms, delta in rows
            ]
        )

    def _add(self, at: int, kind: str, **values: object) -> None:
        self.events.append(Event(T0 + at, len(self.events), kind, **values))  # type: ignore[arg-type]


def two_members() -> Group:
    """c1 has all four queues when c2 joins."""
    group = Group()
    group.there("c1")
    group.topic(-100_000, 4, observed=True)
    group.consumer(0, events.CONSUMER_JOIN, "c2")
    return group


def written(queue: int, at: int, offset: int) -> QueueOffset:
    return QueueOffset(MessageQueue("T", "a", queue), T0 + at, 0, offset)


def committed(queue: int, at: int, offset: int) -> CommittedOffset:
    return CommittedOffset(MessageQueue("T", "a", queue), None, T0 + at, offset)

"""Points of the grid that Kafka's ServerSideAssignorBenchmark publishes, and what happens there.

That grid: 100 to 10,000 members, 5 to 50 partitions a member, 10 to 1,000 topics; an assignment
from nothing, or one after a join. A star of it is run: one axis at a time from the centre.
"""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from tests.bench.histories import broker_down, consumer_events, numbered, topic_configs

FULL, JOIN_ONE, LEAVE_MANY = "FULL", "JOIN_ONE", "LEAVE_MANY"
QUEUES_ADDED, BROKER_LOST = "QUEUES_ADDED", "BROKER_LOST"
CHANGES = (FULL, JOIN_ONE, LEAVE_MANY, QUEUES_ADDED, BROKER_LOST)
BROKERS = 4


@dataclass(frozen=True)
class State:
    """Numbers of the members, and queues of each topic on each broker."""

    members: tuple[int, ...]
    queues: tuple[int, ...]

    def line(self) -> str:
        """As ``Assignors.java`` reads it."""
        runs, begin = [], 0
        for at in range(1, len(self.members) + 1):
            if at == len(self.members) or self.members[at] != self.members[at - 1] + 1:
                runs.append(f"{self.members[begin]}-{self.members[at - 1]}")
                begin = at
        return ",".join(runs) + "\t" + ",".join(map(str, self.queues))


@dataclass(frozen=True)
class Point:
    """One group and one change.

    Attributes:
        members: After the change, but for LEAVE_MANY: before it.
        per_member: Queues a member, over all topics.
        topics: How many.
        change: One of `CHANGES`.
    """

    members: int = 1_000
    per_member: int = 10
    topics: int = 100
    change: str = JOIN_ONE

    def __str__(self) -> str:
        return f"{self.change} {self.members:,} x {self.per_member} x {self.topics:,}"

    @property
    def before(self) -> State | None:
        """None: nothing was assigned."""
        everybody = tuple(range(self.members))
        queues = self._queues(self.members * self.per_member // self.topics)
        if self.change == FULL:
            return None
        if self.change == JOIN_ONE:
            # Not the last one: under AVG nobody but the last would notice.
            joiner = self.members // 4
            return State(everybody[:joiner] + everybody[joiner + 1 :], queues)
        if self.change == QUEUES_ADDED:
            return State(everybody, tuple(max(1, 4 * n // 5) for n in queues))
        return State(everybody, queues)

    @property
    def after(self) -> State:
        """What is timed: everybody's share in this state."""
        everybody = tuple(range(self.members))
        queues = self._queues(self.members * self.per_member // self.topics)
        if self.change == LEAVE_MANY:
            return State(tuple(m for m in everybody if m % 10 != 5), queues)
        return State(everybody, queues[:-1] if self.change == BROKER_LOST else queues)

    def line(self) -> str:
        """As ``Assignors.java`` reads it."""
        before = self.before.line() if self.before else "-\t-"
        return f"{self}\t{self.topics}\t{before}\t{self.after.line()}"

    def events(self) -> pa.Table:
        """As rows of ``cluster_events``."""
        before, after = self.before or self.after, self.after
        topics = range(self.topics)
        first = set(before.members)
        parts = [topic_configs(topics, before.queues, step=0)]
        parts.append(_members(list(before.members), True, self.topics, step=1))
        if came := [m for m in after.members if m not in first]:
            parts.append(_members(came, True, self.topics, step=2))
        if left := sorted(first - set(after.members)):
            parts.append(_members(left, False, self.topics, step=2))
        if len(after.queues) < len(before.queues):
            parts.append(broker_down(len(before.queues) - 1, step=2))
        elif after.queues != before.queues:
            parts.append(topic_configs(topics, after.queues, step=2))
        return numbered(parts)

    def _queues(self, per_topic: int) -> tuple[int, ...]:
        return tuple(per_topic // BROKERS + (b < per_topic % BROKERS) for b in range(BROKERS))


CENTRE = Point()
TARGET = Point(1_000, 50, 100, FULL)
"""Where the kernels should be 500 times as fast as RocketMQ's own loop."""


def star() -> list[Point]:
    """The centre, one axis at a time from there, and the target."""
    points = [CENTRE]
    points += [replace(CENTRE, members=n) for n in (100, 500, 5_000, 10_000)]
    points += [replace(CENTRE, per_member=n) for n in (5, 50)]
    points += [replace(CENTRE, topics=n) for n in (10, 1_000)]
    points += [replace(CENTRE, change=change) for change in CHANGES if change != JOIN_ONE]
    return [*points, TARGET]


def _members(members: list[int], joined: bool, topics: int, step: int) -> pa.Table:
    rows = len(members)
    return consumer_events(
        np.zeros(rows, np.int64),
        np.array(members),
        np.full(rows, step),
        np.full(rows, joined),
        range(topics),
    )

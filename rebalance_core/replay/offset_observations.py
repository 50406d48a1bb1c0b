"""Observations of queues and commits over time, looked up by time."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from rebalance_core.model.queue import MessageQueue
from rebalance_core.protocol.commits import (
    COMMIT_TRANSIT_MS,
)
from rebalance_core.replay.history import CommittedOffset, QueueOffset
from rebalance_core.replay.outages import Outages
from rebalance_core.replay.topic_deletions import BEFORE_ALL_MS, DeletionsByQueue


class QueueOffsets:
    """Offsets of each queue, oldest first.

    A deletion counts as an observation of an empty queue, because a recreated topic begins at 0.
    Observations at that exact moment belong to the deleted queue.
    """

    def __init__(self, seen: Iterable[QueueOffset], deletions: DeletionsByQueue) -> None:
        self._deletions = deletions
        self._seen: dict[MessageQueue, list[QueueOffset]] = {}
        for row in seen:
            self._seen.setdefault(row.queue, []).append(row)
        self._by_queue: dict[MessageQueue, list[QueueOffset]] = {}

    def observations_of(self, queue: MessageQueue) -> list[QueueOffset]:
        """Return all observations of a queue, oldest first."""
        if queue not in self._by_queue:
            moments = self._deletions.moments(queue)
            rows = [r for r in self._seen.get(queue, ()) if r.observed_ms not in moments]
            rows += [QueueOffset(queue, at_ms, 0, 0) for at_ms in dict.fromkeys(moments)]
            self._by_queue[queue] = sorted(rows, key=lambda row: row.observed_ms)
        return self._by_queue[queue]

    def life(self, queue: MessageQueue, asked_ms: int) -> list[QueueOffset]:
        """Return the observations of the queue that exists at a given moment, oldest first."""
        born_ms = self._deletions.last(queue, asked_ms)
        return [
            row
            for row in self.observations_of(queue)
            if self._deletions.last(queue, row.observed_ms) == born_ms
        ]

    def newest(self, queue: MessageQueue, at_ms: int) -> QueueOffset | None:
        """Return the newest observation up to a given moment."""
        rows = self.observations_of(queue)
        index = bisect_right(rows, at_ms, key=lambda row: row.observed_ms)
        return rows[index - 1] if index else None

    def around(self, queue: MessageQueue, from_ms: int, to_ms: int) -> list[QueueOffset]:
        """Return the observations in [from_ms, to_ms], and the first one at or after ``to_ms``."""
        after = self.first_from(queue, to_ms, from_ms)
        end_ms = to_ms if after is None else after.observed_ms
        return [row for row in self.observations_of(queue) if from_ms <= row.observed_ms <= end_ms]

    def first_from(self, queue: MessageQueue, at_ms: int, asked_ms: int) -> QueueOffset | None:
        """Return the first observation at or after a given moment.

        Return None if there is none, or if the queue that exists at ``asked_ms`` is deleted before
        the next observation.
        """
        rows = self.observations_of(queue)
        index = bisect_left(rows, at_ms, key=lambda row: row.observed_ms)
        if index == len(rows):
            return None
        row = rows[index]
        return row if self._deletions.last(queue, row.observed_ms) <= asked_ms else None

    def max_by(self, queue: MessageQueue, at_ms: int, asked_ms: int) -> int | None:
        """Return an upper bound on the maximum offset at a given moment: the first later
        observation.

        Return None after the last observation, because nothing bounds later writes.
        """
        row = self.first_from(queue, at_ms, asked_ms)
        return None if row is None else row.max_offset


class CommittedOffsets:
    """Commits on each queue, oldest first.

    Args:
        seen: the observed commits, in any order.
        outages: the outages of the brokers.
    """

    def __init__(self, seen: Iterable[CommittedOffset], outages: Outages) -> None:
        self._outages = outages
        self._by_queue: dict[MessageQueue, list[CommittedOffset]] = {}
        for row in sorted(seen, key=_age):
            self._by_queue.setdefault(row.queue, []).append(row)

    def newest(
        self,
        queue: MessageQueue,
        at_ms: int,
        *clients: str | None,
        after_ms: int = BEFORE_ALL_MS,
        kept: bool = False,
    ) -> CommittedOffset | None:
        """Return the newest commit in (after_ms, at_ms], by any client or by these clients.

        A client of None means the broker: a row that does not name the committing client. With
        ``kept``, only commits count that cannot have been lost in an outage of the broker.
        """
        rows = self._by_queue.get(queue, [])
        for index in range(bisect_right(rows, at_ms, key=lambda row: row.observed_ms), 0, -1):
            row = rows[index - 1]
            if row.observed_ms <= after_ms:
                return None
            if (not clients or row.client_id in clients) and (not kept or self.is_kept(row)):
                return row
        return None

    def is_kept(self, row: CommittedOffset) -> bool:
        """Return whether the broker received the commit or was observed to have it."""
        broker_name = row.queue.broker_name
        return row.client_id is None or not self._outages.may_lose(broker_name, row.observed_ms)

    def newest_arrived(
        self, queue: MessageQueue, at_ms: int, after_ms: int
    ) -> CommittedOffset | None:
        """Return the newest commit that the broker certainly has at a given moment.

        A commit reported by a client may still be in transit; a commit observed on the broker has
        arrived.
        """
        sent_ms = at_ms - COMMIT_TRANSIT_MS
        sent = self.newest(queue, sent_ms, after_ms=after_ms, kept=True)
        stored = self.newest(queue, at_ms, None, after_ms=after_ms)
        return newer(sent, stored)

    def within(
        self, queue: MessageQueue, after_ms: int, to_ms: int, clients: set[str]
    ) -> list[CommittedOffset]:
        """Return commits in (after_ms, to_ms] by these clients, oldest first."""
        return [
            row
            for row in self._by_queue.get(queue, [])
            if after_ms < row.observed_ms <= to_ms and row.client_id in clients
        ]

    def since(
        self, queue: MessageQueue, first: CommittedOffset, to_ms: int
    ) -> list[CommittedOffset]:
        """Return a commit and all later ones up to a given moment, oldest first."""
        rows = self._by_queue.get(queue, [])
        index = bisect_left(rows, _age(first), key=_age)
        return rows[index : bisect_right(rows, to_ms, key=lambda row: row.observed_ms)]

    def highest(self, queue: MessageQueue, after_ms: int, to_ms: int, *clients: str) -> int | None:
        """Return the highest offset committed in (after_ms, to_ms], by any client or by these
        clients.
        """
        offsets = (
            row.committed_offset
            for row in self._by_queue.get(queue, [])
            if after_ms < row.observed_ms <= to_ms and (not clients or row.client_id in clients)
        )
        return max(offsets, default=None)


def newer(*rows: CommittedOffset | None) -> CommittedOffset | None:
    """Return the newest of the rows or, among equally new rows, the highest."""
    present = [row for row in rows if row is not None]
    return max(present, key=_age, default=None)


def _age(row: CommittedOffset) -> tuple[int, int]:
    """Return the sort key of commits on a queue; among commits observed at the same moment, the
    higher one is newer.
    """
    return row.observed_ms, row.committed_offset

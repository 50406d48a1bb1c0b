"""What was seen of queues and commits over time, looked up by moment."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from rebalance_core.model.queue import MessageQueue
from rebalance_core.replay.history import CommittedOffset, QueueOffset


class QueueOffsets:
    """Offsets of each queue, oldest first."""

    def __init__(self, seen: Iterable[QueueOffset]) -> None:
        self._by_queue: dict[MessageQueue, list[QueueOffset]] = {}
        for row in sorted(seen, key=lambda row: row.observed_ms):
            self._by_queue.setdefault(row.queue, []).append(row)

    def of(self, queue: MessageQueue) -> list[QueueOffset]:
        """All observations of one queue, oldest first."""
        return self._by_queue.get(queue, [])

    def newest(self, queue: MessageQueue, at_ms: int) -> QueueOffset | None:
        """The newest observation not later than a moment."""
        rows = self.of(queue)
        index = bisect_right(rows, at_ms, key=lambda row: row.observed_ms)
        return rows[index - 1] if index else None

    def within(self, queue: MessageQueue, from_ms: int, to_ms: int) -> list[QueueOffset]:
        """Observations in [from_ms, to_ms]."""
        return [row for row in self.of(queue) if from_ms <= row.observed_ms <= to_ms]

    def max_by(self, queue: MessageQueue, at_ms: int) -> int | None:
        """An upper bound of the maximum offset at a moment: the first observation not earlier.

        None after the last observation: nothing bounds what was written since.
        """
        rows = self.of(queue)
        index = bisect_left(rows, at_ms, key=lambda row: row.observed_ms)
        return rows[index].max_offset if index < len(rows) else None


class CommittedOffsets:
    """Commits on each queue, oldest first."""

    def __init__(self, seen: Iterable[CommittedOffset]) -> None:
        self._by_queue: dict[MessageQueue, list[CommittedOffset]] = {}
        # Of two commits seen at one moment the higher one stands for the newer.
        for row in sorted(seen, key=lambda row: (row.observed_ms, row.committed_offset)):
            self._by_queue.setdefault(row.queue, []).append(row)

    def newest(
        self, queue: MessageQueue, at_ms: int, client_id: str | None = None
    ) -> CommittedOffset | None:
        """The newest commit not later than a moment, of anybody or of one client."""
        rows = self._by_queue.get(queue, [])
        for index in range(bisect_right(rows, at_ms, key=lambda row: row.observed_ms), 0, -1):
            if client_id is None or rows[index - 1].client_id == client_id:
                return rows[index - 1]
        return None

    def within(
        self, queue: MessageQueue, after_ms: int, to_ms: int, clients: set[str]
    ) -> list[CommittedOffset]:
        """Commits in (after_ms, to_ms] of these clients, oldest first."""
        return [
            row
            for row in self._by_queue.get(queue, [])
            if after_ms < row.observed_ms <= to_ms and row.client_id in clients
        ]

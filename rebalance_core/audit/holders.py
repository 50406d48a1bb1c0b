"""Who should hold a queue at a moment, by the ledger."""

from __future__ import annotations

from rebalance_core.audit.case import GroupCase, Row
from rebalance_core.audit.orphans import Queue, queue_of


class Holders:
    """The ledger's ownership and diffs by queue."""

    def __init__(self, case: GroupCase) -> None:
        self._owned: dict[Queue, list[Row]] = {}
        self._diffs: dict[Queue, list[Row]] = {}
        for row in case.rows("ownership"):
            self._owned.setdefault(queue_of(row), []).append(row)
        for row in case.rows("diffs"):
            self._diffs.setdefault(queue_of(row), []).append(row)

    def rows_at(self, queue: Queue, at_ms: int) -> list[Row]:
        """Holdings of the queue at this moment, nobody's included."""
        return [
            row
            for row in self._owned.get(queue, ())
            if row["from_ms"] <= at_ms and (row["to_ms"] is None or at_ms < row["to_ms"])
        ]

    def at(self, queue: Queue, at_ms: int) -> set[str]:
        """Client ids that should hold the queue at this moment."""
        return {r["client_id"] for r in self.rows_at(queue, at_ms) if r["client_id"] is not None}

    def last_change(self, queue: Queue, at_ms: int) -> Row | None:
        """The newest diff of the queue not later than this moment, the one that settles last."""
        before = [row for row in self._diffs.get(queue, ()) if row["change_ms"] <= at_ms]
        return max(before, key=lambda row: (row["change_ms"], row["latest_ms"]), default=None)

    def settled_at(self, queue: Queue, at_ms: int) -> bool:
        """True if no change of the queue is under way at this moment."""
        change = self.last_change(queue, at_ms)
        return change is None or change["latest_ms"] < at_ms

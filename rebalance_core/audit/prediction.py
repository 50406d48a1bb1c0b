"""Who should own what at any moment of the night, from the ledger's rows of one group."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from rebalance_core.audit.case import GroupCase, Row
from rebalance_core.audit.looks import queue_of
from rebalance_core.model.queue import MessageQueue

SETTLES_MS = 23_000
"""Where a notification is lost, a member finds the change at its next pass: 20 s (SEM §6.4)."""
EARLY_MS = 2_000
"""Events of servers are dated by whole seconds, joins by the end of ``start()``."""


class Prediction:
    """The ledger of one group as an answer to: who holds this queue then, and who what."""

    def __init__(self, case: GroupCase) -> None:
        self._holdings: dict[MessageQueue, list[Row]] = defaultdict(list)
        for row in case.rows("ownership"):
            self._holdings[queue_of(row)].append(row)
        latest: dict[int, int] = {}
        for row in case.rows("diffs"):
            latest[row["epoch"]] = max(latest.get(row["epoch"], 0), row["latest_ms"])
        self._epochs = case.epochs
        self._settled = [
            max(epoch["from_ms"] + SETTLES_MS, latest.get(epoch["epoch"], 0))
            for epoch in case.epochs
        ]

    def knows(self, queue: MessageQueue) -> bool:
        """True for a queue that the group ever had."""
        return queue in self._holdings

    def owners(self, queue: MessageQueue, at_ms: int) -> frozenset[str]:
        """Client ids that hold the queue at this moment."""
        return frozenset(
            row["client_id"]
            for row in self._holdings.get(queue, ())
            if row["client_id"] is not None and _holds(row, at_ms)
        )

    def held(self, client_id: str, at_ms: int) -> frozenset[MessageQueue]:
        """The queues that a client id holds at this moment."""
        return frozenset(
            queue
            for queue, rows in self._holdings.items()
            if any(row["client_id"] == client_id and _holds(row, at_ms) for row in rows)
        )

    def changing(self, at_ms: int, until_ms: int) -> Row | None:
        """The epoch whose change may not have reached everybody between two moments."""
        for epoch, settled_ms in zip(self._epochs, self._settled, strict=True):
            if epoch["from_ms"] - EARLY_MS <= until_ms and at_ms < settled_ms:
                return epoch
        return None

    def earlier(self, queue: MessageQueue, client_id: str, at_ms: int) -> Row | None:
        """The last holding of the queue by the client that ended before; None: it never had it."""
        rows = [
            row
            for row in self._holdings.get(queue, ())
            if row["client_id"] == client_id and row["to_ms"] is not None and row["to_ms"] <= at_ms
        ]
        return max(rows, key=lambda row: row["to_ms"], default=None)

    def queues(self, at_ms: int) -> Iterator[MessageQueue]:
        """The queues of the group at this moment, owned or not."""
        return (q for q, rows in self._holdings.items() if any(_holds(r, at_ms) for r in rows))


def _holds(row: Row, at_ms: int) -> bool:
    return row["from_ms"] <= at_ms and (row["to_ms"] is None or at_ms < row["to_ms"])

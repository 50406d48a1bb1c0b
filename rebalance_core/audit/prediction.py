"""The clients that should hold or pop each queue at any time, from a group's ledger."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import cache, cached_property
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

from rebalance_core.audit.dumps import queue_of
from rebalance_core.audit.group_snapshot import GroupSnapshot, grouped
from rebalance_core.audit.logged_causes import is_initial
from rebalance_core.audit.topic_readers import TopicReaders, readers
from rebalance_core.audit.topic_settings import is_deleted, readable_queues
from rebalance_core.model.queue import MessageQueue, is_retry_topic
from rebalance_core.model.timeline import EVER_MS
from rebalance_core.model.times import ROUTE_POLL_MS
from rebalance_core.model.verdicts import FROZEN
from rebalance_core.protocol.settling_windows import OWN_PASS_MS
from rebalance_core.strategies.pop import WHOLE_BROKER

if TYPE_CHECKING:
    from rebalance_core.contracts.row_parts import NamesQueue, Stretch
    from rebalance_core.contracts.rows import (
        DiffsRow,
        EpochsRow,
        GroupTopicsRow,
        OwnershipRow,
        PopReachRow,
    )

OfQueue = TypeVar("OfQueue", bound="NamesQueue")
Held = TypeVar("Held", "OwnershipRow", "PopReachRow")

MOST_CHANGES = 16
"""The maximum number of changes in progress whose states are compared with an observation."""
EVENT_DATED_LATE_MS = 2_000
"""Server events have times in whole seconds; joins are dated at the end of ``start()``."""


class Prediction:
    """Queries on a group's ledger: the holders of a queue and the queues of a client at a time.

    Tables are read once, on first use; a query reads the rows of one queue or client. In a shared
    topic, a member that pulls holds the queues of its share, and all others pop theirs.
    """

    def __init__(self, group: GroupSnapshot) -> None:
        self._case = group
        self._readers = cache(self._readers_in)

    @cached_property
    def _of_queue(self) -> dict[MessageQueue, list[OwnershipRow]]:
        return _by_queue(self._case.tables["ownership"])

    @cached_property
    def _of_client(self) -> dict[str, list[OwnershipRow]]:
        return _by_client(self._case.tables["ownership"])

    @cached_property
    def _reach_of_queue(self) -> dict[MessageQueue, list[PopReachRow]]:
        return _by_queue(self._case.tables["pop_reach"])

    @cached_property
    def _reach_of_client(self) -> dict[str, list[PopReachRow]]:
        return _by_client(self._case.tables["pop_reach"])

    @cached_property
    def _diffs(self) -> dict[MessageQueue, list[DiffsRow]]:
        return _by_queue(self._case.tables["diffs"])

    @cached_property
    def _settling(self) -> list[tuple[EpochsRow, int]]:
        return _settling(self._case)

    def holdings(self, queue: MessageQueue, at_ms: int) -> list[OwnershipRow]:
        """Return rows of ownership of the queue at this time, including those without an owner."""
        return [row for row in self._of_queue.get(queue, ()) if holds(row, at_ms)]

    def owners(self, queue: MessageQueue, at_ms: int) -> frozenset[str]:
        """Return the client ids that should pull the queue at this time, exclusively or not."""
        rows = self.holdings(queue, at_ms)
        owned = frozenset(row["client_id"] for row in rows if row["client_id"] is not None)
        return owned | frozenset(
            client_id
            for client_id in self.takers(queue, at_ms)
            if self._pulls(client_id, queue.topic, at_ms)
        )

    def takers(self, queue: MessageQueue, at_ms: int) -> frozenset[str]:
        """Return the client ids that may take messages of a shared queue, or of its broker's
        queues.
        """
        whole = queue._replace(queue_id=WHOLE_BROKER)
        rows = chain.from_iterable(self._reach_of_queue.get(entry, ()) for entry in {queue, whole})
        return frozenset(row["client_id"] for row in rows if holds(row, at_ms))

    def held(self, client_id: str, at_ms: int) -> frozenset[MessageQueue]:
        """Return the queues that a client id should pull at this time."""
        rows = self._of_client.get(client_id, ())
        owned = frozenset(queue_of(row) for row in rows if holds(row, at_ms))
        return owned | frozenset(
            queue
            for queue in self._reach(client_id, at_ms)
            if self._pulls(client_id, queue.topic, at_ms)
        )

    def popped(self, client_id: str, at_ms: int) -> frozenset[MessageQueue]:
        """Return the queues that a client id should pop at this time, itself or through its
        proxy.
        """
        return frozenset(
            queue
            for queue in self._reach(client_id, at_ms)
            if not self._pulls(client_id, queue.topic, at_ms)
        )

    def shares(self, at_ms: int) -> bool:
        """Return True if members share the queues of some topic at this time."""
        epoch = self._case.epoch_at(at_ms)
        return epoch is not None and epoch["epoch"] in self._shared_epochs

    @cached_property
    def _shared_epochs(self) -> frozenset[int]:
        return frozenset(row["epoch"] for row in self._case.tables["pop_metrics"])

    def _reach(self, client_id: str, at_ms: int) -> list[MessageQueue]:
        rows = self._reach_of_client.get(client_id, ())
        return [queue_of(row) for row in rows if holds(row, at_ms)]

    def _pulls(self, client_id: str, topic: str, at_ms: int) -> bool:
        epoch = self._case.epoch_at(at_ms)
        return epoch is not None and client_id in self._readers(topic, epoch["from_ms"]).pullers

    def _readers_in(self, topic: str, from_ms: int) -> TopicReaders:
        return readers(self._case, topic, from_ms)

    def queues(self, topic: str, at_ms: int) -> list[MessageQueue]:
        """Return the queues of a topic that the group has at this time, owned or not."""
        of_topic = (item for item in self._of_queue.items() if item[0].topic == topic)
        return [queue for queue, rows in of_topic if any(holds(row, at_ms) for row in rows)]

    def unknown(self, seen: Iterable[tuple[MessageQueue, int]]) -> set[MessageQueue]:
        """Return the queues that the ledger lacks at and before the time they were seen.

        No file had shown them yet.
        """
        reach = self._reach_of_queue.keys()
        whole = {q[:2] for q in self._of_queue.keys() | reach if q.queue_id == WHOLE_BROKER}
        return {
            queue
            for queue, at_ms in seen
            if queue not in reach
            and queue[:2] not in whole
            and all(row["from_ms"] > at_ms for row in self._of_queue.get(queue, ()))
        }

    def views(self, from_ms: int, until_ms: int) -> list[int] | None:
        """Return moments of the ledger whose members and routes a member may know between these
        times, besides the time itself: those before and after each change under way.

        None if more than `MOST_CHANGES` are under way, which makes too many states to compare.
        """
        changes = self.under_way(from_ms, until_ms)
        if len(changes) > MOST_CHANGES:
            return None
        before = [changes[0]["from_ms"] - 1] if changes else []
        return before + [epoch["from_ms"] for epoch in changes]

    def before_freeze(self, topic: str, at_ms: int) -> list[int]:
        """Return the earlier moments whose owners members may still have for a topic that is now
        frozen.

        Clients poll routes. If the last of several changes within one poll left the topic without a
        readable queue, each client may have seen any of the earlier changes, or none, before it
        froze its queues.
        """
        if readable_queues(self._case, topic) or topic not in self._topics:
            return []
        epochs = [epoch for epoch in self._case.epochs if epoch["from_ms"] <= at_ms]
        while epochs and epochs[-1]["status"] == FROZEN:
            frozen_ms = epochs.pop()["from_ms"]
            if not epochs or epochs[-1]["status"] != FROZEN:
                since_ms = frozen_ms - ROUTE_POLL_MS - EVENT_DATED_LATE_MS
                return [
                    epoch["from_ms"]
                    for epoch in epochs
                    if epoch["to_ms"] and epoch["to_ms"] > since_ms
                ]
        return []

    def is_deleted(self, topic: str, at_ms: int) -> bool:
        """Return True if the topic is gone from every broker.

        Clients that know its old route rebalance it when members change (rocketmq.md §6.3), but
        newer clients do not: the holders of its queues are meaningless, and no client reads them.
        """
        rows = self._topics.get(topic)
        return rows is not None and all(
            is_deleted(row) and row["event_ms"] <= at_ms for row in rows
        )

    @cached_property
    def _topics(self) -> dict[str, list[GroupTopicsRow]]:
        return grouped(self._case.tables["topics"], lambda row: row["topic"])

    def earlier(self, queue: MessageQueue, client_id: str, at_ms: int) -> OwnershipRow | None:
        """Return the client's last holding of the queue that ended earlier, or None if it had
        none.
        """
        rows = [
            (row["to_ms"], row)
            for row in self._of_queue.get(queue, ())
            if row["client_id"] == client_id and row["to_ms"] is not None and row["to_ms"] <= at_ms
        ]
        return max(rows, key=lambda ended: ended[0])[1] if rows else None

    def last_change(self, queue: MessageQueue, at_ms: int) -> DiffsRow | None:
        """Return the queue's newest diff up to this time, the last to settle."""
        before = [row for row in self._diffs.get(queue, ()) if row["change_ms"] <= at_ms]
        return max(before, key=lambda row: (row["change_ms"], row["latest_ms"]), default=None)

    def taken(self, queue: MessageQueue, client_id: str, at_ms: int) -> DiffsRow | None:
        """Return the newest diff up to this time by which the client takes the queue."""
        taken = [
            row
            for row in self._diffs.get(queue, ())
            if row["action"] == "ADD" and row["client_id"] == client_id
            if row["change_ms"] <= at_ms
        ]
        return max(taken, key=lambda row: row["change_ms"], default=None)

    def settled_at(self, queue: MessageQueue, at_ms: int) -> bool:
        """Return True if no change of the queue is under way at this time."""
        change = self.last_change(queue, at_ms)
        if change is None:
            return True
        off_ms = self._case.run.coverage.clock_error_ms(change["change_ms"], change["latest_ms"])
        return change["latest_ms"] + off_ms < at_ms

    def under_way(self, at_ms: int, until_ms: int = EVER_MS) -> list[EpochsRow]:
        """Return the epochs whose change may not have reached every member between these times."""
        error_ms = self._case.run.coverage.clock_error_ms
        return [
            epoch
            for epoch, settled_ms in self._settling
            if at_ms < settled_ms
            and epoch["from_ms"] - EVENT_DATED_LATE_MS - error_ms(epoch["from_ms"]) <= until_ms
        ]

    def changing(self, at_ms: int, until_ms: int) -> EpochsRow | None:
        """Return the first epoch whose change may not have reached every member between these
        times, or None.
        """
        return next(iter(self.under_way(at_ms, until_ms)), None)


def _by_queue(rows: Iterable[OfQueue]) -> dict[MessageQueue, list[OfQueue]]:
    by_queue: dict[MessageQueue, list[OfQueue]] = defaultdict(list)
    for row in rows:
        by_queue[queue_of(row)].append(row)
    return by_queue


def _by_client(rows: Iterable[Held]) -> dict[str, list[Held]]:
    by_client: dict[str, list[Held]] = defaultdict(list)
    for row in rows:
        if row["client_id"] is not None:
            by_client[row["client_id"]].append(row)
    return by_client


def _settling(group: GroupSnapshot) -> list[tuple[EpochsRow, int]]:
    """Return each epoch, and when its changes have certainly happened, retry topics included.

    If a notification is lost, a member finds the change in its own next pass (rocketmq.md §6.4).
    What existed before the files begin is not a change.
    """
    retries: dict[int, int] = {}
    for row in group.tables["diffs"]:
        if is_retry_topic(row["topic"]):
            retries[row["epoch"]] = max(row["latest_ms"], retries.get(row["epoch"], 0))
    return [
        (
            epoch,
            max(
                group.settled_by[epoch["epoch"]],
                epoch["from_ms"] + OWN_PASS_MS,
                retries.get(epoch["epoch"], 0),
            ),
        )
        for epoch in group.epochs
        if not is_initial(group, epoch)
    ]


def holds(row: Stretch, at_ms: int) -> bool:
    """Return True if the row of ownership or memberships holds at this time."""
    return row["from_ms"] <= at_ms and (row["to_ms"] is None or at_ms < row["to_ms"])

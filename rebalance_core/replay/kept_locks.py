"""Order locks that a member keeps after it releases their queues, which delay new owners."""

from __future__ import annotations

from collections.abc import Collection, Set
from dataclasses import dataclass, field, replace

from rebalance_core.model.client_profile import KEPT, KEPT_LOCK_MS
from rebalance_core.model.queue import MessageQueue
from rebalance_core.protocol.order_locks import ORDER_LOCK_MS
from rebalance_core.replay.changes import ADD, INITIAL, NEW, OwnerChange, holders_by_queue
from rebalance_core.replay.history import Epoch


@dataclass(slots=True)
class KeptLocks:
    """The kept locks of an orderly group; `waited` receives the epochs in order."""

    _taken_ms: dict[tuple[MessageQueue, str], int] = field(default_factory=dict)
    """The latest moment by which a queue's holder had taken it and so had its lock."""

    def waited(self, epoch: Epoch, changes: list[OwnerChange]) -> list[OwnerChange]:
        """Return the changes; new owners wait at least until a kept order lock on their queue
        ends.
        """
        queues = {change.queue for change in changes if change.action == ADD}
        before, now = (holders_by_queue(held, queues) for held in (epoch.before, epoch.holdings))
        keeping = _keeping_locks(epoch) if queues else set[str]()
        kept = {
            queue
            for queue in queues
            if self._is_kept(epoch, queue, keeping, before.get(queue, {}), now.get(queue, {}))
        }
        delayed = [
            replace(change, earliest_ms=change.earliest_ms + KEPT_LOCK_MS[0])
            if change.action == ADD and change.queue in kept
            else change
            for change in changes
        ]
        for change in changes:
            if change.action == ADD:
                free = change.kind == NEW  # no member has the queue's lock
                taken_ms = change.latest_ms - (ORDER_LOCK_MS if free else 0)
                self._taken_ms[change.queue, change.client_id] = (
                    epoch.from_ms if change.kind == INITIAL else taken_ms
                )
        return delayed

    def _is_kept(
        self,
        epoch: Epoch,
        queue: MessageQueue,
        keeping: Set[str],
        holders: Collection[str],
        now: Collection[str],
    ) -> bool:
        """Return whether all holders remain live, release the queue, and unlock nothing."""
        return bool(holders) and all(
            client_id in keeping
            and client_id not in now
            and self._taken_ms.get((queue, client_id), epoch.from_ms + 1) <= epoch.from_ms
            for client_id in holders
        )


def _keeping_locks(epoch: Epoch) -> set[str]:
    """Return the client ids of members that certainly keep the locks of queues that they
    release.
    """
    return {
        client_id
        for kind in epoch.view.kinds
        if kind.example.profile.locks == KEPT and "locks" not in kind.example.profile.read
        for client_id, _ in kind.keys
    }

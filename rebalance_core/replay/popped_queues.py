"""Queues that were popped before a client came to own them again, and where that owner may
start.
"""

from collections.abc import Iterable

from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.verdicts import UNKNOWN
from rebalance_core.protocol import start_offset
from rebalance_core.replay.changes import ADD, OwnerChange
from rebalance_core.replay.history import CommittedOffset, Epoch
from rebalance_core.replay.offset_observations import QueueOffsets
from rebalance_core.replay.start_rule import StartOffset


class PoppedQueues:
    """The popped queues of a group; `follow` receives the epochs in order."""

    def __init__(self) -> None:
        self._since: dict[str, int] = {}
        self._owned_again: set[MessageQueue] = set()

    def follow(self, epoch: Epoch, changes: Iterable[OwnerChange]) -> None:
        """Record which topics are popped now, and which queues have an owner again."""
        for topic in epoch.shared:
            self._since.setdefault(topic, epoch.from_ms)
        self._owned_again |= {change.queue for change in changes if change.action == ADD}
        if epoch.shared:
            self._owned_again = {
                queue for queue in self._owned_again if queue.topic not in epoch.shared
            }

    def since_ms(self, queue: MessageQueue) -> int | None:
        """Return when the topic was first popped, or None if never or if the queue has an owner
        again.
        """
        return None if queue in self._owned_again else self._since.get(queue.topic)


def popped_start(
    change: OwnerChange,
    before: CommittedOffset | None,
    stored: CommittedOffset | None,
    offsets: QueueOffsets,
) -> StartOffset:
    """Return the start at which the last pop ended.

    Brokers commit pops and pulls under the same key (rocketmq.md §14).

    The moment of the mode change is rarely known exactly, so low is the commit before the topic was
    popped, and high covers everything that can have been popped.

    Args:
        change: the new owner.
        before: the newest commit before the topic was popped.
        stored: the newest commit that the broker still knows.
        offsets: the offsets of the group's queues.
    """
    low = 0 if before is None else before.committed_offset
    top = offsets.max_by(change.queue, change.latest_ms, change.earliest_ms)
    if stored is None:
        return StartOffset(start_offset.STORED, None, low, top, UNKNOWN)
    estimate = stored.committed_offset
    high = None if top is None else max(top, estimate)
    return StartOffset(start_offset.STORED, estimate, min(low, estimate), high)

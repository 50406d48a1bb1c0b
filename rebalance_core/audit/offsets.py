"""Numbers of messages in queues, and of messages that a group has not read."""

from __future__ import annotations

from collections.abc import Iterable

from rebalance_core.audit.dumps import number, queue_of, seen_ms
from rebalance_core.audit.group_snapshot import GroupSnapshot
from rebalance_core.audit.known_shares import lite_topics
from rebalance_core.audit.subscriptions import is_broadcasting
from rebalance_core.model.queue import MessageQueue, is_system_topic

BETWEEN_READS = 100
"""The messages that a queue may receive between the two reads of one answer: 10,000 per second for
10 ms. A broker reads the end of a queue before its commit
(``AdminBrokerProcessor.getConsumeStats``)."""


class Offsets:
    """The newest known offsets of each queue.

    Attributes:
        ends: queue -> (minimum, maximum offset).
        commits: queue -> the committed offset; local stores of BROADCASTING left out.
        committed_ms: queue -> when it was seen.
    """

    def __init__(self, group: GroupSnapshot) -> None:
        self.ends: dict[MessageQueue, tuple[int, int]] = {}
        self.commits: dict[MessageQueue, int] = {}
        self.committed_ms: dict[MessageQueue, int] = {}
        self._is_local = is_broadcasting(group)
        self._stores = group.run.offsets_ms
        self._none = {queue_of(fact) for fact in group.facts["NOTHING_COMMITTED"]}
        for row in sorted(group.tables["queue_offsets"], key=seen_ms):
            self.ends[queue_of(row)] = (row["min_offset"], row["max_offset"])
        for commit in sorted(group.tables["committed_offsets"], key=seen_ms):
            self.commits[queue_of(commit)] = commit["committed_offset"]
            self.committed_ms[queue_of(commit)] = commit["observed_ms"]

    def behind(self, queues: Iterable[MessageQueue]) -> int | None:
        """Return the number of messages in these queues after the commit or the minimum, or None if
        unknown, as for BROADCASTING, whose members keep their own offsets.
        """
        with_end = [queue for queue in queues if queue in self.ends]
        if not with_end or self._is_local:
            return None
        return sum(self.lag(queue) for queue in with_end)

    def lag(self, queue: MessageQueue) -> int:
        """Return the number of messages in one queue that the group has not read; 0 if its end is
        unknown.
        """
        if queue not in self.ends:
            return 0
        low, high = self.ends[queue]
        return max(0, high - max(low, self.commits.get(queue, low)))

    def committed(self, queues: Iterable[MessageQueue]) -> str:
        """Return whether all, some or none of these queues have a commit, or unknown if no store
        shows it.
        """
        queues = list(queues)
        having = [queue for queue in queues if queue in self.commits]
        if len(having) == len(queues):
            return "all"
        stores = self._stores
        unseen = [queue for queue in queues if queue not in self._none]
        if stores is not None and any(queue.broker_name not in stores for queue in unseen):
            return "unknown"
        return "some" if having else "none"

    def stored(self, queues: Iterable[MessageQueue]) -> int | None:
        """Return the number of messages stored in these queues, or None if unknown."""
        bounds = [self.ends[queue] for queue in queues if queue in self.ends]
        return sum(high - low for low, high in bounds) if bounds else None


def backlog(group: GroupSnapshot) -> dict[MessageQueue, int]:
    """Return the number of messages after the commit of each queue that has some, except in topics
    of type LITE, whose commits belong to the lite topics inside them.

    Where ``consumerProgress`` is newer than any look at a queue's end, its difference counts.
    """
    offsets = Offsets(group)
    behind = {queue: offsets.lag(queue) for queue in offsets.commits}
    ended_ms: dict[MessageQueue, int] = {}
    for row in group.tables["queue_offsets"]:
        ended_ms[queue_of(row)] = max(seen_ms(row), ended_ms.get(queue_of(row), 0))
    for fact in group.facts["QUEUE_PROGRESS"]:
        queue = queue_of(fact)
        newer = fact["first_ms"] > ended_ms.get(queue, 0)
        if newer and fact["details"].get("names_cut") != "true":
            high = number(fact["details"].get("broker_offset"), 0)
            behind[queue] = high - number(fact["details"].get("consumer_offset"), high)
    lite = lite_topics(group)
    return {
        queue: lag
        for queue, lag in behind.items()
        if lag > 0 and queue.topic not in lite and not is_system_topic(queue.topic)
    }


def messages(count: int | None) -> str:
    """Return a number of messages in words.

    >>> messages(None), messages(1), messages(4800)
    ('an unknown number of messages', '1 message', '4,800 messages')
    """
    if count is None:
        return "an unknown number of messages"
    return f"{count:,} message" + ("" if count == 1 else "s")

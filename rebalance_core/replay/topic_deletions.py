"""Deletions of topics on brokers; earlier observations belong to other queues."""

from bisect import bisect_right

from rebalance_core.model.events import BROKER_UP, TOPIC_DELETED, Event
from rebalance_core.model.queue import MessageQueue
from rebalance_core.protocol.commits import deletes_offsets
from rebalance_core.replay.history import GroupHistory

BEFORE_ALL_MS = -1


class DeletionsByQueue:
    """The TOPIC_DELETED events of a group's history, by queue."""

    def __init__(self, history: GroupHistory) -> None:
        ordered = sorted(history.events, key=lambda event: (event.event_ms, event.sequence))
        self._deletions = [event for event in ordered if event.event_type == TOPIC_DELETED]
        self._ups = [e for e in ordered if e.event_type == BROKER_UP and e.version]
        self._broker_version = history.settings.broker_version
        self._moments: dict[MessageQueue, tuple[list[int], list[int]]] = {}

    def moments(self, queue: MessageQueue) -> list[int]:
        """Return all deletions of the queue, in order."""
        return self._of(queue)[0]

    def last(self, queue: MessageQueue, at_ms: int) -> int:
        """Return the last deletion up to a given moment, or `BEFORE_ALL_MS`."""
        return _last(self._of(queue)[0], at_ms)

    def forgotten(self, queue: MessageQueue, at_ms: int) -> int:
        """Return the last deletion up to a given moment that also removed the commits."""
        return _last(self._of(queue)[1], at_ms)

    def _of(self, queue: MessageQueue) -> tuple[list[int], list[int]]:
        if queue not in self._moments:
            deletions = [
                event
                for event in self._deletions
                if event.topic == queue.topic and event.broker_name in (None, queue.broker_name)
            ]
            forgetting = [
                e for e in deletions if deletes_offsets(self._version(queue.broker_name, e))
            ]
            self._moments[queue] = (
                [event.event_ms for event in deletions],
                [event.event_ms for event in forgetting],
            )
        return self._moments[queue]

    def _version(self, broker_name: str, deletion: Event) -> str:
        """Return the broker's version at that moment."""
        version = self._broker_version
        for up in self._ups:
            before = (up.event_ms, up.sequence) < (deletion.event_ms, deletion.sequence)
            if before and up.broker_name == broker_name:
                version = up.version or version
        return version


def _last(moments: list[int], at_ms: int) -> int:
    index = bisect_right(moments, at_ms)
    return moments[index - 1] if index else BEFORE_ALL_MS

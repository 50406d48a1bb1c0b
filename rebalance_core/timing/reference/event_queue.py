"""The event queue: a heap with a total order, so that every run of a seed is identical."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple, TypeAlias


class Kind(IntEnum):
    """Kinds of events; simultaneous events occur in this order."""

    STRETCH = -1
    TIMELINE = 0
    MEMBERSHIP = 1
    NOTICE = 2
    POLL = 3
    HEARTBEAT = 4
    RELEASE = 5
    RENEWAL = 6
    REQUEST = 7
    PASS = 8


Action: TypeAlias = Callable[[], object]
NO_PROCESS = -1
"""Stands for the process or broker of an entry that concerns none."""


class _QueuedEvent(NamedTuple):
    at_us: int
    kind: Kind
    process: int
    broker: int
    sequence: int
    action: Action


class EventQueue:
    """Actions by time, kind, process, broker and order of insertion."""

    def __init__(self) -> None:
        self._entries: list[_QueuedEvent] = []
        self._sequence = 0
        self.now_us = 0
        """The due time of the last action."""

    def put(
        self,
        at_us: int,
        kind: Kind,
        action: Action,
        *,
        process: int = NO_PROCESS,
        broker: int = NO_PROCESS,
    ) -> None:
        """Add an action; an overdue action runs next."""
        self._sequence += 1
        entry = _QueuedEvent(max(at_us, self.now_us), kind, process, broker, self._sequence, action)
        heapq.heappush(self._entries, entry)

    def run_until(self, end_us: int) -> None:
        """Run everything that is due before ``end_us``."""
        while self._entries and self._entries[0].at_us < end_us:
            entry = heapq.heappop(self._entries)
            self.now_us = entry.at_us
            entry.action()
        self.now_us = max(self.now_us, end_us)

"""Commits that a broker never kept, because they were sent while it was down or just before."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from rebalance_core.model.events import BROKER_DOWN, BROKER_EVENTS, Event
from rebalance_core.protocol.commits import (
    FINAL_COMMIT_STORED_MS,
)


class Outages:
    """The broker outages in a group's history.

    Args:
        all_events: the events, in any order.
    """

    def __init__(self, all_events: Iterable[Event]) -> None:
        self._turns: dict[str | None, list[tuple[int, bool]]] = {}
        for event in sorted(all_events, key=lambda event: (event.event_ms, event.sequence)):
            if event.event_type in BROKER_EVENTS:
                turns = self._turns.setdefault(event.broker_name, [])
                turns.append((event.event_ms, event.event_type == BROKER_DOWN))

    def may_lose(self, broker_name: str, sent_ms: int) -> bool:
        """Return whether a client may have logged, at this moment, a commit that the broker lacks.

        The client continues to log commits while the broker is down; a broker that dies has not
        written the commits from its last seconds to disk.
        """
        turns = self._turns.get(broker_name, [])
        after = bisect_right(turns, sent_ms, key=lambda turn: turn[0])
        end = bisect_left(turns, sent_ms + FINAL_COMMIT_STORED_MS, key=lambda turn: turn[0])
        return any(down for _, down in turns[max(0, after - 1) : end])

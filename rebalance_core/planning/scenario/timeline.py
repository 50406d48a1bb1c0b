"""Recorded rows and a scenario's own actions, played in the order of time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from typing import Any

from rebalance_core.planning.scenario.edited_rows import Row, RowLog

Action = Callable[..., object]


class Timeline(ABC):
    """Replays the rows of one entity; edits schedule actions before and while it runs.

    At one instant everything recorded comes before every action, and actions come in the order of
    their edits.

    Attributes:
        now_ms: the instant being played.
        end_ms: the last event of the cluster's history, which moments such as ``+10m`` count from.
        log: what became of the rows.
    """

    def __init__(self, log: RowLog, end_ms: int) -> None:
        self.log = log
        self.end_ms = end_ms
        self.now_ms = 0
        self._agenda: list[tuple[int, int, int, Action, tuple[Any, ...]]] = []
        self._planned = 0
        self._edit = 0

    def planning(self, edit: int) -> None:
        """Actions planned from now on are those of this edit."""
        self._edit = edit

    def at(self, at_ms: int, action: Action, *arguments: Any) -> None:
        """Put an action on the agenda."""
        self._planned += 1
        entry = (max(at_ms, self.now_ms), self._edit, self._planned, action, arguments)
        heappush(self._agenda, entry)

    def after(self, delay_ms: int, action: Action, *arguments: Any) -> None:
        """Put an action on the agenda, ``delay_ms`` from now."""
        self.at(self.now_ms + delay_ms, action, *arguments)

    def play(self, rows: Iterable[Row]) -> None:
        """Play the rows, which must be in order, and everything on the agenda."""
        for row in rows:
            self._act_before(row["event_ms"])
            self.now_ms = row["event_ms"]
            self.recorded(row)
        self._act_before(None)

    @abstractmethod
    def recorded(self, row: Row) -> None:
        """A recorded row: keep, change or drop it."""

    def _act_before(self, until_ms: int | None) -> None:
        while self._agenda and (until_ms is None or self._agenda[0][0] < until_ms):
            self.now_ms, self._edit, _, action, arguments = heappop(self._agenda)
            action(*arguments)

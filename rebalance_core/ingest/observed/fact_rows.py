"""Rows of ``observed_facts``: statements of one thing merged, episodes of trouble kept apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rebalance_core.ingest.rows import Row

EPISODE_MS = 300_000
"""Refusals, drops or failures of one thing further apart are two rows."""
SECOND_MS, MINUTE_MS = 1_000, 60_000
MINUTELY = frozenset(("HEARTBEAT_FAILED", "ALLOCATION_FAILED"))
"""Kinds whose minutes are counted, not seconds: those without a group all come to the driver."""

PER_MOMENT = frozenset(
    ("GROUP_CREATED", "GROUP_DELETED", "GROUP_AT_BROKER", "CONNECTION", "HELD_QUEUE",
     "STUCK_QUEUE", "QUEUE_PROGRESS", "DUMP")
)  # fmt: skip
"""Kinds of which each moment is a row: dumps are not merged with later ones."""
EPISODES = frozenset(
    ("TAGS_CHANGED", "TOPIC_DROPPED", "NO_SUBSCRIPTION", "LOCK_REFUSED", "OFFSET_WENT_BACK",
     "BROADCAST_REFUSED", "NO_MEMBER_LIST", "NOT_IN_MEMBER_LIST", "ALLOCATION_FAILED",
     "HEARTBEAT_FAILED")
)  # fmt: skip
"""Kinds that logs repeat while a trouble lasts."""

Details = dict[str, str]
Merge = Callable[[Details, Details], Details]


class FactRows:
    """Rows in the making; statements have to come in order of their time.

    ``times`` counts the statements of one moment; else the seconds (of `MINUTELY`: minutes) with
    one, which stays the same when a job keeps one line a second of those that repeat.
    """

    def __init__(self, group: str | None = None) -> None:
        self.rows: list[Row] = []
        self._group = group
        self._open: dict[tuple[Any, ...], Row] = {}

    def add(
        self,
        kind: str,
        at_ms: int,
        source: str,
        details: Mapping[str, Any] | None = None,
        *,
        topic: str | None = None,
        broker_name: str | None = None,
        queue_id: int | None = None,
        client_id: str | None = None,
        merge: Merge | None = None,
    ) -> None:
        """One statement; `merge` joins details that do not tell two things apart."""
        told = {name: as_text(value) for name, value in (details or {}).items()}
        what = () if merge else tuple(sorted(told.items()))
        moment = at_ms if kind in PER_MOMENT else None
        key = (kind, topic, broker_name, queue_id, client_id, what, moment)
        row = self._open.get(key)
        if row is None or (kind in EPISODES and at_ms - row["last_ms"] > EPISODE_MS):
            row = {
                "kind": kind,
                "consumer_group": self._group,
                "topic": topic,
                "broker_name": broker_name or None,
                "queue_id": queue_id,
                "client_id": client_id,
                "first_ms": at_ms,
                "last_ms": at_ms,
                "times": 1,
                "details": told,
                "source": source,
            }
            self._open[key] = row
            self.rows.append(row)
            return
        window_ms = MINUTE_MS if kind in MINUTELY else SECOND_MS
        if moment is not None or at_ms // window_ms != row["last_ms"] // window_ms:
            row["times"] += 1
            row["last_ms"] = at_ms
        if merge:
            row["details"] = merge(row["details"], told)


def as_text(value: Any) -> str:
    """A value of the details; unknown is empty, pairs are ``name=value``.

    >>> as_text(None), as_text(True), as_text(["a", "b"]), as_text([("T", "*")])
    ('', 'true', 'a, b', 'T=*')
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return as_text(list(value.items()))
    if isinstance(value, list | tuple):
        return ", ".join("=".join(map(as_text, v)) if _pair(v) else as_text(v) for v in value)
    return str(value)


def _pair(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) == 2

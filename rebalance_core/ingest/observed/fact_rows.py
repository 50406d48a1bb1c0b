"""Rows of ``observed_facts``: statements of one thing merged, episodes of trouble kept apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rebalance_core.contracts.fact_declaration import EPISODE_MS, EPISODES, MOMENTS
from rebalance_core.contracts.observed import FACT_KINDS
from rebalance_core.ingest.rows import Row

Details = dict[str, str]
Merge = Callable[[Details, Details], Details]


class FactRows:
    """Rows in the making; statements have to come in order of their time.

    ``times`` counts the statements of one moment; else the windows of the kind (seconds or minutes)
    with one, which stays the same when a job keeps one line a window of those that repeat.
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
        declared = FACT_KINDS[kind]
        texts = {name: as_text(value) for name, value in (details or {}).items()}
        what = () if merge else tuple(sorted(texts.items()))
        moment = at_ms if declared.repeated == MOMENTS else None
        key = (kind, topic, broker_name, queue_id, client_id, what, moment)
        row = self._open.get(key)
        ended = row is not None and at_ms - row["last_ms"] > EPISODE_MS
        if row is None or (declared.repeated == EPISODES and ended):
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
                "details": texts,
                "source": source,
            }
            self._open[key] = row
            self.rows.append(row)
            return
        window_ms = declared.window_ms
        if moment is not None or at_ms // window_ms != row["last_ms"] // window_ms:
            row["times"] += 1
            row["last_ms"] = at_ms
        if merge:
            row["details"] = merge(row["details"], texts)


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

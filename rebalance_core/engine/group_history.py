"""Rows of one group, as Arrow hands them over, to the replay's history."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from functools import lru_cache
from typing import Any

import pyarrow as pa

from rebalance_core.checks.conform import with_text
from rebalance_core.contracts import INPUT_TABLES
from rebalance_core.contracts.table import RAW, SOURCE
from rebalance_core.model.events import Event
from rebalance_core.model.group_settings import GroupSettings
from rebalance_core.model.queue import MessageQueue
from rebalance_core.replay.history import CommittedOffset, GroupHistory, QueueOffset
from rebalance_core.replay.settle import StrategyKey
from rebalance_core.strategies import AllocationStrategy, parse_strategy

Row = Mapping[str, Any]

_EVENT_FIELDS = tuple(f.name for f in fields(Event) if f.name not in ("source", "raw"))
_SETTING_FIELDS = tuple(f.name for f in fields(GroupSettings))


@lru_cache(maxsize=1024)
def strategy_for(key: StrategyKey) -> AllocationStrategy:
    """The strategy of a (text, client version); a quarantined input has only valid ones."""
    return parse_strategy(key[0], version=key[1])


def history_of(
    tables: Mapping[str, pa.Table], *, queue_offsets_given: bool, committed_offsets_given: bool
) -> GroupHistory:
    """The history of the group whose rows these are.

    Args:
        tables: the rows of one group, by table.
        queue_offsets_given: there is a queue_offsets table, so no row means not observed.
        committed_offsets_given: there is a committed_offsets table, so no row means none.
    """
    events = with_text(INPUT_TABLES["cluster_events"], tables["cluster_events"])
    given = {**tables, "cluster_events": events}
    rows: dict[str, list[Row]] = {name: table.to_pylist() for name, table in given.items()}
    first = rows["cluster_events"][0]
    offsets = tuple(map(_queue_offset, rows.get("queue_offsets", [])))
    commits = tuple(map(_committed_offset, rows.get("committed_offsets", [])))
    return GroupHistory(
        cluster=first["cluster"],
        consumer_group=first["consumer_group"],
        settings=_settings(rows.get("consumer_groups", [])),
        events=tuple(map(event_of, rows["cluster_events"])),
        queue_offsets=offsets if queue_offsets_given else None,
        committed_offsets=commits if committed_offsets_given else None,
    )


def _settings(rows: Iterable[Row]) -> GroupSettings:
    given = {
        name: value
        for row in rows
        for name, value in row.items()
        if name in _SETTING_FIELDS and value is not None
    }
    if "subscriptions" in given:
        given["subscriptions"] = tuple(given["subscriptions"])
    return GroupSettings(**given)


def event_of(row: Row) -> Event:
    """The event of one row of cluster_events."""
    values = {name: row[name] for name in _EVENT_FIELDS}
    if values["subscriptions"] is not None:
        values["subscriptions"] = tuple(values["subscriptions"])
    return Event(**values, source=row.get(SOURCE), raw=row.get(RAW))


def _queue(row: Row) -> MessageQueue:
    return MessageQueue(row["topic"], row["broker_name"], row["queue_id"])


def _queue_offset(row: Row) -> QueueOffset:
    return QueueOffset(
        _queue(row), row["observed_ms"], row["min_offset"], row["max_offset"], row["head_cached"]
    )


def _committed_offset(row: Row) -> CommittedOffset:
    return CommittedOffset(
        _queue(row), row["client_id"], row["observed_ms"], row["committed_offset"]
    )

"""Converts the Arrow rows of a group into the replay's history."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, NotRequired, Required, TypedDict, cast

import pyarrow as pa

from rebalance_core.checks.conform import with_text
from rebalance_core.contracts import INPUT_TABLES
from rebalance_core.contracts.table import RAW, SOURCE
from rebalance_core.model.events import Event
from rebalance_core.model.group_settings import GroupSettings
from rebalance_core.model.queue import MessageQueue
from rebalance_core.replay.history import CommittedOffset, GroupHistory, QueueOffset
from rebalance_core.replay.topic_shares import StrategyKey
from rebalance_core.strategies import AllocationStrategy, parse_strategy

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import (
        ClusterEventsRow,
        CommittedOffsetsRow,
        ConsumerGroupsRow,
        EpochsRow,
        QueueOffsetsRow,
    )
    from rebalance_core.kernels.engine_options import EngineOptions

    class EventRow(ClusterEventsRow):
        """A row of `cluster_events`, with its source and raw text."""

        _source: NotRequired[str | None]
        _raw: NotRequired[str | None]

    class _HistoryRows(TypedDict, total=False):
        cluster_events: Required[list[EventRow]]
        consumer_groups: list[ConsumerGroupsRow]
        queue_offsets: list[QueueOffsetsRow]
        committed_offsets: list[CommittedOffsetsRow]


_SETTING_FIELDS = tuple(f.name for f in fields(GroupSettings))


def strategy_for(key: StrategyKey) -> AllocationStrategy:
    """Return the strategy of a (text, client version); checked input has only valid strategies."""
    return parse_strategy(key[0], version=key[1])


def history_of(
    tables: Mapping[str, pa.Table], options: EngineOptions | None = None
) -> GroupHistory:
    """Return the history of the group to which the rows belong.

    Args:
        tables: the rows of one group, by table.
        options: state whether the tables of offsets exist, which gives a missing row its meaning;
            None if they do not.
    """
    events = with_text(INPUT_TABLES["cluster_events"], tables["cluster_events"])
    tables_with_events = {**tables, "cluster_events": events}
    rows = cast(
        "_HistoryRows", {name: table.to_pylist() for name, table in tables_with_events.items()}
    )
    first = rows["cluster_events"][0]
    offsets = tuple(map(_queue_offset, rows.get("queue_offsets", [])))
    commits = tuple(map(_committed_offset, rows.get("committed_offsets", [])))
    return GroupHistory(
        cluster=first["cluster"],
        consumer_group=cast(
            "str", first["consumer_group"]
        ),  # fan_out has filled in the group of each row
        settings=_settings(rows.get("consumer_groups", [])),
        events=tuple(map(event_of, rows["cluster_events"])),
        queue_offsets=offsets if options and options.queue_offsets_given else None,
        committed_offsets=commits if options and options.committed_offsets_given else None,
    )


def _settings(rows: Iterable[ConsumerGroupsRow]) -> GroupSettings:
    values: dict[str, Any] = {
        name: value
        for row in rows
        for name, value in row.items()
        if name in _SETTING_FIELDS and value is not None
    }
    if "subscriptions" in values:
        values["subscriptions"] = tuple(values["subscriptions"])
    return GroupSettings(**values)


def event_of(row: EventRow) -> Event:
    """Return the event of a row of cluster_events."""
    subscriptions = row["subscriptions"]
    return Event(
        event_ms=row["event_ms"],
        sequence=row["sequence"],
        event_type=row["event_type"],
        client_id=row["client_id"],
        channel_id=row["channel_id"],
        topic=row["topic"],
        broker_name=row["broker_name"],
        read_queue_nums=row["read_queue_nums"],
        write_queue_nums=row["write_queue_nums"],
        perm=row["perm"],
        subscriptions=None if subscriptions is None else tuple(subscriptions),
        strategy=row["strategy"],
        detail=row["detail"],
        version=row["version"],
        message_model=row["message_model"],
        consume_from_where=row["consume_from_where"],
        rebalance_mode=row["rebalance_mode"],
        language=row["language"],
        wait_interval_ms=row["wait_interval_ms"],
        min_interval_ms=row["min_interval_ms"],
        poll_name_server_interval_ms=row["poll_name_server_interval_ms"],
        heartbeat_broker_interval_ms=row["heartbeat_broker_interval_ms"],
        persist_consumer_offset_interval_ms=row["persist_consumer_offset_interval_ms"],
        source=row.get(SOURCE),
        raw=row.get(RAW),
    )


def _queue(row: QueueOffsetsRow | CommittedOffsetsRow) -> MessageQueue:
    return MessageQueue(row["topic"], row["broker_name"], row["queue_id"])


def _queue_offset(row: QueueOffsetsRow) -> QueueOffset:
    return QueueOffset(
        _queue(row), row["observed_ms"], row["min_offset"], row["max_offset"], row["head_cached"]
    )


def _committed_offset(row: CommittedOffsetsRow) -> CommittedOffset:
    return CommittedOffset(
        _queue(row), row["client_id"], row["observed_ms"], row["committed_offset"]
    )


def begun_epochs(epochs: Iterable[EpochsRow], night_ms: int) -> set[int]:
    """Return the epochs of a group that began in the night, without its first one."""
    return {row["epoch"] for row in epochs if row["epoch"] > 0 and row["from_ms"] > night_ms}

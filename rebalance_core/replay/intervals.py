"""Run-length intervals along the epochs: ownership, memberships, load."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

from rebalance_core.model.group_settings import GroupSettings
from rebalance_core.model.ordering import java_string_key, sort_client_ids
from rebalance_core.model.queue import is_retry_topic
from rebalance_core.replay.changes import holders_by_queue
from rebalance_core.replay.history import Epoch, Replay
from rebalance_core.rules.thresholds import pull_threshold_per_queue

Row = dict[str, Any]


def ownership_rows(replay: Replay) -> list[Row]:
    """One row per unbroken holding with a constant number of holders; nobody is a row too."""

    def holdings(epoch: Epoch) -> dict[Hashable, Row]:
        held = holders_by_queue(epoch.holdings)
        rows: dict[Hashable, Row] = {
            (queue, client_id): queue._asdict() | {"client_id": client_id, "holders": count}
            for queue, holders in held.items()
            for client_id, count in holders.items()
        }
        for queues in epoch.readable.values():
            for queue in queues:
                if queue not in held:
                    rows[queue, None] = queue._asdict() | {"client_id": None, "holders": 0}
        return rows

    return _intervals(replay, holdings)


def membership_rows(replay: Replay) -> list[Row]:
    """One row per process and stretch of epochs with the same settings."""

    def members(epoch: Epoch) -> dict[Hashable, Row]:
        return {
            key: {
                "client_id": member.client_id,
                "channel_id": member.channel_id,
                "subscriptions": sorted(member.subscriptions, key=java_string_key),
                "strategy": member.strategy,
                "version": member.version,
                "message_model": member.message_model,
                "suspended": member.suspended,
            }
            for key, member in epoch.members.items()
        }

    return _intervals(replay, members)


def load_rows(replay: Replay) -> list[Row]:
    """One row per distinct client id and stretch of epochs with the same load of one process.

    Of several processes with one id the first by channel id stands for all.
    """
    settings = replay.history.settings

    def loads(epoch: Epoch) -> dict[Hashable, Row]:
        rows: dict[Hashable, Row] = {}
        for client_id in sort_client_ids({key[0] for key in epoch.members}):
            key = min((k for k in epoch.members if k[0] == client_id), key=lambda k: k[1] or "")
            row = _load(settings, [queue.topic for queue in epoch.holdings[key]])
            row |= {"client_id": client_id, "suspended": epoch.members[key].suspended}
            rows[client_id] = row
        return rows

    return _intervals(replay, loads)


def _load(settings: GroupSettings, topics: list[str]) -> Row:
    retry_queues = sum(map(is_retry_topic, topics))
    queues = len(topics) - retry_queues
    return {
        "topics": len({topic for topic in topics if not is_retry_topic(topic)}),
        "queues": queues,
        "retry_queues": retry_queues,
        "pull_threshold_for_queue": pull_threshold_per_queue(
            for_topic=settings.pull_threshold_for_topic,
            current=settings.pull_threshold_for_queue,
            process_queues=len(topics),
        ),
        "pull_threshold_size_for_queue": pull_threshold_per_queue(
            for_topic=settings.pull_threshold_size_for_topic,
            current=settings.pull_threshold_size_for_queue,
            process_queues=len(topics),
        ),
        "idle": queues == 0,
    }


def _intervals(replay: Replay, snapshot: Callable[[Epoch], Mapping[Hashable, Row]]) -> list[Row]:
    """Join equal rows of consecutive epochs.

    Args:
        replay: gives the epochs, in order.
        snapshot: epoch -> identity -> row; a row that changes or goes away ends its interval.
    """
    closed: list[Row] = []
    current: dict[Hashable, tuple[int, Row]] = {}
    for epoch in replay.epochs:
        rows = snapshot(epoch)
        ended = [key for key, (_, row) in current.items() if rows.get(key) != row]
        closed += (_interval(replay, *current.pop(key), epoch) for key in ended)
        for key, row in rows.items():
            current.setdefault(key, (epoch.number, row))
    return closed + [_interval(replay, start, row, None) for start, row in current.values()]


def _interval(replay: Replay, start: int, row: Row, end: Epoch | None) -> Row:
    return row | {
        "from_epoch": start,
        "to_epoch": None if end is None else end.number,
        "from_ms": replay.epochs[start].from_ms,
        "to_ms": None if end is None else end.from_ms,
    }


def count_shared(holders: Iterable[Mapping[str, int]]) -> int:
    """Queues held by more than one process."""
    return sum(sum(counts.values()) > 1 for counts in holders)

"""Rows by the queue that they name."""

from __future__ import annotations

from rebalance_core.audit.case import Row
from rebalance_core.model.queue import MessageQueue


def queue_of(row: Row) -> MessageQueue:
    """The queue that a row names."""
    return MessageQueue(row["topic"], row["broker_name"], row["queue_id"])


def by_topic(rows: list[Row]) -> dict[str, list[Row]]:
    """The rows of each topic, topics in order."""
    topics: dict[str, list[Row]] = {}
    for row in sorted(rows, key=queue_of):
        topics.setdefault(row["topic"], []).append(row)
    return topics

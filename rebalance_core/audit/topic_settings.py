"""Settings of a group and its topics on brokers at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rebalance_core.audit.group_snapshot import GroupSnapshot, known_topics
from rebalance_core.ingest.fact import file_of
from rebalance_core.model.events import TOPIC_DELETED
from rebalance_core.model.queue import is_retry_topic

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import GroupConfigFact, GroupTopicsRow


READ, WRITE = 4, 2


DEFAULT_PERM = READ | WRITE


def configurations(group: GroupSnapshot) -> dict[str, GroupConfigFact]:
    """Return broker -> the newest GROUP_CONFIG that still holds at the end."""
    newest: dict[str, GroupConfigFact] = {}
    for fact in sorted(group.facts["GROUP_CONFIG"], key=lambda fact: fact["last_ms"]):
        newest[fact["broker_name"]] = fact
    deleted = {fact["broker_name"]: fact["last_ms"] for fact in group.facts["GROUP_DELETED"]}
    return {
        broker: fact
        for broker, fact in newest.items()
        if fact["last_ms"] >= group.run.store_ms.get(broker, 0)
        and fact["last_ms"] >= deleted.get(broker, 0)
    }


def lacks_configuration(group: GroupSnapshot, broker_name: str) -> bool:
    """Return True if the broker's store was collected and lacks the group."""
    return broker_name in group.run.store_ms and broker_name not in configurations(group)


def is_configured_nowhere(group: GroupSnapshot) -> bool:
    """Return True if stores of brokers were collected and none has the group."""
    return bool(group.run.store_ms) and not configurations(group)


def perm_of(row: GroupTopicsRow) -> int:
    """Return the permission in a TOPIC_CONFIG row."""
    return DEFAULT_PERM if row["perm"] is None else row["perm"]


def is_deleted(row: GroupTopicsRow) -> bool:
    """Return True for the row of a deletion."""
    return row["event_type"] == TOPIC_DELETED


def unlogged_deletion(row: GroupTopicsRow) -> str | None:
    """Return the file that lacks the topic if no log has its deletion; it is dated to the file, or
    to the moment at which the broker's master changed.
    """
    source = row["source"]
    if not is_deleted(row) or source is None or ".log" in source:
        return None
    return file_of(source)


def configs(group: GroupSnapshot, topic: str) -> list[GroupTopicsRow]:
    """Return the topic's configuration at each broker that has it, brokers in order."""
    rows = [r for r in group.tables["topics"] if r["topic"] == topic and not is_deleted(r)]
    return sorted(rows, key=lambda row: row["broker_name"] or "")


def subscribed_topics(group: GroupSnapshot, *, retry: bool = False) -> list[str]:
    """Return the topics that members at the end subscribe to, in order."""
    topics = {topic for row in group.members for topic in known_topics(row)}
    return sorted(topic for topic in topics if retry or not is_retry_topic(topic))


def last_topics(group: GroupSnapshot) -> list[str]:
    """Return the topics of the members at the end, or otherwise of the last members that left."""
    if group.members:
        return subscribed_topics(group)
    ends = [row["to_ms"] for row in group.tables["memberships"] if row["to_ms"] is not None]
    last = max(ends, default=None)
    gone = (row for row in group.tables["memberships"] if ends and row["to_ms"] == last)
    return sorted({topic for row in gone for topic in known_topics(row)})


def readable_queues(group: GroupSnapshot, topic: str) -> set[tuple[str, int]]:
    """Return (broker name, queue id) of the queues that the topic's configurations make
    readable.
    """
    return {
        (row["broker_name"], queue_id)
        for row in configs(group, topic)
        if perm_of(row) & READ
        for queue_id in range(row["read_queue_nums"] or 0)
    }


def unreadable_topics(group: GroupSnapshot) -> dict[str, int]:
    """Return the topics that exist but are readable on no broker, and since when, epoch ms."""
    topics = {row["topic"] for row in group.tables["topics"]}
    return {
        topic: max(row["event_ms"] for row in configs(group, topic))
        for topic in topics
        if configs(group, topic) and not readable_queues(group, topic)
    }

"""How brokers have set up a group and its topics at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rebalance_core.audit.case import GroupCase, known_topics
from rebalance_core.model.events import TOPIC_DELETED
from rebalance_core.model.queue import is_retry_topic

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import CaseTopicsRow, GroupConfigFact


READ, WRITE = 4, 2


DEFAULT_PERM = READ | WRITE


def configurations(case: GroupCase) -> dict[str, GroupConfigFact]:
    """Broker -> the newest GROUP_CONFIG that still holds at the end."""
    newest: dict[str, GroupConfigFact] = {}
    for fact in sorted(case.facts["GROUP_CONFIG"], key=lambda one: one["last_ms"]):
        newest[fact["broker_name"]] = fact
    deleted = {fact["broker_name"]: fact["last_ms"] for fact in case.facts["GROUP_DELETED"]}
    return {
        broker: fact
        for broker, fact in newest.items()
        if fact["last_ms"] >= case.run.store_ms.get(broker, 0)
        and fact["last_ms"] >= deleted.get(broker, 0)
    }


def lacks_configuration(case: GroupCase, broker_name: str) -> bool:
    """True if the broker's store was collected and does not have the group."""
    return broker_name in case.run.store_ms and broker_name not in configurations(case)


def perm_of(row: CaseTopicsRow) -> int:
    """Permission of a TOPIC_CONFIG row."""
    return DEFAULT_PERM if row["perm"] is None else row["perm"]


def is_deleted(row: CaseTopicsRow) -> bool:
    """True for the row of a deletion."""
    return row["event_type"] == TOPIC_DELETED


def configs(case: GroupCase, topic: str) -> list[CaseTopicsRow]:
    """The topic's configuration at each broker that has it, brokers in order."""
    rows = [r for r in case.tables["topics"] if r["topic"] == topic and not is_deleted(r)]
    return sorted(rows, key=lambda row: row["broker_name"] or "")


def subscribed_topics(case: GroupCase, *, retry: bool = False) -> list[str]:
    """Topics that members at the end subscribe, in order."""
    topics = {topic for row in case.members for topic in known_topics(row)}
    return sorted(topic for topic in topics if retry or not is_retry_topic(topic))


def last_topics(case: GroupCase) -> list[str]:
    """Topics of the members at the end, else those of the members that were the last to go."""
    if case.members:
        return subscribed_topics(case)
    ends = [row["to_ms"] for row in case.tables["memberships"] if row["to_ms"] is not None]
    last = max(ends, default=None)
    gone = (row for row in case.tables["memberships"] if ends and row["to_ms"] == last)
    return sorted({topic for row in gone for topic in known_topics(row)})


def readable_queues(case: GroupCase, topic: str) -> set[tuple[str, int]]:
    """(broker name, queue id) that the topic's configurations let consumers read."""
    return {
        (row["broker_name"], queue_id)
        for row in configs(case, topic)
        if perm_of(row) & READ
        for queue_id in range(row["read_queue_nums"] or 0)
    }


def unreadable_topics(case: GroupCase) -> dict[str, int]:
    """Topics that some broker has and none lets read, and since when, epoch ms."""
    topics = {row["topic"] for row in case.tables["topics"]}
    return {
        topic: max(row["event_ms"] for row in configs(case, topic))
        for topic in topics
        if configs(case, topic) and not readable_queues(case, topic)
    }

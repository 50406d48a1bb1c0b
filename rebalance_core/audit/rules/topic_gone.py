"""TOPIC_GONE: a topic that the group reads was deleted."""

from __future__ import annotations

from collections.abc import Iterator

from rebalance_core.audit.case import Finding, GroupCase, Rule, listed
from rebalance_core.audit.dumps import is_deleted, last_topics
from rebalance_core.model.events import TOPIC_DELETED
from rebalance_core.model.times import utc
from rebalance_core.model.verdicts import INFO, WARNING


def find(case: GroupCase) -> Iterator[Finding]:
    """One finding for each topic of the last members that was deleted from a broker (no. 27)."""
    for topic in last_topics(case):
        deleted = _deletions(case, topic)
        if deleted:
            yield _finding(case, topic, deleted)


def _deletions(case: GroupCase, topic: str) -> dict[str, int]:
    """Broker -> when the topic was deleted there, whatever came after."""
    brokers = {
        row["broker_name"]: row["event_ms"]
        for row in case.rows("topics")
        if row["topic"] == topic and is_deleted(row)
    }
    moments = {
        row["epoch"]: row["from_ms"] for row in case.epochs if TOPIC_DELETED in row["causes"]
    }
    still = {row["broker_name"]: row["event_ms"] for row in case.rows("topics")
             if row["topic"] == topic and not is_deleted(row)}  # fmt: skip
    for row in case.rows("ownership"):
        if row["topic"] == topic and row["to_epoch"] in moments:
            broker, at_ms = row["broker_name"], moments[row["to_epoch"]]
            if still.get(broker, at_ms) >= at_ms:
                brokers.setdefault(broker, at_ms)
    return brokers


def _finding(case: GroupCase, topic: str, deleted: dict[str, int]) -> Finding:
    there = {row["broker_name"]: row["event_ms"] for row in case.rows("topics")
             if row["topic"] == topic and not is_deleted(row)}  # fmt: skip
    first = min(deleted.values())
    kept = sorted(there.keys() - deleted.keys())
    again = sorted(there.keys() & deleted.keys())
    who = (
        f"subscribed by {listed(sorted({row['client_id'] for row in case.members}), 3)}"
        if case.members
        else "which the group's last members subscribed"
    )
    rest = f"; {listed(kept, 3)} still has it" if kept else ""
    rest += f"; {listed(again, 3)} has it again, or the route does" if again else ""
    back = case.members and len(again) == len(deleted)
    return Finding(
        f"{topic}, {who}, was deleted from {listed(sorted(deleted), 5)} at {utc(first)}{rest}.",
        {"deleted_from": listed(sorted(deleted)), "still_on": listed(kept), "again": listed(again)},
        severity=INFO if back else WARNING,
        topic=topic,
        broker_name=next(iter(deleted)) if len(deleted) == 1 else None,
        first_ms=first,
    )


RULE = Rule(
    "TOPIC_GONE",
    WARNING,
    "A topic that the group subscribes was deleted. Members keep the queues they had and pull "
    "them in vain; for the rest nothing of it is delivered.",
    "topics and epochs (TOPIC_DELETED), memberships",
    "If it was a mistake, create the topic again with the same number of queues. If some brokers "
    "or a name server still have it, delete it there too (deleteTopic). Else take the subscription "
    "out of the consumers and delete the group's offsets.",
    find,
)

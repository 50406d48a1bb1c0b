"""Topics that a group reads and that were deleted."""

from __future__ import annotations

from collections.abc import Iterator

from rebalance_core.audit.group_snapshot import (
    Finding,
    GroupSnapshot,
    Rule,
    listed,
)
from rebalance_core.audit.subjects import MEMBERS, TOPICS
from rebalance_core.audit.topic_settings import (
    is_deleted,
    last_topics,
    unlogged_deletion,
)
from rebalance_core.model.times import utc
from rebalance_core.model.verdicts import WARNING


def find_topic_gone(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield a finding for each deleted topic of the last members (no. 27)."""
    for topic in last_topics(group):
        deleted = deletions_of(group, topic)
        if deleted:
            yield _finding(group, topic, deleted)


def deletions_of(group: GroupSnapshot, topic: str) -> dict[str, int]:
    """Return broker -> when the topic was last deleted there, whatever came later.

    If the broker has the topic again, the deletion counts if the group subscribed to it by that
    time.
    """
    had_ms = min(
        (r["from_ms"] for r in group.tables["ownership"] if r["topic"] == topic), default=None
    )
    deleted = {}
    for row in group.tables["topics"]:
        at_ms = row["deleted_ms"] if row["topic"] == topic else None
        if at_ms is None:
            continue
        if is_deleted(row) or (had_ms is not None and had_ms <= at_ms):
            deleted[row["broker_name"]] = at_ms
    return deleted


def _finding(group: GroupSnapshot, topic: str, deleted: dict[str, int]) -> Finding:
    present = {
        row["broker_name"]: row["event_ms"]
        for row in group.tables["topics"]
        if row["topic"] == topic and not is_deleted(row)
    }
    first = min(deleted.values())
    kept = sorted(present.keys() - deleted.keys())
    again = sorted(present.keys() & deleted.keys())
    who = (
        f"subscribed by {listed(sorted({row['client_id'] for row in group.members}), 3)}"
        if group.members
        else "to which the group's last members subscribed"
    )
    rest = f"; {listed(kept, 3)} still has it" if kept else ""
    rest += f"; {listed(again, 3)} has it again, or its route includes it again" if again else ""
    back = group.members and len(again) == len(deleted)
    unlogged = {
        row["broker_name"]: file
        for row in group.tables["topics"]
        if row["topic"] == topic and (file := unlogged_deletion(row)) is not None
    }
    what = f"was deleted from {listed(sorted(deleted), 5)} at {utc(first)}"
    if unlogged:
        of_some = (
            f" from {listed(sorted(unlogged), 5)}" if unlogged.keys() != deleted.keys() else ""
        )
        files = listed(sorted({*unlogged.values()}), 2)
        what = f"was gone from {listed(sorted(deleted), 5)} by {utc(first)} "
        what += f"({files}; no log shows its deletion{of_some})"
    return Finding(
        f"{topic}, {who}, {what}{rest}.",
        {"deleted_from": listed(sorted(deleted)), "still_on": listed(kept), "again": listed(again)},
        topic=topic,
        broker_name=next(iter(deleted)) if len(deleted) == 1 else None,
        first_ms=first,
        last_ms=max(present[broker] for broker in again) if back else None,
        ended_by=f"it is on {listed(again, 3)} again" if back else "",
    )


TOPIC_GONE = Rule(
    "TOPIC_GONE",
    WARNING,
    "A topic that the group subscribes to was deleted. Members keep its queues, but their pulls "
    "fail.",
    "topics and epochs (TOPIC_DELETED), memberships",
    "If it was a mistake, create the topic again with the same number of queues. If some brokers "
    "or a name server still have it, delete it there too (deleteTopic). Otherwise remove the "
    "subscription from the consumers and the group's offsets.",
    find_topic_gone,
    reads=(TOPICS, MEMBERS),
    state=True,
)

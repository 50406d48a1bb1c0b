"""Members that hold no queue."""

from __future__ import annotations

from collections.abc import Iterator

from rebalance_core.audit.group_snapshot import (
    Finding,
    GroupSnapshot,
    Rule,
    listed,
    plural,
)
from rebalance_core.audit.stretches import has_settled, span_of
from rebalance_core.audit.subjects import MEMBERS, TOPICS
from rebalance_core.audit.subscriptions import assigned_members, is_broadcasting
from rebalance_core.audit.topic_readers import shared_topics
from rebalance_core.audit.topic_settings import subscribed_topics
from rebalance_core.model.verdicts import FROZEN, WARNING

BY_DESIGN = ("CONFIG", "MACHINE_ROOM")
"""Strategies with idle members by design: CONFIG gives each member its share; lists and rooms have
their own rules."""


def find_idle_member(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield a finding for all members without a queue at the end."""
    last = group.last_epoch
    if is_broadcasting(group) or last is None or last["status"] == FROZEN:
        return
    processes = {row["client_id"]: row for row in group.members}
    assigned, idle = assigned_members(group), []
    for row in group.tables["consumer_load"]:
        member = processes.get(row["client_id"])
        if row["to_ms"] is not None or not row["idle"] or row["suspended"] or member is None:
            continue
        if row["client_id"] in assigned:
            continue
        if not member["strategy"].startswith(BY_DESIGN) and has_settled(group, span_of(row).epoch):
            idle.append(row)
    if idle:
        yield _idle_member_finding(
            group, sorted(row["client_id"] for row in idle), min(row["from_ms"] for row in idle)
        )


def _idle_member_finding(group: GroupSnapshot, idle: list[str], first_ms: int) -> Finding:
    shared = shared_topics(group)
    sizes = {topic: 0 for topic in subscribed_topics(group) if topic not in shared}
    for queue in {(r["topic"], r["broker_name"], r["queue_id"]) for r in group.owned}:
        if queue[0] in sizes:
            sizes[queue[0]] += 1
    members = len(group.members)
    crowded = all(members > count for count in sizes.values())
    shown = [f"{topic} {plural(count, 'queue')}" for topic, count in sizes.items()]
    why = (
        f"{plural(members, 'member')} share {listed(shown, 5)}"
        if crowded
        else (
            f"the strategy assigns them no queue of {listed(shown, 5)} although there are enough "
            "queues"
        )
    )
    return Finding(
        f"{plural(len(idle), 'member')} of {members} without a queue: {listed(idle, 5)}; {why}.",
        {"idle": listed(idle), "members": str(members), "queues": listed(shown)},
        client_id=idle[0] if len(idle) == 1 else None,
        topic=next(iter(sizes)) if len(sizes) == 1 else None,
        first_ms=first_ms,
    )


IDLE_MEMBER = Rule(
    "IDLE_MEMBER",
    WARNING,
    "Only one member at a time pulls a queue, so members beyond the number of queues are idle.",
    "consumer_load, memberships, ownership",
    "Add queues to the topic (updateTopic with more read and write queues), or stop the idle "
    "members. Accept the finding if they are spares.",
    find_idle_member,
    by_owners=True,
    reads=(TOPICS, MEMBERS),
)

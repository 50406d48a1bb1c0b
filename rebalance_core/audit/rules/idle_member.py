"""IDLE_MEMBER: members that hold no queue."""

from __future__ import annotations

from collections.abc import Iterator

from rebalance_core.audit.case import Finding, GroupCase, Rule, listed, plural
from rebalance_core.audit.dumps import subscribed_topics
from rebalance_core.audit.orphans import has_settled, is_broadcasting, span_of
from rebalance_core.audit.subscriptions import assigned_members, shared_topics
from rebalance_core.model.verdicts import FROZEN, WARNING

BY_DESIGN = ("CONFIG", "MACHINE_ROOM")
"""What a member gets is what it was told to; rooms and lists have rules of their own."""


def find(case: GroupCase) -> Iterator[Finding]:
    """One finding for all members without a queue at the end (rocketmq.md §11 no. 6)."""
    last = case.last_epoch
    if is_broadcasting(case) or last is None or last["status"] == FROZEN:
        return
    processes = {row["client_id"]: row for row in case.members}
    assigned, idle = assigned_members(case), []
    for row in case.rows("consumer_load"):
        member = processes.get(row["client_id"])
        if row["to_ms"] is not None or not row["idle"] or row["suspended"] or member is None:
            continue
        if row["client_id"] in assigned:
            continue
        if not member["strategy"].startswith(BY_DESIGN) and has_settled(case, span_of(row).epoch):
            idle.append(row)
    if idle:
        yield _finding(case, sorted(row["client_id"] for row in idle),
                       min(row["from_ms"] for row in idle))  # fmt: skip


def _finding(case: GroupCase, idle: list[str], first_ms: int) -> Finding:
    shared = shared_topics(case)
    sizes = {topic: 0 for topic in subscribed_topics(case) if topic not in shared}
    for queue in {(r["topic"], r["broker_name"], r["queue_id"]) for r in case.owned}:
        if queue[0] in sizes:
            sizes[queue[0]] += 1
    members = len(case.members)
    crowded = all(members > count for count in sizes.values())
    shown = [f"{topic} {plural(count, 'queue')}" for topic, count in sizes.items()]
    why = (
        f"{plural(members, 'member')} share {listed(shown, 5)}"
        if crowded
        else f"the strategy gives them none of {listed(shown, 5)} although there are enough"
    )
    return Finding(
        f"{plural(len(idle), 'member')} of {members} without a queue: {listed(idle, 5)}; {why}.",
        {"idle": listed(idle), "members": str(members), "queues": listed(shown)},
        client_id=idle[0] if len(idle) == 1 else None,
        topic=next(iter(sizes)) if len(sizes) == 1 else None,
        first_ms=first_ms,
    )


RULE = Rule(
    "IDLE_MEMBER",
    WARNING,
    "A queue is pulled by one member at a time, so members beyond the number of queues hold "
    "nothing and do nothing. Who pops a shared topic is not idle, nor who reads queues that the "
    "application names.",
    "consumer_load (idle), memberships, ownership",
    "Add queues to the topic (updateTopic with more read and write queues), or stop the idle "
    "members. If they are meant as spares, accept this finding.",
    find,
    by_owners=True,
)

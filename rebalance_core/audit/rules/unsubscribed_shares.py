"""Shares of members that unsubscribed at runtime, which no client reads."""

from __future__ import annotations

from collections.abc import Iterator

from rebalance_core.audit.dumps import queue_of
from rebalance_core.audit.group_snapshot import (
    Finding,
    GroupSnapshot,
    Rule,
    listed,
    plural,
    queue_names,
)
from rebalance_core.audit.offsets import Offsets, messages
from rebalance_core.audit.stretches import (
    has_settled,
)
from rebalance_core.audit.subjects import MEMBERS
from rebalance_core.audit.subscriptions import (
    Unsubscribed,
    is_broadcasting,
    subscribers,
    unsubscribed,
)
from rebalance_core.audit.topic_readers import shared_topics
from rebalance_core.model.times import utc
from rebalance_core.model.verdicts import ERROR, WARNING


def find_unsubscribed_share(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield a finding for each topic that others still subscribe to (rocketmq.md §6.4)."""
    if is_broadcasting(group):
        return
    shared = shared_topics(group)  # queues that no member may pop are POP_UNREACHED_QUEUE
    by_topic: dict[str, list[Unsubscribed]] = {}
    for member in unsubscribed(group):
        if member.topic in shared:
            continue
        if subscribers(group, member.topic) and has_settled(group, member.epoch):
            by_topic.setdefault(member.topic, []).append(member)
    for topic, members in by_topic.items():
        yield _unsubscribed_share_finding(group, topic, members)


def _unsubscribed_share_finding(
    group: GroupSnapshot, topic: str, members: list[Unsubscribed]
) -> Finding:
    unread = [r for r in group.owned if r["topic"] == topic and r["client_id"] is None]
    queues = queue_names((row["broker_name"], row["queue_id"]) for row in unread)
    behind = Offsets(group).behind(queue_of(row) for row in unread)
    ids = sorted({member.client_id for member in members})
    others = sorted({row["client_id"] for row in subscribers(group, topic)})
    share = (
        f"its share of {plural(len(unread), 'queue')} has no reader: {queues}"
        if unread
        else "every queue in it has a reader at the moment"
    )
    return Finding(
        f"{listed(ids, 3)} unsubscribed {topic} at {utc(members[0].since_ms)} and still counts as "
        f"its member; {share} ({messages(behind)} behind).",
        {"unsubscribed_by": listed(ids), "still_subscribed_by": listed(others), "queues": queues},
        severity=ERROR if unread else WARNING,
        topic=topic,
        client_id=ids[0] if len(ids) == 1 else None,
        first_ms=min(member.since_ms for member in members),
    )


UNSUBSCRIBED_SHARE = Rule(
    "UNSUBSCRIBED_SHARE",
    ERROR,
    "A member called unsubscribe() on a topic that other members of its group still subscribe to. "
    "It still gets a share of that topic, and no client reads that share.",
    "memberships and epochs (UNSUBSCRIBE), ownership",
    "Restart or stop the named member. As a lasting fix, remove the topic from all members "
    "together, or move it into its own group.",
    find_unsubscribed_share,
    by_owners=True,
    reads=(MEMBERS,),
)

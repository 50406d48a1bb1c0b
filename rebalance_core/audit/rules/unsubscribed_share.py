"""UNSUBSCRIBED_SHARE: a member unsubscribed at runtime, nobody reads its computed share."""

from __future__ import annotations

from collections.abc import Iterator

from rebalance_core.audit.case import Finding, GroupCase, Rule, listed, plural, queue_names
from rebalance_core.audit.dumps import queue_of
from rebalance_core.audit.orphans import (
    Offsets,
    has_settled,
    is_broadcasting,
    messages,
    subscribers,
)
from rebalance_core.audit.subscriptions import Unsubscribed, shared_topics, unsubscribed
from rebalance_core.model.times import utc
from rebalance_core.model.verdicts import ERROR, WARNING


def find(case: GroupCase) -> Iterator[Finding]:
    """One finding a topic that others still subscribe (rocketmq.md §6.4, §11 no. 3)."""
    if is_broadcasting(case):
        return
    shared = shared_topics(case)  # what nobody may pop of them is POP_UNREACHED_QUEUE
    by_topic: dict[str, list[Unsubscribed]] = {}
    for one in unsubscribed(case):
        if one.topic in shared:
            continue
        if subscribers(case, one.topic) and has_settled(case, one.epoch):
            by_topic.setdefault(one.topic, []).append(one)
    for topic, members in by_topic.items():
        yield _finding(case, topic, members)


def _finding(case: GroupCase, topic: str, members: list[Unsubscribed]) -> Finding:
    unread = [r for r in case.owned if r["topic"] == topic and r["client_id"] is None]
    queues = queue_names((row["broker_name"], row["queue_id"]) for row in unread)
    behind = Offsets(case).behind(queue_of(row) for row in unread)
    ids = sorted({one.client_id for one in members})
    others = sorted({row["client_id"] for row in subscribers(case, topic)})
    share = (
        f"its share of {plural(len(unread), 'queue')} is read by nobody: {queues}"
        if unread
        else "no queue of it is without a reader at the moment"
    )
    return Finding(
        f"{listed(ids, 3)} unsubscribed {topic} at {utc(members[0].since_ms)} and still counts "
        f"as a member for it; {share} ({messages(behind)} behind).",
        {"unsubscribed_by": listed(ids), "still_subscribed_by": listed(others), "queues": queues},
        severity=ERROR if unread else WARNING,
        topic=topic,
        client_id=ids[0] if len(ids) == 1 else None,
        first_ms=min(one.since_ms for one in members),
    )


RULE = Rule(
    "UNSUBSCRIBED_SHARE",
    ERROR,
    "A member called unsubscribe() on a topic that others of its group still subscribe. Members "
    "are counted by group, so it still gets a share of that topic, and nobody reads it.",
    "memberships and epochs (UNSUBSCRIBE), ownership",
    "Restart or stop the member named: its share is read again at once. For good: let all members "
    "drop the topic together, or move the topic into a group of its own.",
    find,
    by_owners=True,
)

"""Members that hold far more queues than others."""

from __future__ import annotations

from collections.abc import Iterator

from rebalance_core.audit.group_snapshot import (
    Finding,
    GroupSnapshot,
    Rule,
    known_topics,
    listed,
)
from rebalance_core.audit.stretches import has_settled
from rebalance_core.audit.subjects import MEMBERS, TOPICS
from rebalance_core.audit.subscriptions import is_broadcasting
from rebalance_core.audit.topic_readers import shared_topics
from rebalance_core.audit.topic_settings import subscribed_topics
from rebalance_core.model.queue import java_string_key
from rebalance_core.model.verdicts import FROZEN, WARNING

SKEW_TOPICS = 3
SKEW_RATIO = 1.5
SKEW_QUEUES = 3
HASH_RATIO = 2.0
HASH_QUEUES = 2
"""At this ratio or above, a remainder does not explain the difference between members."""


def find_skew(group: GroupSnapshot) -> Iterator[Finding]:
    """Find topics whose remainder falls to the first members of the list (rocketmq.md §2.2)."""
    loads = _loads(group, "AVG")
    shared = shared_topics(group)  # their queues are in no member's load
    topics = [topic for topic in subscribed_topics(group) if topic not in shared]
    if len(loads) < 2 or len(topics) < SKEW_TOPICS:
        return
    if any(known_topics(row) - shared.keys() != set(topics) for row in group.members):
        return
    ranked = sorted(loads, key=java_string_key)
    sizes = [loads[client_id] for client_id in ranked]
    mean = sum(sizes) / len(sizes)
    high, low = max(sizes), min(sizes)
    half = len(sizes) // 2
    first_hold_more = sum(sizes[:half]) * (len(sizes) - half) > sum(sizes[half:]) * half
    if low and high >= SKEW_RATIO * mean and high - low >= SKEW_QUEUES and first_hold_more:
        heavy = [client_id for client_id in ranked if loads[client_id] == high]
        light = [client_id for client_id in ranked if loads[client_id] == low]
        yield Finding(
            f"The remainder of {len(topics)} topics falls to the first members of the list: "
            f"{listed(heavy, 3)} hold {high} queues each, {listed(light, 3)} hold {low}, the mean "
            f"is {mean:.1f}.",
            {"topics": listed(topics), "loads": listed(f"{c}={loads[c]}" for c in ranked)},
        )


def find_hash(group: GroupSnapshot) -> Iterator[Finding]:
    """Find CONSISTENT_HASH rings with a peak of twice the mean (rocketmq.md §2.7)."""
    loads = _loads(group, "CONSISTENT_HASH")
    queues = sum(loads.values())
    if len(loads) < 2 or not queues:
        return
    mean, high = queues / len(loads), max(loads.values())
    if high >= HASH_RATIO * mean and high >= mean + HASH_QUEUES:
        heavy = sorted(client_id for client_id in loads if loads[client_id] == high)
        yield Finding(
            f"The hash ring assigns {listed(heavy, 3)} {high} of {queues} queues; the mean of "
            f"{len(loads)} members is {mean:.1f}.",
            {
                "loads": listed(f"{c}={n}" for c, n in sorted(loads.items())),
                "strategy": listed(sorted({row["strategy"] for row in group.members})),
            },
            client_id=heavy[0] if len(heavy) == 1 else None,
        )


def _loads(group: GroupSnapshot, strategy: str) -> dict[str, int]:
    """Return the queues of each member at the end; empty unless all use this settled strategy."""
    last = group.last_epoch
    if last is None or last["status"] == FROZEN or is_broadcasting(group):
        return {}
    # a Go member's strategy is a ring, too
    names = {row["strategy"].partition("(")[0].removeprefix("GO_") for row in group.members}
    ids = [row["client_id"] for row in group.members]
    if names != {strategy} or len(ids) > len(set(ids)) or not has_settled(group, last["epoch"]):
        return {}
    rows = group.tables["consumer_load"]
    return {row["client_id"]: row["queues"] for row in rows if row["to_ms"] is None}


SKEW = Rule(
    "SURPLUS_SKEW",
    WARNING,
    "AVG assigns the remainder of each topic to the first members of the sorted list. With many "
    "topics that do not divide evenly, the same members always own more queues.",
    "consumer_load, memberships",
    "Make each topic's queue count a multiple of the member count, use AVG_BY_CIRCLE or "
    "CONSISTENT_HASH, or spread the topics over several groups.",
    find_skew,
    by_owners=True,
    reads=(TOPICS, MEMBERS),
)
HASH = Rule(
    "HASH_IMBALANCE",
    WARNING,
    "CONSISTENT_HASH places few points per member on its ring, so shares differ widely.",
    "consumer_load, memberships",
    "Raise the number of virtual nodes in all members at once (100 or more), or use AVG if "
    "members rarely change.",
    find_hash,
    by_owners=True,
    reads=(TOPICS, MEMBERS),
)

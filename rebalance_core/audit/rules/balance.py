"""Members without a queue, and queues that are divided unevenly."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rebalance_core.audit.group_snapshot import (
    Finding,
    GroupSnapshot,
    Rule,
    known_topics,
    listed,
    plural,
    queue_names,
)
from rebalance_core.audit.offsets import Offsets, messages
from rebalance_core.audit.stretches import has_settled, span_of
from rebalance_core.audit.subjects import MEMBERS, TOPICS
from rebalance_core.audit.subscriptions import (
    assigned_members,
    is_broadcasting,
    reach,
    readers,
    request_mode,
    shared_topics,
)
from rebalance_core.audit.topic_settings import readable_queues, subscribed_topics
from rebalance_core.model.group_settings import BROKER_STRATEGIES
from rebalance_core.model.queue import MessageQueue, java_string_key
from rebalance_core.model.verdicts import ERROR, FROZEN, WARNING
from rebalance_core.strategies.pop import WHOLE_BROKER

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import PopMetricsRow

# SURPLUS_SKEW and HASH_IMBALANCE: some members hold far more than others.

SKEW_TOPICS = 3
SKEW_RATIO = 1.5
SKEW_QUEUES = 3
HASH_RATIO = 2.0
HASH_QUEUES = 2
"""From here on members differ by more than a division with remainder explains."""


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
            f"The hash ring gives {listed(heavy, 3)} {high} of {queues} queues; the mean of "
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
    # a Go member's ring is one, too
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


# IDLE_MEMBER: members that hold no queue.

BY_DESIGN = ("CONFIG", "MACHINE_ROOM")
"""A member's share is configured; rooms and lists have rules of their own."""


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
        yield _idle_member_finding(group, sorted(row["client_id"] for row in idle),
                       min(row["from_ms"] for row in idle))  # fmt: skip


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
        else f"the strategy assigns them none of {listed(shown, 5)} although there are enough"
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


# POP_UNREACHED_QUEUE: queues of a shared topic that no member may take messages from.


def find_unreached_queues(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield a finding for each topic with such queues at the end, once it has settled."""
    for topic, metrics in shared_topics(group).items():
        if metrics["unreached"]:
            since = _since(group, topic)
            if has_settled(group, since["epoch"]):
                yield _unreached_queues_finding(
                    group, topic, metrics["unreached"], _epoch_ms(group, since)
                )


def _since(group: GroupSnapshot, topic: str) -> PopMetricsRow:
    """Return the row of pop_metrics that begins the last stretch of unreached queues."""
    rows = [row for row in group.tables["pop_metrics"] if row["topic"] == topic]
    rows.sort(key=lambda row: row["epoch"], reverse=True)
    since = rows[0]
    for row in rows[1:]:
        if not row["unreached"] or row["epoch"] != since["epoch"] - 1:
            break
        since = row
    return since


def _epoch_ms(group: GroupSnapshot, metrics: PopMetricsRow) -> int:
    return next(int(row["from_ms"]) for row in group.epochs if row["epoch"] == metrics["epoch"])


def _unreached_queues_finding(
    group: GroupSnapshot, topic: str, unreached: int, since_ms: int
) -> Finding:
    queues = _queues(group, topic, unreached)
    names = queue_names((queue.broker_name, queue.queue_id) for queue in queues)
    behind = Offsets(group).behind(queues)
    mode = request_mode(group, topic, group.run.end_ms)
    foreign = sorted(
        {row["strategy"] for row in group.members} - set(BROKER_STRATEGIES)
        if readers(group, topic).poppers
        else ()
    )
    why = f"; brokers do not know the strategy {listed(foreign, 3)}" if foreign else ""
    return Finding(
        f"No member may take messages of {plural(unreached, 'queue')} of {topic}"
        f"{f' ({names})' if names else ''}: {messages(behind)} behind{why}.",
        {
            "queues": names or "unknown",
            "mode": "PULL" if mode is None else mode["detail"],
            "behind": "unknown" if behind is None else str(behind),
        },
        topic=topic,
        first_ms=since_ms,
    )


def _queues(group: GroupSnapshot, topic: str, unreached: int) -> list[MessageQueue]:
    """Name the queues; nothing where the topic's configuration at the end does not tell."""
    reached = {
        (row["broker_name"], row["queue_id"]) for row in reach(group) if row["topic"] == topic
    }
    queues = [
        MessageQueue(topic, broker, queue_id)
        for broker, queue_id in sorted(readable_queues(group, topic) - reached)
        if (broker, WHOLE_BROKER) not in reached
    ]
    return queues if len(queues) == unreached else []


UNREACHED_QUEUES = Rule(
    "POP_UNREACHED_QUEUE",
    ERROR,
    "Members share a topic's queues, but no member may take messages from some of them, so those "
    "messages wait: the broker was asked for a strategy other than AVG and AVG_BY_CIRCLE, or it "
    "counts a member that does not subscribe to the topic.",
    "pop_metrics, pop_reach, memberships",
    "Use AVG or AVG_BY_CIRCLE and the same subscription in all members that ask the broker, or "
    "let every member pop every queue (mqadmin setConsumeMode -q 0).",
    find_unreached_queues,
    reads=(TOPICS, MEMBERS),
)

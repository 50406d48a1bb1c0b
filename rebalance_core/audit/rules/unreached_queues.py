"""Queues of a shared topic that no member may take messages from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rebalance_core.audit.group_snapshot import (
    Finding,
    GroupSnapshot,
    Rule,
    listed,
    plural,
    queue_names,
)
from rebalance_core.audit.offsets import Offsets, messages
from rebalance_core.audit.stretches import has_settled
from rebalance_core.audit.subjects import MEMBERS, TOPICS
from rebalance_core.audit.topic_readers import reach, readers, request_mode, shared_topics
from rebalance_core.audit.topic_settings import readable_queues
from rebalance_core.model.group_settings import BROKER_STRATEGIES
from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.verdicts import ERROR
from rebalance_core.strategies.pop import WHOLE_BROKER

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import PopMetricsRow


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
    """Name the queues; nothing if the topic's configuration at the end is unknown."""
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

"""The group's retry topic: how members share it, and its unread queues."""

from __future__ import annotations

from collections.abc import Iterator

from rebalance_core.audit import dumps
from rebalance_core.audit.dumps import number
from rebalance_core.audit.group_snapshot import (
    BROKER,
    Finding,
    GroupSnapshot,
    Rule,
    listed,
    plural,
)
from rebalance_core.audit.offsets import Offsets, messages
from rebalance_core.audit.subjects import MEMBERS, TOPICS
from rebalance_core.audit.subscriptions import is_broadcasting
from rebalance_core.audit.topic_readers import shared_topics
from rebalance_core.audit.topic_settings import (
    configs,
    configurations,
    subscribed_topics,
)
from rebalance_core.model.queue import MessageQueue, retry_topic
from rebalance_core.model.verdicts import INFO, WARNING


def find_imbalance(group: GroupSnapshot) -> Iterator[Finding]:
    """Find more members than retry queues, unless offsets show that no retry waits (no. 23).

    No finding if every topic is shared, because popped messages are retried through the pop retry
    topic.
    """
    topic = retry_topic(group.consumer_group)
    queues = {dumps.queue_of(row) for row in group.owned if row["topic"] == topic}
    members = {row["client_id"] for row in group.members}
    if is_broadcasting(group) or not queues or len(members) <= len(queues):
        return
    behind = Offsets(group).behind(queues)
    if behind == 0 or shared_topics(group).keys() >= set(subscribed_topics(group)):
        return
    readers = {r["client_id"] for r in group.owned if r["topic"] == topic and r["client_id"]}
    if not readers:
        return
    verb = "handles" if len(readers) == 1 else "handle"
    yield Finding(
        f"{plural(len(members), 'member')} share {plural(len(queues), 'retry queue')}: only "
        f"{plural(len(readers), 'member')} {verb} retries ({messages(behind)} waiting).",
        {"readers": listed(sorted(readers)), "members": str(len(members))},
        topic=topic,
    )


def find_unread(group: GroupSnapshot) -> Iterator[Finding]:
    """Find retry queues that the broker fills but consumers may not read (rocketmq.md §3.4)."""
    topic = retry_topic(group.consumer_group)
    read = {row["broker_name"]: row["read_queue_nums"] or 0 for row in configs(group, topic)}
    for broker, fact in sorted(configurations(group).items()):
        filled = number(fact["details"].get("retry_queue_nums"))
        if broker in read and filled > read[broker]:
            unread = (MessageQueue(topic, broker, n) for n in range(read[broker], filled))
            stored = Offsets(group).stored(unread)
            yield Finding(
                f"{broker} spreads retries over {plural(filled, 'queue')} (retryQueueNums), and "
                f"{topic} has {read[broker]} to read there: {messages(stored)} in the rest.",
                {"retry_queue_nums": str(filled), "read_queue_nums": str(read[broker])},
                topic=topic,
                broker_name=broker,
                first_ms=fact["first_ms"],
            )


IMBALANCE = Rule(
    "RETRY_IMBALANCE",
    INFO,
    "The retry topic has one queue per broker, so only as many members as there are brokers "
    "consume failed messages.",
    "memberships, ownership, queue_offsets",
    "Usually nothing. If retries pile up, raise the group's retryQueueNums and the read queues of "
    "its %RETRY% topic together.",
    find_imbalance,
    by_owners=True,
    reads=(MEMBERS,),
)


UNREAD = Rule(
    "RETRY_QUEUES_UNREAD",
    WARNING,
    "The group's retryQueueNums exceeds the read queues of its %RETRY% topic: brokers put failed "
    "messages into queues that no consumer may read.",
    "GROUP_CONFIG, topics",
    "Raise the read queues of %RETRY%<group> on the named broker (updateTopic -r), or lower "
    "retryQueueNums (updateSubGroup -q).",
    find_unread,
    by_absence=True,
    about=BROKER,
    reads=(TOPICS,),
)

"""RETRY_IMBALANCE and RETRY_QUEUES_UNREAD: the group's retry topic."""

from __future__ import annotations

from collections.abc import Iterator

from rebalance_core.audit.case import BROKER, Finding, GroupCase, Rule, listed, plural
from rebalance_core.audit.dumps import configs, configurations, number, queue_of, subscribed_topics
from rebalance_core.audit.orphans import Offsets, is_broadcasting, messages
from rebalance_core.audit.subscriptions import shared_topics
from rebalance_core.model.queue import MessageQueue, retry_topic
from rebalance_core.model.verdicts import INFO, WARNING


def find_imbalance(case: GroupCase) -> Iterator[Finding]:
    """More members than retry queues; silent where offsets show that no retry waits (no. 23).

    Silent also where every topic is shared: what is popped is retried by the pop retry topic.
    """
    topic = retry_topic(case.consumer_group)
    queues = {queue_of(row) for row in case.owned if row["topic"] == topic}
    members = {row["client_id"] for row in case.members}
    if is_broadcasting(case) or not queues or len(members) <= len(queues):
        return
    behind = Offsets(case).behind(queues)
    if behind == 0 or shared_topics(case).keys() >= set(subscribed_topics(case)):
        return
    readers = {r["client_id"] for r in case.owned if r["topic"] == topic and r["client_id"]}
    if not readers:
        return
    yield Finding(
        f"{plural(len(members), 'member')} share {plural(len(queues), 'retry queue')}: retries "
        f"are the work of {plural(len(readers), 'member')} ({messages(behind)} waiting).",
        {"readers": listed(sorted(readers)), "members": str(len(members))},
        topic=topic,
    )


def find_unread(case: GroupCase) -> Iterator[Finding]:
    """Retry queues that the broker fills and nobody may read (rocketmq.md §11 no. 23)."""
    topic = retry_topic(case.consumer_group)
    read = {row["broker_name"]: row["read_queue_nums"] or 0 for row in configs(case, topic)}
    for broker, fact in sorted(configurations(case).items()):
        filled = number(fact, "retry_queue_nums")
        if broker in read and filled > read[broker]:
            unread = (MessageQueue(topic, broker, n) for n in range(read[broker], filled))
            stored = Offsets(case).stored(unread)
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
    "The retry topic has one queue per broker, so only as many members as there are brokers work "
    "on failed messages.",
    "memberships, ownership, queue_offsets",
    "Mostly nothing. If retries pile up, raise retryQueueNums of the group and the read queues of "
    "its %RETRY% topic together.",
    find_imbalance,
    by_owners=True,
)
UNREAD = Rule(
    "RETRY_QUEUES_UNREAD",
    WARNING,
    "The group's retryQueueNums is larger than the read queues of its %RETRY% topic: failed "
    "messages go to queues that nobody may read.",
    "facts GROUP_CONFIG (retry_queue_nums), topics",
    "Raise the read queues of %RETRY%<group> on the broker named (updateTopic -r), or lower "
    "retryQueueNums (updateSubGroup -q).",
    find_unread,
    about=BROKER,
)

"""PROXY_GROUP_UNSEEN: offsets advance, and no file names a member of the group."""

from __future__ import annotations

from collections.abc import Iterator

from rebalance_core.audit.case import GroupCase
from rebalance_core.audit.evidence.formatting import listed, plural
from rebalance_core.audit.evidence.unseen import unseen_reading
from rebalance_core.audit.finding import Finding, Rule
from rebalance_core.model.severities import INFO, WARNING
from rebalance_core.model.time_text import utc


def find(case: GroupCase) -> Iterator[Finding]:
    """One finding a group (rocketmq.md §14)."""
    reading = unseen_reading(case)
    if reading is None:
        return
    topics = sorted({queue.topic for queue in reading.queues})
    denied = reading.denied_by
    says = f"; {listed(denied, 3)} say that nobody is online" if denied else ""
    pops = f"; it pops: {listed(reading.retry_topics, 3)} has offsets" if (
        reading.retry_topics
    ) else ""  # fmt: skip
    yield Finding(
        f"Offsets of {plural(len(reading.queues), 'queue')} of {listed(topics, 5)} advanced from "
        f"{utc(reading.first_ms)} to {utc(reading.last_ms)}, and no log or dump names a member of "
        f"{case.consumer_group}{says}{pops}. Its members are most likely behind proxies.",
        {
            "topics": listed(topics),
            "not_online_at": listed(denied) or "unknown",
            "pop_retry_topics": listed(reading.retry_topics) or "none",
        },
        severity=WARNING if reading.is_sure else INFO,
        topic=topics[0] if len(topics) == 1 else None,
        first_ms=reading.first_ms,
        last_ms=reading.last_ms,
    )


RULE = Rule(
    "PROXY_GROUP_UNSEEN",
    WARNING,
    "Somebody reads for the group, and no log or dump that was collected names a member. Brokers "
    "never see the clients of proxies (CODE 206, not online). Who the members are, and what they "
    "reach, is unknown. INFO where offsets moved once only, as an administrator's reset moves "
    "them.",
    "committed_offsets, QUEUE_PROGRESS, GROUP_AT_BROKER, NOT_ONLINE; no memberships",
    "Collect the proxies too (their logs, and consumerConnection -b <proxy's remoting address>). "
    "If the offsets were reset by hand, nothing is wrong.",
    find,
)

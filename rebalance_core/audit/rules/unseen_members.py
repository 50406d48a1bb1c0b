"""PROXY_GROUP_UNSEEN and RUNNING_NOT_LISTED: somebody reads whom no broker lists as a member."""

from __future__ import annotations

from collections.abc import Iterator

from rebalance_core.audit.case import Finding, GroupCase, Rule, listed, plural
from rebalance_core.audit.dumps import Unlisted, is_system_group, unlisted_readers, unseen_reading
from rebalance_core.audit.orphans import backlog, messages
from rebalance_core.model.times import utc
from rebalance_core.model.verdicts import ERROR, INFO, WARNING


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


def find_unlisted(case: GroupCase) -> Iterator[Finding]:
    """At most one finding a group, for clients that live on and are no members."""
    unlisted = unlisted_readers(case)
    if unlisted is None or is_system_group(case.consumer_group):
        return
    behind = sum(backlog(case).values())
    waits = unlisted.goes_on and not case.members and behind > 0
    left = f"; {messages(behind)} not read" if waits else ""
    severity = ERROR if waits else WARNING if unlisted.goes_on else INFO
    ids = sorted(unlisted.clients)
    signs = [*unlisted.clients.values(), *unlisted.refused.values()]
    yield Finding(
        f"{_who(case, unlisted)}{_refusals(unlisted)}: heartbeats do not arrive{left}.",
        {"clients": listed(ids) or "unknown", "refused_by": listed(sorted(unlisted.refused))},
        severity=severity,
        client_id=ids[0] if len(ids) == 1 else None,
        first_ms=min(first for first, _ in signs),
        last_ms=None if unlisted.goes_on else unlisted.last_ms,
    )


def _who(case: GroupCase, unlisted: Unlisted) -> str:
    if not unlisted.clients:
        return f"Somebody pulls for {case.consumer_group}, of which no broker lists a member"
    names = [
        f"{client_id} {'goes on' if unlisted.goes_on else 'went on'} (commits or log until "
        f"{utc(last_ms)}) and no broker lists it since {utc(lost_ms)}"
        for client_id, (lost_ms, last_ms) in sorted(unlisted.clients.items())
    ]
    return listed(names, 3)


def _refusals(unlisted: Unlisted) -> str:
    if not unlisted.refused:
        return ""
    spans = [
        f"{broker} from {utc(first)} to {utc(last)}"
        for broker, (first, last) in sorted(unlisted.refused.items())
    ]
    return f"; pulls of the group are refused (CODE 24): {listed(spans, 3)}"


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
UNLISTED = Rule(
    "RUNNING_NOT_LISTED",
    WARNING,
    "A client of the group runs and is no member: brokers lost it, it commits or writes on, or "
    "pulls are refused because no member is registered (CODE 24). It gets nothing, or it reads "
    "queues that others have. ERROR where nobody else reads and messages wait.",
    "CONSUMER_LOST of cluster_events; committed_offsets and log lines of that client after it; "
    "facts GROUP_NOT_KNOWN (broker.log)",
    "Restart the client (its log has HEARTBEAT_FAILED where a broker cannot be reached) and check "
    "the network to the brokers. Do not delete the group: it is in use.",
    find_unlisted,
)

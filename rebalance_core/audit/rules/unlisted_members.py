"""Clients that read although no broker lists them."""

from __future__ import annotations

from collections.abc import Iterator

from rebalance_core.audit import dumps, outsiders
from rebalance_core.audit.evidence import unlogged_group
from rebalance_core.audit.group_snapshot import (
    Finding,
    GroupSnapshot,
    Rule,
    listed,
    plural,
)
from rebalance_core.audit.logged_causes import servers_near
from rebalance_core.audit.offsets import backlog, messages
from rebalance_core.audit.outsiders import Unlisted
from rebalance_core.audit.subjects import EVENTS, EVENTS_OR_DENIED
from rebalance_core.audit.topic_settings import is_configured_nowhere
from rebalance_core.model.times import utc
from rebalance_core.model.verdicts import ERROR, INFO, WARNING


def find_unseen_members(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield a finding for the group (rocketmq.md §14)."""
    reading = outsiders.unseen_reading(group)
    if reading is None:
        return
    topics = sorted({queue.topic for queue in reading.queues})
    denied = reading.denied_by
    offline = f"; {listed(denied, 3)} answered that no member is online" if denied else ""
    pops = (
        f"; it pops: {listed(reading.retry_topics, 3)} has offsets"
        if (reading.retry_topics)
        else ""
    )
    yield Finding(
        f"Offsets of {plural(len(reading.queues), 'queue')} of {listed(topics, 5)} advanced from "
        f"{utc(reading.first_ms)} to {utc(reading.last_ms)}, and no log or dump names a member of "
        f"{group.consumer_group}{offline}{pops}. Its members are most likely behind proxies.",
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


def find_unlisted(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield at most one finding, about clients that run without being members."""
    unlisted = outsiders.unlisted_readers(group)
    if unlisted is None or dumps.is_system_group(group.consumer_group):
        return
    if not unlisted.clients and not unlisted.refused and is_configured_nowhere(group):
        return  # GROUP_NOT_CONFIGURED
    behind = sum(backlog(group).values())
    waits = unlisted.goes_on and not group.members and behind > 0
    left = f"; {messages(behind)} unread" if waits else ""
    ids = sorted(unlisted.clients)
    signs = [*unlisted.clients.values(), *unlisted.refused.values(), *unlisted.logs.values()]
    since_ms = min(first for first, _ in signs)
    near = servers_near(group, since_ms)
    fails = f"; requests fail: {listed(unlisted.reasons, 2)}" if unlisted.reasons else ""
    logged = f"; within 30 s of that: {near}" if near else ""
    yield Finding(
        f"{_who(group, unlisted)}{logged}{_refusals(unlisted)}{fails}: its heartbeats do not "
        f"arrive{left}.",
        {
            "clients": listed(ids) or "unknown",
            "refused_by": listed(sorted(unlisted.refused)),
            "logs": listed(sorted(unlisted.logs)),
            "reasons": listed(unlisted.reasons),
            "servers": near,
        },
        remedy=_asks_old_address(unlisted, near),
        severity=ERROR if waits else WARNING,
        client_id=ids[0] if len(ids) == 1 else None,
        first_ms=since_ms,
        last_ms=None if unlisted.goes_on else unlisted.last_ms,
        unknown=None if unlisted.clients else unlogged_group(group),
        ended_by="" if unlisted.goes_on else "no file shows activity after that",
    )


def _asks_old_address(unlisted: Unlisted, near: str) -> str | None:
    """Return the remedy for failed requests to an address that a broker no longer uses."""
    left = [words.partition(" → ")[0] for words in near.split("with another address (")[1:]]
    if not any(address in reason for address in left for reason in unlisted.reasons):
        return None
    return (
        f"Restart the client: it keeps asking {listed(left, 3)}, which no broker uses any more. "
        "Give brokers addresses that survive a restart (a DNS name, or a Service per broker). Do "
        "not delete the group: it is in use."
    )


def _who(group: GroupSnapshot, unlisted: Unlisted) -> str:
    if not unlisted.clients and not unlisted.logs:
        return f"Clients pull for {group.consumer_group}, but no broker lists a member of it"
    names = [
        f"the client that writes clients/{log} "
        f"{'keeps running' if unlisted.goes_on else 'kept running'} (its log mentions the group "
        f"until {utc(last_ms)}), but no broker has listed a member since {utc(since_ms)}"
        for log, (since_ms, last_ms) in sorted(unlisted.logs.items())
    ]
    names += [
        f"{client_id} {'keeps running' if unlisted.goes_on else 'kept running'} (commits or log "
        f"until {utc(last_ms)}), but no broker has listed it since {utc(lost_ms)}"
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


UNSEEN_MEMBERS = Rule(
    "PROXY_GROUP_UNSEEN",
    WARNING,
    "Some client reads for the group, but no collected file names a member. Brokers never see "
    "clients of proxies (CODE 206, not online). INFO if offsets moved only once, as in an "
    "administrator's reset.",
    "committed_offsets, QUEUE_PROGRESS, GROUP_AT_BROKER, NOT_ONLINE; no memberships",
    "Collect the proxies too (their logs, and consumerConnection -b <proxy's remoting address>). "
    "Nothing is wrong if an administrator reset the offsets.",
    find_unseen_members,
    by_absence=True,
    reads=(EVENTS_OR_DENIED,),
)


UNLISTED = Rule(
    "RUNNING_NOT_LISTED",
    WARNING,
    "A client of the group runs without being a member: brokers lost it or never listed it, but "
    "it commits or keeps logging, or brokers refuse pulls because no member is registered (CODE "
    "24). ERROR if no member reads and messages wait.",
    "CONSUMER_LOST and epochs (EMPTY); later committed_offsets, NO_MEMBER_LIST, REQUEST_FAILED and "
    "other lines of clients' logs; GROUP_NOT_KNOWN",
    "Fix the reason that the servers give. If they give none, restart the client "
    "(HEARTBEAT_FAILED in its log names a broker that it cannot reach) and check the network to "
    "the brokers. Do not delete the group: it is in use.",
    find_unlisted,
    reads=(EVENTS,),
)

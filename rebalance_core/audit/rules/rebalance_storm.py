"""REBALANCE_STORM: members are told to rebalance far more often than the group changes."""

from __future__ import annotations

from collections.abc import Iterator

from rebalance_core.audit.case import GroupCase
from rebalance_core.audit.evidence.formatting import lasting, listed, plural
from rebalance_core.audit.evidence.notifications import Notifications, notifications
from rebalance_core.audit.evidence.persistence import spans_where
from rebalance_core.audit.evidence.subscriptions import differ, stated_subscriptions, unsubscribed
from rebalance_core.audit.finding import Finding, Rule
from rebalance_core.model.statuses import INFO, WARNING
from rebalance_core.model.times import HEARTBEAT_MS, utc

FEW = 4
"""So many seconds with CHANGE beyond those explained may be a late or a repeated one."""
STEADY_MS = 2 * HEARTBEAT_MS
"""Heartbeats that contradict each other make a storm: it comes at least so often, or is over."""


def find(case: GroupCase) -> Iterator[Finding]:
    """One finding a group, of all its brokers (rocketmq.md §6.2, §11 no. 1)."""
    storms = [one for one in notifications(case) if _is_storm(one)]
    if not storms:
        return
    worst = max(storms, key=lambda one: (one.unexplained, one.at))
    brokers = sorted({one.at for one in storms})
    first_ms = min(one.first_ms for one in storms)
    last_ms = max(one.last_ms for one in storms)
    over = last_ms + STEADY_MS < case.run.end_ms
    causes = list(_causes(case, first_ms, last_ms))
    until = f" until {utc(last_ms)}" if over else ""
    because = listed(causes, 3) if causes else "no event and no subscription explains it"
    yield Finding(
        f"Members were told to rebalance again and again since {utc(first_ms)}{until}, by "
        f"{listed(brokers, 3)}: {worst.at} in {worst.seconds} seconds of "
        f"{lasting(worst.last_ms - worst.first_ms)}, of which the group's events explain "
        f"{worst.explained} at most; {because}.",
        {
            "brokers": listed(brokers),
            "seconds_with_change": str(worst.seconds),
            "explained_at_most": str(worst.explained),
            "causes": listed(causes),
        },
        severity=INFO if over else WARNING,
        broker_name=brokers[0] if len(brokers) == 1 else None,
        first_ms=first_ms,
        last_ms=last_ms if over else None,
    )


def _is_storm(one: Notifications) -> bool:
    """True if what no event explains came often, all the time."""
    return one.unexplained > FEW and one.unexplained * STEADY_MS >= one.last_ms - one.first_ms


def _causes(case: GroupCase, first_ms: int, last_ms: int) -> Iterator[str]:
    """What makes heartbeats contradict each other, where the ledger or a log tells it."""
    stretches = stated_subscriptions(case)
    said = {id(row): what for row, what in stretches}
    rows = [row for row, _ in stretches]
    spans = spans_where(rows, lambda row: said[id(row)], differ)
    if any(s.first_ms <= last_ms and (s.last_ms is None or s.last_ms >= first_ms) for s in spans):
        yield "members subscribe different topics"
    gone = [one for one in unsubscribed(case) if one.since_ms <= last_ms]
    if gone:
        left = sorted({f"{one.client_id} unsubscribed {one.topic}" for one in gone})
        yield f"{listed(left, 3)}, which others subscribe"
    dropped = [
        fact
        for fact in case.facts("TOPIC_DROPPED")
        if fact["first_ms"] <= last_ms and fact["last_ms"] >= first_ms
    ]
    if dropped:
        topics = sorted({fact["topic"] for fact in dropped})
        times = sum(fact["times"] for fact in dropped)
        often = plural(times, "time")
        yield f"heartbeats took {listed(topics, 3)} out of the group's table {often}"


RULE = Rule(
    "REBALANCE_STORM",
    WARNING,
    "Brokers tell the members to rebalance far more often than members come or go. Each time all "
    "of them ask a broker for the list of members, topic by topic, and pulls are refused while the "
    "broker's table lacks a topic. Members that subscribe different topics do it with every "
    "heartbeat of each.",
    "facts NOTIFIED (client log) and TOPIC_DROPPED (broker.log) against cluster_events; "
    "memberships",
    "Give all members the same topics (INCONSISTENT_SUBSCRIPTION, UNSUBSCRIBED_SHARE say who "
    "differs). Where no subscription differs, look at the connections between the members and the "
    "broker named: each new channel is answered with CHANGE.",
    find,
    files=("client_log", "broker_log"),
)

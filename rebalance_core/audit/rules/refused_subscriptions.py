"""Pulls refused until a heartbeat brings the newer subscription."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rebalance_core.audit.group_snapshot import (
    Finding,
    GroupSnapshot,
    Rule,
    lasting,
    listed,
)
from rebalance_core.model.times import HEARTBEAT_MS, SECOND_MS, utc
from rebalance_core.model.verdicts import INFO

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import Fact


RETRY_MS = 3_000
"""A refused pull is retried after this time (PULL_TIME_DELAY_MILLS_WHEN_EXCEPTION)."""


UNNOTICED_MS = 5_000
"""Any change costs this much anyway."""


def find_subscription_not_latest(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield a finding for a group whose pulls brokers refused for a while."""
    facts = [fact for fact in group.facts["SUBSCRIPTION_NOT_LATEST"] if _lasted(fact)]
    if not facts:
        return
    longest = max(facts, key=lambda fact: (_span(fact), fact["broker_name"]))
    brokers = sorted({fact["broker_name"] for fact in facts})
    span = _span(longest)
    more = (
        ""
        if span <= HEARTBEAT_MS + RETRY_MS
        else f"; a heartbeat should have ended it in {HEARTBEAT_MS // SECOND_MS} s: queues kept "
        "changing, or heartbeats are lost"
    )
    yield Finding(
        f"{listed(brokers, 3)} refused pulls because no heartbeat had reported the members' new "
        f"subscriptions, for up to {lasting(span)} from {utc(longest['first_ms'])} at "
        f"{longest['broker_name']}; the first messages of queues that moved at that time arrive as "
        f"late{more}.",
        {"brokers": listed(brokers), "longest_s": str(span // SECOND_MS)},
        broker_name=brokers[0] if len(brokers) == 1 else None,
        first_ms=min(fact["first_ms"] for fact in facts),
        last_ms=max(fact["last_ms"] for fact in facts),
    )


def _span(fact: Fact) -> int:
    return int(fact["last_ms"] - fact["first_ms"])


def _lasted(fact: Fact) -> bool:
    """Return True for a continuous stretch; single lines minutes apart are many short stretches."""
    steady = fact["times"] * 2 * RETRY_MS >= _span(fact)
    return steady and _span(fact) >= UNNOTICED_MS


SUBSCRIPTION_NOT_LATEST = Rule(
    "SUBSCRIPTION_NOT_LATEST",
    INFO,
    "A change of its queues raises the version of a member's subscription. A broker with an older "
    "version refuses its pulls until the next heartbeat (heartbeatBrokerInterval, 30 s), so the "
    "first messages after a change arrive late.",
    "SUBSCRIPTION_NOT_LATEST",
    "Nothing if it ends. If it lasts, check whether heartbeats reach the named broker; shorten "
    "heartbeatBrokerInterval if the delay matters.",
    find_subscription_not_latest,
)

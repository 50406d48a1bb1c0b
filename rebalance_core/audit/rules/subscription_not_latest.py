"""SUBSCRIPTION_NOT_LATEST: pulls refused until a heartbeat brings the newer subscription."""

from __future__ import annotations

from collections.abc import Iterator

from rebalance_core.audit.case import Finding, GroupCase, Row, Rule, lasting, listed
from rebalance_core.model.times import HEARTBEAT_MS, SECOND_MS, utc
from rebalance_core.model.verdicts import INFO

RETRY_MS = 3_000
"""A refused pull is repeated after it (PULL_TIME_DELAY_MILLS_WHEN_EXCEPTION)."""
UNNOTICED_MS = 5_000
"""Less does not stand out from what a change costs anyway."""


def find(case: GroupCase) -> Iterator[Finding]:
    """One finding a group whose pulls brokers refused for a while at a stretch."""
    facts = [fact for fact in case.facts("SUBSCRIPTION_NOT_LATEST") if _lasted(fact)]
    if not facts:
        return
    longest = max(facts, key=lambda fact: (_span(fact), fact["broker_name"]))
    brokers = sorted({fact["broker_name"] for fact in facts})
    span = _span(longest)
    more = (
        ""
        if span <= HEARTBEAT_MS + RETRY_MS
        else "; a heartbeat should have ended it in "
        f"{HEARTBEAT_MS // SECOND_MS} s: queues changed on and on, or heartbeats are lost"
    )
    yield Finding(
        f"{listed(brokers, 3)} refused pulls, as the members subscribed anew and no heartbeat had "
        f"told it: the longest time {lasting(span)} from {utc(longest['first_ms'])} at "
        f"{longest['broker_name']}; the first messages of queues that were taken over then are as "
        f"late{more}.",
        {"brokers": listed(brokers), "longest_s": str(span // SECOND_MS)},
        broker_name=brokers[0] if len(brokers) == 1 else None,
        first_ms=min(fact["first_ms"] for fact in facts),
        last_ms=max(fact["last_ms"] for fact in facts),
    )


def _span(fact: Row) -> int:
    return int(fact["last_ms"] - fact["first_ms"])


def _lasted(fact: Row) -> bool:
    """True of one stretch; single lines minutes apart are many short ones."""
    steady = fact["times"] * 2 * RETRY_MS >= _span(fact)
    return steady and _span(fact) >= UNNOTICED_MS


RULE = Rule(
    "SUBSCRIPTION_NOT_LATEST",
    INFO,
    "A member raises the version of its subscription with each change of its queues. A broker that "
    "has an older one refuses its pulls until a heartbeat brings the new one, up to "
    "heartbeatBrokerInterval (30 s) later: why the first messages after a change are late.",
    "facts SUBSCRIPTION_NOT_LATEST (broker.log)",
    "Nothing if it ends. Where it comes with every change and lasts, look whether heartbeats reach "
    "the broker named, and shorten heartbeatBrokerInterval if the delay matters.",
    find,
)

"""REBALANCE_STORM: members are told to rebalance far more often than the group changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rebalance_core.audit.case import Finding, GroupCase, Row, Rule, lasting, listed, plural
from rebalance_core.audit.orphans import SEEN_BEFORE_LOGGED_MS, spans_where
from rebalance_core.audit.subscriptions import differ, stated_subscriptions, unsubscribed
from rebalance_core.model import events
from rebalance_core.model.times import HEARTBEAT_MS, utc
from rebalance_core.model.verdicts import INFO, WARNING
from rebalance_core.protocol.members import ROUTE_MS

# How often brokers told members to rebalance, and how much of it the group's events explain.

SECONDS_OF_ONE = 2
"""What one operation at a broker makes members log: late in a second, the next one shows it too."""

OPERATIONS = (
    events.CONSUMER_JOIN, events.CONSUMER_LEAVE, events.CONSUMER_LOST,
    events.SUBSCRIBE, events.UNSUBSCRIBE,
)  # fmt: skip
"""What a broker answers with CHANGE, once for each (rocketmq.md §6.2)."""

NEW_BROKER = (events.BROKER_UP, events.TOPIC_CONFIG)
"""What may bring the first heartbeat of each member to a broker, which answers with CHANGE."""


@dataclass(frozen=True, slots=True)
class Notifications:
    """An episode of CHANGE from one broker process, no more than 5 minutes between two.

    Attributes:
        at: name of the broker, or the address where no file tells it.
        first_ms: epoch ms; last_ms: the same of the last.
        seconds: in how many seconds the broker told members, or had reason to.
        explained: in how many it may have done so for the group's events.
    """

    at: str
    first_ms: int
    last_ms: int
    seconds: int
    explained: int

    @property
    def unexplained(self) -> int:
        """Seconds that no event explains; a lower bound."""
        return max(0, self.seconds - self.explained)


def notifications(case: GroupCase) -> list[Notifications]:
    """The episodes, by the logs of clients (NOTIFIED) and of brokers (TOPIC_DROPPED).

    A heartbeat that takes a topic out of the group's table is answered with CHANGE as well, so
    that a storm shows without any client's log.
    """
    return [*_told(case), *_dropped(case)]


def _told(case: GroupCase) -> Iterator[Notifications]:
    for fact in case.facts("NOTIFIED"):
        address = fact["details"].get("address", "")
        yield _episode(case, fact["broker_name"] or address, [fact], SECONDS_OF_ONE)


def _dropped(case: GroupCase) -> Iterator[Notifications]:
    by_broker: dict[str, list[Row]] = {}
    for fact in case.facts("TOPIC_DROPPED"):
        by_broker.setdefault(fact["broker_name"] or "", []).append(fact)
    for broker, facts in sorted(by_broker.items()):
        together = [facts[0]]
        for fact in facts[1:]:
            if fact["first_ms"] > max(one["last_ms"] for one in together):
                yield _episode(case, broker, together)
                together = []
            together.append(fact)
        yield _episode(case, broker, together)


def _episode(case: GroupCase, at: str, facts: list[Row], seconds_of_one: int = 1) -> Notifications:
    first_ms = min(fact["first_ms"] for fact in facts)
    last_ms = max(fact["last_ms"] for fact in facts)
    seconds = max(fact["times"] for fact in facts)  # one heartbeat may take several topics out
    explained = seconds_of_one * _explained(case, first_ms, last_ms)
    return Notifications(at, first_ms, last_ms, seconds, explained)


def _explained(case: GroupCase, first_ms: int, last_ms: int) -> int:
    """At most so many operations at one broker come from the events of this time."""
    operations = sum(
        row["event_type"] in OPERATIONS
        and first_ms - SEEN_BEFORE_LOGGED_MS <= row["event_ms"] <= last_ms + SEEN_BEFORE_LOGGED_MS
        for row in case.rows("cluster_events")
    )
    first_heartbeats = sum(
        epoch["members"]
        for epoch in case.epochs
        if set(NEW_BROKER) & set(epoch["causes"])
        and first_ms - ROUTE_MS - HEARTBEAT_MS <= epoch["from_ms"] <= last_ms
    )
    masters_back = sum(
        outage.up_ms is not None and first_ms - ROUTE_MS - HEARTBEAT_MS <= outage.up_ms <= last_ms
        for outages in case.run.masters.values()
        for outage in outages
    )
    most = max((epoch["members"] for epoch in case.epochs), default=0)
    return operations + first_heartbeats + masters_back * most


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

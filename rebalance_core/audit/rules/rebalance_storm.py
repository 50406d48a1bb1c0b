"""Brokers that make members rebalance far more often than the group changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rebalance_core.audit.group_snapshot import (
    Finding,
    GroupSnapshot,
    Rule,
    lasting,
    listed,
    plural,
)
from rebalance_core.audit.logged_causes import SEEN_BEFORE_LOGGED_MS
from rebalance_core.audit.stretches import spans_where
from rebalance_core.audit.subjects import CAUSES
from rebalance_core.audit.subscriptions import (
    differ,
    stated_subscriptions,
    unsubscribed,
)
from rebalance_core.audit.unknowns import CLIENT_CLOCK_UNKNOWN
from rebalance_core.model import events
from rebalance_core.model.times import HEARTBEAT_MS, utc
from rebalance_core.model.verdicts import WARNING
from rebalance_core.protocol.settling_windows import ROUTE_MS

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import Fact, TopicDroppedFact


SECONDS_OF_ONE = 2
"""The entries that one operation at a broker makes members log; late in a second, some may fall
into the next.
"""


OPERATIONS = (
    events.CONSUMER_JOIN,
    events.CONSUMER_LEAVE,
    events.CONSUMER_LOST,
    events.SUBSCRIBE,
    events.UNSUBSCRIBE,
)
"""Operations that a broker answers with one CHANGE each (rocketmq.md §6.2)."""


NEW_BROKER = (events.BROKER_UP, events.TOPIC_CONFIG)
"""Events that may lead to each member's first heartbeat to a broker, which answers with CHANGE."""


@dataclass(frozen=True, slots=True)
class Notifications:
    """An episode of CHANGE from one broker process, no more than 5 minutes between two.

    Attributes:
        server: name of the broker, or the address if no file shows the name.
        first_ms: the time of the first, epoch ms; last_ms: that of the last.
        seconds: the number of seconds in which the broker notified members, or had reason to.
        explained: the number in which it may have done so because of the group's events.
    """

    server: str
    first_ms: int
    last_ms: int
    seconds: int
    explained: int

    @property
    def unexplained(self) -> int:
        """Seconds that no event explains; a lower bound."""
        return max(0, self.seconds - self.explained)


def notifications(group: GroupSnapshot) -> list[Notifications]:
    """Return the episodes in the logs of clients (NOTIFIED) and brokers (TOPIC_DROPPED).

    A heartbeat that takes a topic out of the group's table is answered with CHANGE as well, so
    that a storm shows without any client's log.
    """
    return [*_notified(group), *_dropped(group)]


def _notified(group: GroupSnapshot) -> Iterator[Notifications]:
    for fact in group.facts["NOTIFIED"]:
        address = fact["details"].get("address", "")
        yield _episode(group, fact["broker_name"] or address, [fact], SECONDS_OF_ONE)


def _dropped(group: GroupSnapshot) -> Iterator[Notifications]:
    by_broker: dict[str, list[TopicDroppedFact]] = {}
    for fact in group.facts["TOPIC_DROPPED"]:
        by_broker.setdefault(fact["broker_name"] or "", []).append(fact)
    for broker, facts in sorted(by_broker.items()):
        together = [facts[0]]
        for fact in facts[1:]:
            if fact["first_ms"] > max(earlier["last_ms"] for earlier in together):
                yield _episode(group, broker, together)
                together = []
            together.append(fact)
        yield _episode(group, broker, together)


def _episode(
    group: GroupSnapshot, server: str, facts: Sequence[Fact], seconds_of_one: int = 1
) -> Notifications:
    first_ms = min(fact["first_ms"] for fact in facts)
    last_ms = max(fact["last_ms"] for fact in facts)
    seconds = max(fact["times"] for fact in facts)  # one heartbeat may remove several topics
    explained = seconds_of_one * _explained(group, first_ms, last_ms)
    return Notifications(server, first_ms, last_ms, seconds, explained)


def _explained(group: GroupSnapshot, first_ms: int, last_ms: int) -> int:
    """Return how many operations at one broker the events of this time can explain."""
    operations = sum(
        row["event_type"] in OPERATIONS
        and first_ms - SEEN_BEFORE_LOGGED_MS <= row["event_ms"] <= last_ms + SEEN_BEFORE_LOGGED_MS
        for row in group.tables["cluster_events"]
    )
    first_heartbeats = sum(
        epoch["members"]
        for epoch in group.epochs
        if set(NEW_BROKER) & set(epoch["causes"])
        and first_ms - ROUTE_MS - HEARTBEAT_MS <= epoch["from_ms"] <= last_ms
    )
    masters_back = sum(
        outage.up_ms is not None and first_ms - ROUTE_MS - HEARTBEAT_MS <= outage.up_ms <= last_ms
        for outages in group.run.masters.values()
        for outage in outages
    )
    most = max((epoch["members"] for epoch in group.epochs), default=0)
    return operations + first_heartbeats + masters_back * most


FEW = 4
"""Up to this many unexplained seconds with CHANGE may be late or repeated notices."""


STEADY_MS = 2 * HEARTBEAT_MS
"""Heartbeats that contradict each other cause notices at least this often, until the storm is
over."""


def find_rebalance_storm(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield a finding for the group over all its brokers (rocketmq.md §6.2)."""
    storms = [storm for storm in notifications(group) if _is_storm(storm)]
    if not storms:
        return
    worst = max(storms, key=lambda storm: (storm.unexplained, storm.server))
    brokers = sorted({storm.server for storm in storms})
    first_ms = min(storm.first_ms for storm in storms)
    last_ms = max(storm.last_ms for storm in storms)
    over = last_ms + STEADY_MS < group.run.end_ms
    # a wrong clock shows one notice twice, away from the event that explains it
    unsure = group.run.coverage.client_clock_unknown and not any(map(_is_storm, _dropped(group)))
    causes = list(_causes(group, first_ms, last_ms))
    until = f" until {utc(last_ms)}" if over else ""
    because = listed(causes, 3) if causes else "no event and no subscription explains it"
    yield Finding(
        f"Brokers asked members to rebalance again and again since {utc(first_ms)}{until}, by "
        f"{listed(brokers, 3)}: {worst.server} in {worst.seconds} seconds of "
        f"{lasting(worst.last_ms - worst.first_ms)}, of which the group's events explain "
        f"{worst.explained} at most; {because}.",
        {
            "brokers": listed(brokers),
            "seconds_with_change": str(worst.seconds),
            "explained_at_most": str(worst.explained),
            "causes": listed(causes),
        },
        broker_name=brokers[0] if len(brokers) == 1 else None,
        first_ms=first_ms,
        last_ms=last_ms if over else None,
        ended_by="no such notice was logged in the minute after it" if over else "",
        unknown=CLIENT_CLOCK_UNKNOWN if unsure else None,
    )


def _is_storm(sent: Notifications) -> bool:
    """Return True if unexplained notices came often, all the time."""
    return sent.unexplained > FEW and sent.unexplained * STEADY_MS >= sent.last_ms - sent.first_ms


def _causes(group: GroupSnapshot, first_ms: int, last_ms: int) -> Iterator[str]:
    """Explain why heartbeats contradict each other, where the ledger or a log shows it."""
    spans = spans_where(stated_subscriptions(group), differ)
    if any(s.first_ms <= last_ms and (s.last_ms is None or s.last_ms >= first_ms) for s in spans):
        yield "members subscribe to different topics"
    gone = [member for member in unsubscribed(group) if member.since_ms <= last_ms]
    if gone:
        left = sorted({f"{member.client_id} unsubscribed {member.topic}" for member in gone})
        yield f"{listed(left, 3)}, which others subscribe"
    dropped = [
        fact
        for fact in group.facts["TOPIC_DROPPED"]
        if fact["first_ms"] <= last_ms and fact["last_ms"] >= first_ms
    ]
    if dropped:
        topics = sorted({fact["topic"] for fact in dropped})
        times = sum(fact["times"] for fact in dropped)
        often = plural(times, "time")
        yield f"heartbeats took {listed(topics, 3)} out of the group's table {often}"


REBALANCE_STORM = Rule(
    "REBALANCE_STORM",
    WARNING,
    "Brokers ask members to rebalance far more often than members come or go. Each time all "
    "members request the member list, topic by topic. Members that subscribe to different topics "
    "cause this with every heartbeat.",
    "NOTIFIED and TOPIC_DROPPED against cluster_events, memberships",
    "Subscribe all members to the same topics. If the subscriptions agree, check the connections "
    "between the members and the named broker: each new channel causes a CHANGE.",
    find_rebalance_storm,
    by_absence=True,
    files=("client_log", "broker_log"),
    reads=(CAUSES,),
)

"""How often brokers told members to rebalance, and how much of it the group's events explain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rebalance_core.audit.case import GroupCase, Row
from rebalance_core.audit.evidence.causes import SEEN_BEFORE_LOGGED_MS
from rebalance_core.model import events
from rebalance_core.model.times import HEARTBEAT_MS
from rebalance_core.protocol.windows import ROUTE_MS

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

"""The subscriptions of one group at one broker, as its members' heartbeats make them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from rebalance_core.ingest.evidence.evidence import Evidence
from rebalance_core.model.times import HEARTBEAT_MS

HEARTBEAT_MARGIN_MS = 5_000
HEARTBEAT_SEEN_MS = HEARTBEAT_MS + HEARTBEAT_MARGIN_MS
"""Every member's heartbeat was logged by then."""
SAME_MOMENT_MS = 2_000
"""Brokers hear of one change one after the other, and their logs have seconds."""


class Member(NamedTuple):
    """One process of the group: its client id and the name of its channel."""

    client_id: str
    channel_id: str


@dataclass
class SubscriptionTable:
    """The group's subscriptions at one broker.

    Each heartbeat makes the broker's table equal to what its member subscribes, and every change of
    it is logged (rocketmq.md §6.2). So while no line follows, whoever sends heartbeats there
    subscribes just that: a second member that subscribes or unsubscribes the same topic is not
    logged.

    Attributes:
        topics: of the heartbeat that changed it last.
        at_ms: when that was.
        source: its line.
        settled: True once every member was heard after it.
        versions: subVersions of that heartbeat by topic.
        reporter: whose heartbeat it was.
        line: second and position of the line in its log.
    """

    topics: frozenset[str] = frozenset()
    at_ms: int = 0
    source: str = ""
    settled: bool = True
    versions: Mapping[str, int] = field(default_factory=dict)
    reporter: Member | None = None
    line: tuple[int, int] = (0, 0)
    _members: set[Member] = field(default_factory=set)

    def knows(self, member: Member) -> bool:
        """True if this broker had a heartbeat of the member before."""
        return member in self._members

    def report(
        self, member: Member, topics: frozenset[str], at_ms: int, piece: Evidence, second_ms: int
    ) -> None:
        """A heartbeat of the member changed the table to this."""
        self._members.add(member)
        self.topics, self.at_ms, self.source, self.settled = topics, at_ms, piece.source, False
        self.versions, self.reporter = piece.values.get("versions", {}), member
        self.line = (second_ms, piece.position)

"""subVersions that heartbeats brought to brokers: the millisecond of a client's subscribe()."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.events.connections import (
    HEARTBEAT_SEEN_MS,
    SAME_MOMENT_MS,
    ConnectedMember,
    SubscriptionTable,
)
from rebalance_core.ingest.rows import Event
from rebalance_core.model.events import (
    SUBSCRIBE,
)
from rebalance_core.model.times import SECOND_MS
from rebalance_core.protocol.settling_windows import ROUTE_MS

if TYPE_CHECKING:
    from rebalance_core.ingest.evidence_types import (
        GroupConnectionPiece,
        GroupEvidence,
        MemberPiece,
        NoMembersPiece,
    )

    Listed: TypeAlias = MemberPiece | GroupConnectionPiece | NoMembersPiece


RESETTLE_MS = ROUTE_MS
"""The time within which all members and brokers know of a change in members or topics
(rocketmq.md §6.4).
"""


TopicsByMember = Mapping[ConnectedMember, frozenset[str]]


class SubscriptionVersions:
    """Lines about subscriptions that name no member, by broker and topic."""

    def __init__(self, pieces: Iterable[GroupEvidence], context: ClusterContext) -> None:
        self._lines: dict[tuple[str, str], list[tuple[int, int, int]]] = {}
        self._moves: dict[str, list[tuple[int, int]]] = {}
        for piece in pieces:
            if piece.kind not in ("subscription_changed", "group_topic"):
                continue
            line = (context.time_of(piece), piece.position)
            if piece.kind == "subscription_changed" and "version" in piece.values:
                key = (piece.place, piece.values["topic"])
                self._lines.setdefault(key, []).append((*line, piece.values["version"]))
            else:
                self._moves.setdefault(piece.place, []).append(line)
        for lines in self._lines.values():
            lines.sort()
        for moves in self._moves.values():
            moves.sort()

    def silent_after(self, broker: str, table: SubscriptionTable) -> bool:
        """Return True if no line changed the table again before every member had sent a heartbeat.

        A heartbeat logs the topics that it adds and removes before the line with its member: if
        that line was dropped, the topic lines still show that some member has other subscriptions.
        """
        moves = self._moves.get(broker, [])
        after = bisect_right(moves, table.line)
        return after == len(moves) or moves[after][0] >= table.line[0] + HEARTBEAT_SEEN_MS

    def of_silent(
        self, broker: str, table: SubscriptionTable, topics: TopicsByMember, events: Iterable[Event]
    ) -> dict[ConnectedMember, dict[str, int]]:
        """Return when a silent member subscribed to a topic that another member had before.

        The next newer subVersion belongs to it if only this member lacked the topic and nothing
        moved the others' queues; otherwise the time is unknown.

        Args:
            broker: the owner of the table.
            table: the table's state after the last line about a member.
            topics: known topics of the members that send heartbeats there.
            events: the group's events.
        """
        versions: dict[ConnectedMember, dict[str, int]] = {}
        events = list(events)
        for topic in sorted(table.topics):
            lacking = [member for member, subscribed in topics.items() if topic not in subscribed]
            version = self._next(broker, topic, table) if len(lacking) == 1 else None
            if version is not None and not _moving(topic, version, table, events):
                versions.setdefault(lacking[0], {})[topic] = version
        return versions

    def _next(self, broker: str, topic: str, table: SubscriptionTable) -> int | None:
        """Return the next newer subVersion of the topic if it was logged as soon as it was set."""
        current = table.versions.get(topic)
        for second_ms, position, version in self._lines.get((broker, topic), ()):
            if (second_ms, position) > table.line and current is not None and version > current:
                in_time = second_ms < table.line[0] + HEARTBEAT_SEEN_MS
                at_once = second_ms - SAME_MOMENT_MS <= version < second_ms + SECOND_MS
                return version if in_time and at_once else None
        return None


def _moving(topic: str, at_ms: int, table: SubscriptionTable, events: Iterable[Event]) -> bool:
    """Return True if queues may have been changing owners at that time.

    The reporter's own subscription is complete once its subVersion has risen, because it has its
    queues.
    """
    for row in events:
        if at_ms - RESETTLE_MS <= row["event_ms"] <= at_ms:
            subscribed = row["event_type"] == SUBSCRIBE and row["topic"] == topic
            of_reporter = ConnectedMember(row["client_id"], row["channel_id"]) == table.reporter
            if not (subscribed and of_reporter and row["event_ms"] < table.versions[topic]):
                return True
    return False

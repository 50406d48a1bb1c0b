"""What a client's own log tells and brokers learn late or never: suspensions and unsubscribe()."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.events.connections import ProcessNames
from rebalance_core.ingest.events.presence import Presence
from rebalance_core.ingest.events.subscription_table import (
    HEARTBEAT_SEEN_MS,
    SAME_MOMENT_MS,
    Member,
    SubscriptionTable,
)
from rebalance_core.ingest.evidence.evidence import Evidence
from rebalance_core.ingest.rows import Row, event
from rebalance_core.model.events import CONSUMER_RESUME, CONSUMER_SUSPEND, SUBSCRIBE
from rebalance_core.model.times import HEARTBEAT_MS, REBALANCE_WAIT_MS, SECOND_MS
from rebalance_core.protocol.windows import ROUTE_MS

# CONSUMER_SUSPEND and CONSUMER_RESUME from the client's own log: brokers learn nothing of it.

LATE_LINE_MS = 2_000
"""Pulls of a suspended consumer are put off by 1 s and logged: one may follow the resumption."""


def suspension_events(
    group: str,
    pieces: Iterable[Evidence],
    names: ProcessNames,
    presence: Presence,
    context: ClusterContext,
) -> list[Row]:
    """Suspensions and resumptions of members that are there.

    A member that was suspended before its log begins shows by the pulls that it puts off.
    """
    rows: list[Row] = []
    state: dict[str, tuple[bool, int]] = {}
    kinds = ("suspended", "resumed", "paused")
    ordered = sorted(
        (p for p in pieces if p.kind in kinds),
        key=lambda p: (context.time_of(p), p.place, p.position),
    )
    for piece in ordered:
        at_ms = context.time_of(piece)
        client_id = names.client_of(piece) or presence.of_instance(
            piece.values.get("instance"), at_ms
        )
        channels = presence.channels(client_id, at_ms) if client_id is not None else []
        if client_id is None or not channels:
            continue
        suspended, since = state.get(client_id, (False, 0))
        if piece.kind == "paused" and (suspended or at_ms - since < LATE_LINE_MS):
            continue
        wanted = piece.kind != "resumed"
        state[client_id] = (wanted, at_ms)
        if wanted != suspended:
            kind = CONSUMER_SUSPEND if wanted else CONSUMER_RESUME
            rows.append(
                event(
                    kind, at_ms, piece.source, consumer_group=group,
                    client_id=client_id, channel_id=channels[0],
                )
            )  # fmt: skip
    return rows


# When a client called unsubscribe(), by its own log: brokers learn it with a later heartbeat.

UNSUBSCRIBE_MARGIN_MS = 10_000
UNSUBSCRIBE_KNOWN_MS = REBALANCE_WAIT_MS + HEARTBEAT_MS + UNSUBSCRIBE_MARGIN_MS
"""unsubscribe(): an own pass, then brokers learn it by a heartbeat (rocketmq.md §6.4)."""


class Unsubscriptions:
    """The lines of one group's clients."""

    def __init__(
        self, pieces: Iterable[Evidence], names: ProcessNames, context: ClusterContext
    ) -> None:
        self._lines = sorted(
            (context.time_of(p), p.source, p.values["topic"], names.client_of(p))
            for p in pieces
            if p.kind == "unsubscribed"
        )

    def before(
        self, client_id: str, topic: str, since_ms: int, known_ms: int, *, unseen: bool
    ) -> tuple[int, str] | None:
        """Time and line of the unsubscription that brokers knew at `known_ms`; None: no line.

        Args:
            client_id: the member.
            topic: that it gave up.
            since_ms: when it subscribed it still.
            known_ms: when a broker or the member itself first says so.
            unseen: a broker whose log had ended may have known it long before.
        """
        usual_ms = max(since_ms, known_ms - UNSUBSCRIBE_KNOWN_MS)
        of_topic = [line for line in self._lines if line[2] == topic and line[0] <= known_ms]
        for at_ms, source, _, client in of_topic:
            if at_ms >= usual_ms and client in (None, client_id):
                return at_ms, source
        if unseen:
            for at_ms, source, _, client in reversed(of_topic):
                if at_ms >= since_ms and client == client_id:
                    return at_ms, source
        return None


# subVersions that heartbeats brought to the brokers: the client's own millisecond of subscribe().
#
# A client sets the subVersion of a topic when it subscribes and again when its queues of the
# topic change (rocketmq.md §4.4); either way it sends a heartbeat at once, and a broker that
# knows an older one logs it. Where the topic is new to the broker's table the line has the
# member's connection; where another member brought the topic before, only ``OLD`` and ``NEW``,
# without a member.

RESETTLE_MS = ROUTE_MS
"""A change of members or topics has reached everybody (rocketmq.md §6.4)."""

Topics = Mapping[Member, frozenset[str]]


class SubscriptionVersions:
    """The lines without a member, by broker and topic."""

    def __init__(self, pieces: Iterable[Evidence], context: ClusterContext) -> None:
        self._lines: dict[tuple[str, str], list[tuple[int, int, int]]] = {}
        for piece in pieces:
            if piece.kind == "subscription_changed" and "version" in piece.values:
                key = (piece.place, piece.values["topic"])
                line = (context.time_of(piece), piece.position, piece.values["version"])
                self._lines.setdefault(key, []).append(line)
        for lines in self._lines.values():
            lines.sort()

    def of_silent(
        self, broker: str, table: SubscriptionTable, topics: Topics, events: Iterable[Row]
    ) -> dict[Member, dict[str, int]]:
        """When a silent member subscribed a topic that another member brought before.

        The next newer subVersion is its own if it alone lacked the topic and nothing moved the
        queues of the others; else nothing is known.

        Args:
            broker: whose table it is.
            table: as the last line on a member left it.
            topics: those known so far of the members that send heartbeats there.
            events: of the group.
        """
        versions: dict[Member, dict[str, int]] = {}
        events = list(events)
        for topic in sorted(table.topics):
            lacking = [member for member, known in topics.items() if topic not in known]
            version = self._next(broker, topic, table) if len(lacking) == 1 else None
            if version is not None and not _moving(topic, version, table, events):
                versions.setdefault(lacking[0], {})[topic] = version
        return versions

    def _next(self, broker: str, topic: str, table: SubscriptionTable) -> int | None:
        """The first one newer than the table's after its line, if it came when it was set."""
        known = table.versions.get(topic)
        for second_ms, position, version in self._lines.get((broker, topic), ()):
            if (second_ms, position) > table.line and known is not None and version > known:
                in_time = second_ms < table.line[0] + HEARTBEAT_SEEN_MS
                at_once = second_ms - SAME_MOMENT_MS <= version < second_ms + SECOND_MS
                return version if in_time and at_once else None
        return None


def _moving(topic: str, at_ms: int, table: SubscriptionTable, events: Iterable[Row]) -> bool:
    """True if queues may have changed hands then.

    The reporter's own subscription is over once its subVersion rose: it has its queues.
    """
    for row in events:
        if at_ms - RESETTLE_MS <= row["event_ms"] <= at_ms:
            subscribed = row["event_type"] == SUBSCRIBE and row["topic"] == topic
            own = Member(row["client_id"], row["channel_id"]) == table.reporter
            if not (subscribed and own and row["event_ms"] < table.versions[topic]):
                return True
    return False

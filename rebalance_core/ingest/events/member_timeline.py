"""Members of one group over time: joins, leaves, losses and changed subscriptions
(rocketmq.md §6.2).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rebalance_core.ingest.clock_offsets import of_clock
from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.events.connections import (
    HEARTBEAT_SEEN_MS,
    SAME_MOMENT_MS,
    ConnectedMember,
    ConnectionChange,
    Connections,
    SubscriptionTable,
)
from rebalance_core.ingest.events.listings import last_list_without, listed_clients, timed_evidence
from rebalance_core.ingest.events.proxies import BEHIND
from rebalance_core.ingest.events.subscription_versions import SubscriptionVersions
from rebalance_core.ingest.events.unlogged_members import DUMP_MS, not_logged
from rebalance_core.ingest.events.unsubscriptions import Unsubscriptions
from rebalance_core.ingest.evidence import Evidence
from rebalance_core.ingest.parse.wire_versions import version_of_ordinal
from rebalance_core.ingest.rows import ORDER, Event, Finding, event
from rebalance_core.model.events import (
    CONSUMER_JOIN,
    CONSUMER_LEAVE,
    CONSUMER_LOST,
    EXPIRED,
    OBSERVED,
    SUBSCRIBE,
    UNSUBSCRIBE,
)
from rebalance_core.model.queue import is_retry_topic
from rebalance_core.model.times import MINUTE_MS, SECOND_MS
from rebalance_core.protocol.client_reports import tells_start

if TYPE_CHECKING:
    from rebalance_core.ingest.evidence_types import (
        ConsumerClosedPiece,
        ConsumerConnectedPiece,
        ConsumerDataPiece,
        ConsumerDataValues,
        ConsumerExpiredPiece,
        ConsumerLeftPiece,
        ConsumerListedPiece,
        ConsumerListedValues,
        LoggedMembersEvidence,
        MembersListedPiece,
        TopicsListedPiece,
    )

RECONNECT_MS = MINUTE_MS
"""A client that subscribed this long before it registered already existed: it is reconnecting."""


@dataclass
class MemberTimeline:
    """Follows one group through its brokers' logs.

    ``subscription_versions`` are those in the group's lines that name no member. ``joins`` has the
    last join event of each member, which other files may complete; ``findings`` has the joins that
    only a dump shows; ``at_one_broker`` has events of live members that only one broker saw;
    ``after_logs`` has the events shown only by dumps after the end of a broker's log;
    ``by_silence`` has the `ORDER` of changed subscriptions that no line of the member itself shows,
    inferred because none of its heartbeats changed the broker's table back.
    """

    group: str
    context: ClusterContext
    subscription_versions: SubscriptionVersions
    unsubscriptions: Unsubscriptions
    events: list[Event] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    after_logs: list[Event] = field(default_factory=list)
    by_silence: set[int] = field(default_factory=set)
    at_one_broker: list[Event] = field(default_factory=list)
    joins: dict[ConnectedMember, Event] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    _connections: dict[str, Connections] = field(default_factory=dict)
    _channels: dict[tuple[str, str], str] = field(default_factory=dict)
    _topics: dict[ConnectedMember, frozenset[str]] = field(default_factory=dict)
    _changed_ms: dict[ConnectedMember, int] = field(default_factory=dict)
    _tables: dict[str, SubscriptionTable] = field(default_factory=dict)
    _ended: set[str] = field(default_factory=set)
    _stopped: set[str] = field(default_factory=set)
    """Brokers that shut down, according to their own logs: they close every connection."""
    _ever: set[str] = field(default_factory=set)
    _lists: dict[str, dict[int, set[str]]] = field(default_factory=dict)
    """For each broker, the client ids in each complete list of its members, by the list's time."""

    def take(self, pieces: list[Evidence]) -> None:
        """Read the evidence of the group, in any order."""
        timed = sorted(
            timed_evidence(self.group, pieces, self.context),
            key=lambda item: (item[0], item[1].place, item[1].position),
        )
        timed.reverse()
        self._lists = listed_clients(pieces, self.context)
        while timed:
            at_ms, piece = timed.pop()  # the next ones do not need it
            self._settle_tables(at_ms)
            if piece.kind == "broker_starting":
                self._stopped.discard(piece.place)
                self._tables.pop(piece.place, None)
                for client_id, connections in self._connections.items():
                    self._record(client_id, connections.restart(piece.place, at_ms, piece.source))
            elif piece.kind == "broker_out":
                if piece.source.startswith("brokers/"):
                    self._stopped.add(piece.place)
                self._tables.pop(piece.place, None)
                for connections in self._connections.values():
                    connections.forget(piece.place)
            elif piece.kind == "log_ended":
                self._log_ended(piece.place, at_ms)
            elif piece.kind == "members_listed":
                self._table_listed(piece, at_ms)
            elif piece.kind == "topics_listed":
                self._topics_listed(piece, at_ms)
            elif piece.kind == "consumer_listed":
                self._listed(piece, at_ms)
            else:
                self._line(piece, at_ms)
        self._settle_tables(self.context.end_ms)
        for client_id, connections in self._connections.items():
            self._record(client_id, connections.finish(self.context.end_ms))
        # no longer needed a million lines later
        self._connections, self._channels, self._topics = {}, {}, {}

    def _log_ended(self, broker: str, at_ms: int) -> None:
        for client_id, connections in self._connections.items():
            self._record(client_id, connections.settle(at_ms))
        self._ended.add(broker)

    def _line(self, piece: LoggedMembersEvidence, at_ms: int) -> None:
        if piece.kind == "consumer_connected":
            self._connected(piece, at_ms)
        elif piece.kind == "consumer_data":
            self._data(piece, at_ms)
        else:
            self._removed(piece, at_ms)

    def _connected(self, piece: ConsumerConnectedPiece, at_ms: int) -> None:
        v = piece.values
        client_id = v["client_id"]
        version = None if v["version"] is None else version_of_ordinal(v["version"])
        if version is not None:
            self.versions[client_id] = version
        self._channels[piece.place, v["channel"]] = client_id
        connections = self._connections_of(client_id)
        changes = connections.connect(piece.place, v["channel"], at_ms, piece.source)
        self._record(client_id, changes)

    def _listed(self, piece: ConsumerListedPiece, at_ms: int) -> None:
        v = piece.values
        client_id, channel = v["client_id"], v["channel"]
        self._channels[piece.place, channel] = client_id
        connections = self._connections_of(client_id)
        # a broker that has started since then has no earlier members
        later = at_ms > self.context.start_ms or self.context.starts_at(piece)
        detail = None if later else OBSERVED
        changes = connections.connect(piece.place, channel, at_ms, piece.source)
        first_new = len(self.events)
        self._record(client_id, changes, detail)
        if v.get("ended") and detail is None:
            self.after_logs += self.events[first_new:]
        elif detail is None and any(change.joined for change in changes):
            finding = not_logged(self.group, client_id, "join", piece.source, at_ms)
            self.findings.append(finding)
        if v.get("later") and v["topics"] is not None:
            # other members had these, so it may have had them from its start; the others come later
            had = frozenset[str]().union(*self._topics.values())
            v = {**v, "topics": [t for t in v["topics"] if t in had] or v["topics"]}
        self._first_listed(v, at_ms)

    def _first_listed(self, v: ConsumerListedValues, at_ms: int) -> None:
        """Record the settings of a member listed in a dump, unless a file stated them before."""
        name = self._connections_of(v["client_id"]).process_of(v["channel"])
        member = ConnectedMember(v["client_id"], str(name))
        if name is not None and member not in self._topics and v["topics"] is not None:
            topics = frozenset(t for t in v["topics"] if not is_retry_topic(t))
            self._first_data(member, topics, v)

    def _connections_of(self, client_id: str) -> Connections:
        connections = self._connections.get(client_id)
        if connections is None:
            connections = Connections(ended=self._ended, timed="#" in client_id)
            self._connections[client_id] = connections
        return connections

    def _table_listed(self, piece: MembersListedPiece, at_ms: int) -> None:
        """Record a dump from a broker whose log has ended, with all its connections."""
        listed = piece.values["members"]
        first_new = len(self.events)
        for client_id in sorted({*self._connections, *listed}):
            members = listed.get(client_id, [])
            channels = [v["channel"] for v in members]
            self._channels |= {(piece.place, channel): client_id for channel in channels}
            connections = self._connections_of(client_id)
            self._record(client_id, connections.relist(piece.place, channels, at_ms, piece.source))
            for v in members:
                self._first_listed(v, at_ms)
        self.after_logs += self.events[first_new:]

    def _topics_listed(self, piece: TopicsListedPiece, at_ms: int) -> None:
        """Record a client's answer about its topics after the end of every broker's log."""
        client_id, first_new = piece.values["client_id"], len(self.events)
        live = self._connections_of(client_id).live
        member = ConnectedMember(client_id, live[0]) if len(live) == 1 else None
        if member in self._topics:
            self._changed(member, frozenset(piece.values["topics"]), at_ms, piece.source, {})
        self.after_logs += self.events[first_new:]

    def _removed(
        self, piece: ConsumerLeftPiece | ConsumerClosedPiece | ConsumerExpiredPiece, at_ms: int
    ) -> None:
        channel = piece.values["channel"]
        client_id = piece.values.get("client_id") or self._channels.get((piece.place, channel))
        if piece.kind != "consumer_left" and piece.place in self._stopped:
            return  # the broker closes its connections: their clients may be alive
        if client_id is None:
            return  # a scan does not name the client, and this one registered before the log begins
        connections = self._connections_of(client_id)
        if client_id not in self._ever:
            lists = self._lists.get(piece.place, {})
            since_ms, until_ms = self.context.start_ms, at_ms - DUMP_MS
            lacked_ms = last_list_without(lists, client_id, since_ms, until_ms)
            joined_ms = max(min(self.context.start_ms, at_ms), lacked_ms)
            if lacked_ms or any(ms <= at_ms for ms in self.context.starts_at(piece)):
                self.findings.append(
                    not_logged(self.group, client_id, "join", piece.source, joined_ms)
                )  # any member joined after that list or start
            self._record(
                client_id,
                connections.connect(piece.place, channel, joined_ms, piece.source),
                None if lacked_ms else OBSERVED,
            )
        graceful = piece.kind == "consumer_left"
        self._record(
            client_id,
            connections.remove(
                piece.place,
                channel,
                at_ms,
                piece.source,
                scanned=piece.kind == "consumer_expired",
                graceful=graceful,
                everywhere=graceful and not piece.place.startswith(BEHIND),
            ),
        )

    def _record(
        self, client_id: str, changes: list[ConnectionChange], detail: str | None = None
    ) -> None:
        self._ever.add(client_id)
        for change in changes:
            member = ConnectedMember(client_id, change.channel)
            if change.broker:
                self._seen_by_one(change, member)
            elif change.joined:
                row = self._event(CONSUMER_JOIN, change.at_ms, change.source, member)
                if detail is not None:
                    row["detail"] = detail
                self.joins[member] = row
                self._topics.pop(member, None)
            elif change.graceful:
                self._event(CONSUMER_LEAVE, change.at_ms, change.source, member)
            else:
                row = self._event(CONSUMER_LOST, change.at_ms, change.source, member)
                if change.scanned:
                    row["detail"] = EXPIRED

    def _seen_by_one(self, change: ConnectionChange, member: ConnectedMember) -> None:
        if change.broker in self.context.slave_places or change.broker.startswith(BEHIND):
            return  # clients query no slave beside its master; a proxy's connection is not a broker
        kind = CONSUMER_JOIN if change.joined else CONSUMER_LOST
        self.at_one_broker.append(
            event(
                kind,
                change.at_ms,
                change.source,
                consumer_group=self.group,
                client_id=member.client_id,
                channel_id=member.channel_id,
                broker_name=change.broker,
                detail=None if change.joined else EXPIRED,
            )
        )

    def _event(self, kind: str, at_ms: int, source: str, member: ConnectedMember) -> Event:
        row = event(
            kind,
            at_ms,
            source,
            consumer_group=self.group,
            client_id=member.client_id,
            channel_id=member.channel_id,
        )
        row[ORDER] = len(self.events)
        self.events.append(row)
        return row

    def _data(self, piece: ConsumerDataPiece, at_ms: int) -> None:
        """Record the connected member's subscriptions from its heartbeats to this broker."""
        channel = piece.values["channel"]
        client_id = self._channels.get((piece.place, channel))
        name = None
        if client_id is not None:
            name = self._connections[client_id].process_of(channel)
        if client_id is None or name is None:
            return  # registered before the log begins, and no line names its client
        piece = of_clock(piece, self.context.client_clocks.get(client_id, 0))
        member = ConnectedMember(client_id, name)
        topics = frozenset(t for t in piece.values["topics"] if not is_retry_topic(t))
        again = piece.place in self._tables and self._tables[piece.place].knows(member)
        table = self._tables.setdefault(piece.place, SubscriptionTable())
        table.report(member, topics, at_ms, piece, self.context.time_of(piece))
        if member not in self._topics:
            self._first_data(member, topics, piece.values)
        elif again or at_ms > self._changed_ms.get(member, 0) + SAME_MOMENT_MS:
            second_ms = self.context.time_of(piece)
            versions = {t: ms for t, ms in table.versions.items() if ms < second_ms + SECOND_MS}
            self._changed(member, topics, at_ms, piece.source, versions)

    def _settle_tables(self, now_ms: int) -> None:
        """Give members that stayed silent the subscriptions in the last heartbeat that the broker
        logged.

        After its last line, a log's silence means nothing.
        """
        for broker, table in self._tables.items():
            until_ms = min(now_ms, self.context.logged.get(broker, now_ms))
            if not table.settled and until_ms >= table.at_ms + HEARTBEAT_SEEN_MS:
                table.settled = True
                if not self.subscription_versions.silent_after(broker, table):
                    continue
                topics = self._topics_at(broker)
                member_topics = self.subscription_versions.of_silent(
                    broker, table, topics, self.events
                )
                first_new = len(self.events)
                for member in topics:
                    subscribed = member_topics.get(member, {})
                    self._changed(member, table.topics, table.at_ms, table.source, subscribed)
                self.by_silence |= {
                    row[ORDER]
                    for row in self.events[first_new:]
                    if (row["client_id"], row["channel_id"]) != table.reporter
                }

    def _topics_at(self, broker: str) -> dict[ConnectedMember, frozenset[str]]:
        """Return the known topics of the members that send heartbeats to the broker."""
        members = [
            ConnectedMember(client_id, str(name))
            for client_id, connections in self._connections.items()
            for channels in [connections.by_broker.get(broker, {})]
            for name in {connections.process_of(channel) for channel in channels} - {None}
        ]
        return {member: self._topics[member] for member in members if member in self._topics}

    def _first_data(
        self,
        member: ConnectedMember,
        topics: frozenset[str],
        stated: ConsumerDataValues | ConsumerListedValues,
    ) -> None:
        self._topics[member] = topics
        row = self.joins[member]
        row["subscriptions"] = sorted(topics)
        model, where = stated["message_model"], stated["consume_from_where"]
        if model is not None:
            row["message_model"] = model
        if where is not None and tells_start(member.client_id):
            row["consume_from_where"] = where
        known_ms = stated["known_ms"]
        if known_ms is None or known_ms > row["event_ms"] - RECONNECT_MS:
            return
        if self.context.tells_since(known_ms):
            return  # it knew no broker: its topics had no route, or no broker was up
        if row.get("detail") is None and not self._was_there(member.client_id, row):
            row["event_ms"] = max(known_ms, self.context.start_ms)
            if known_ms <= self.context.start_ms:
                row["detail"] = OBSERVED

    def _was_there(self, client_id: str, join: Event) -> bool:
        return any(
            row["client_id"] == client_id and row is not join and row[ORDER] < join[ORDER]
            for row in self.events
        )

    def _changed(
        self,
        member: ConnectedMember,
        topics: frozenset[str],
        at_ms: int,
        source: str,
        subscribed: Mapping[str, int],
    ) -> None:
        """Record that the member's topics changed; `subscribed` has its own subVersions, by topic.

        A subVersion is the time at which it subscribed, or at which its queues changed before a
        line showed it, so it lies between the subscription and the line.
        """
        before = self._topics[member]
        if topics == before:
            return
        # a silence is dated by the preceding line, which the member may not have seen
        since_ms = max(self.joins[member]["event_ms"], self._changed_ms.get(member, 0))
        at_ms = max(at_ms, since_ms)
        self._topics[member] = topics
        self._changed_ms[member] = at_ms
        for topic in sorted(topics - before):
            own_ms = subscribed.get(topic, at_ms)
            when = own_ms if own_ms >= since_ms else at_ms
            self._event(SUBSCRIBE, when, source, member)["topic"] = topic
        for topic in sorted(before - topics):
            unsubscribed = self.unsubscriptions.before(
                member.client_id, topic, since_ms, at_ms, unseen=bool(self._ended)
            )
            when, where = unsubscribed or (at_ms, source)
            self._event(UNSUBSCRIBE, when, where, member)["topic"] = topic

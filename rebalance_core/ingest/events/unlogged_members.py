"""Who was a member when, by a group's own events; events of members that were not there."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.collection import PROXIES
from rebalance_core.ingest.events.connections import (
    HEARTBEAT_SEEN_MS,
    SAME_MOMENT_MS,
    ConnectedMember,
    ProcessNames,
    SubscriptionTable,
    named_client,
)
from rebalance_core.ingest.events.proxies import BEHIND
from rebalance_core.ingest.evidence import Evidence, is_on_group
from rebalance_core.ingest.fact import file_of
from rebalance_core.ingest.rows import Event, Finding, event, event_order, finding
from rebalance_core.model.events import (
    CONSUMER_JOIN,
    CONSUMER_LEAVE,
    CONSUMER_LOST,
    CONSUMER_RESUME,
    CONSUMER_SUSPEND,
    OBSERVED,
    SUBSCRIBE,
)
from rebalance_core.model.queue import is_retry_topic
from rebalance_core.model.times import HEARTBEAT_MS, MINUTE_MS, REBALANCE_WAIT_MS, SECOND_MS
from rebalance_core.model.verdicts import WARNING
from rebalance_core.protocol.client_reports import tells_start
from rebalance_core.protocol.settling_windows import ROUTE_MS

if TYPE_CHECKING:
    from rebalance_core.ingest.evidence_types import (
        ClientPiece,
        GroupConnectionPiece,
        GroupEvidence,
        HeartbeatPiece,
        ListedClientPiece,
        MemberPiece,
        NoMembersPiece,
        PausedPiece,
    )

    Listed: TypeAlias = MemberPiece | GroupConnectionPiece | NoMembersPiece

# Who was a member when, by a group's own events.


class Presence:
    """Memberships of the members of one group: client id, channel, first and last moment."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.memberships: dict[str, list[tuple[str | None, int, int | None]]] = {}
        for row in sorted(events, key=event_order):
            memberships = self.memberships.setdefault(row["client_id"], [])
            channel = row.get("channel_id")
            if row["event_type"] == CONSUMER_JOIN:
                memberships.append((channel, row["event_ms"], None))
            elif row["event_type"] in (CONSUMER_LEAVE, CONSUMER_LOST):
                for index, (name, since, until) in enumerate(memberships):
                    if name == channel and until is None:
                        memberships[index] = (name, since, row["event_ms"])

    def channels(self, client_id: str, at_ms: int) -> list[str | None]:
        """Return the channels of the client's processes that are there at that moment."""
        return [
            name
            for name, since, until in self.memberships.get(client_id, ())
            if since <= at_ms and (until is None or at_ms < until)
        ]

    def processes(self, at_ms: int) -> int:
        """Count the processes that are there at that moment."""
        return sum(len(self.channels(client_id, at_ms)) for client_id in self.memberships)

    def clients(self, from_ms: int, to_ms: int) -> list[str]:
        """Return the client ids that were there all the time between."""
        return sorted(
            client_id
            for client_id, memberships in self.memberships.items()
            if any(
                since <= from_ms and (until is None or to_ms < until)
                for _, since, until in memberships
            )
        )

    def present_between(self, client_id: str, from_ms: int, to_ms: int) -> bool:
        """Return True if the client came, went or was there between."""
        return any(
            since <= to_ms and (until is None or from_ms <= until)
            for _, since, until in self.memberships.get(client_id, ())
        )

    def of_instance(self, instance: str | None, at_ms: int) -> str | None:
        """Return the only member whose id has that instance name (``ip@instance…``), or None."""
        members = [
            client_id
            for client_id in self.memberships
            if instance
            and client_id.partition("@")[2].startswith(instance)
            and self.channels(client_id, at_ms)
        ]
        return members[0] if len(members) == 1 else None


# Events of members that are not there: what one file states and another excludes.


def without_contradictions(
    group: str, events: Iterable[Event]
) -> tuple[list[Event], list[Finding]]:
    """Return the events in order without those of members that are not there; findings on these.

    A dump that lists a member no more dates its loss; a line that names it later, with no join
    between, was left when the join's line was dropped.
    """
    live: set[tuple[str, str | None]] = set()
    kept: list[Event] = []
    dropped: dict[str, list[Event]] = {}
    for row in sorted(events, key=event_order):
        member = (row["client_id"], row.get("channel_id"))
        if row["event_type"] == CONSUMER_JOIN:
            live.add(member)
        elif member not in live:
            dropped.setdefault(row["client_id"], []).append(row)
            continue
        elif row["event_type"] in (CONSUMER_LEAVE, CONSUMER_LOST):
            live.discard(member)
        kept.append(row)
    return kept, [_finding(group, client_id, rows) for client_id, rows in dropped.items()]


def _finding(group: str, client_id: str, rows: list[Event]) -> Finding:
    return finding(
        "INGEST_CONTRADICTION",
        f"{len(rows)} events of {client_id} are not used: another file shows that it was gone by "
        "then, and no file has its return.",
        "Collect broker.log of every broker; brokers drop INFO lines under load.",
        WARNING,
        consumer_group=group,
        client_id=client_id,
        first_ms=rows[0]["event_ms"],
        last_ms=rows[-1]["event_ms"],
        evidence={row["source"]: row["event_type"] for row in rows},
    )


# CONSUMER_SUSPEND and CONSUMER_RESUME from the client's own log: brokers do not learn of them.

LATE_LINE_MS = 2_000
"""Pulls of a suspended consumer are put off by 1 s and logged: one may follow its resumption.
"""
PUT_OFF_MS = 30_000
"""A consumer that is suspended puts a pull off more often: none waits at a broker for so long."""


def suspension_events(
    group: str,
    pieces: Sequence[Evidence],
    names: ProcessNames,
    presence: Presence,
    context: ClusterContext,
) -> list[Event]:
    """Return the suspensions and resumptions of members that are there.

    A member that was suspended before its log begins shows by the pulls that it puts off, whose
    lines name its process; a member that no longer puts them off, while its log goes on, has
    resumed.
    """
    rows: list[Event] = []
    state: dict[str, tuple[bool, int]] = {}
    put_off: dict[str, PausedPiece] = {}
    on_group = filter(is_on_group, pieces)
    stated = [p for p in on_group if p.kind in ("suspended", "resumed", "paused")]
    of_process: dict[tuple[str, object], str] = {}
    for pull in stated:
        if pull.kind == "paused":
            of_instance = presence.of_instance(pull.values["instance"], context.time_of(pull))
            if of_instance is not None:
                of_process[pull.place, pull.values.get("pid")] = of_instance
    for piece in sorted(stated, key=lambda p: (context.time_of(p), p.place, p.position)):
        at_ms, process = context.time_of(piece), (piece.place, piece.values.get("pid"))
        client_id = names.client_of(piece) or of_process.get(process)
        channels = presence.channels(client_id, at_ms) if client_id is not None else []
        if client_id is None or not channels:
            continue
        suspended, since = state.get(client_id, (False, 0))
        put_off |= {client_id: piece} if piece.kind == "paused" else {}
        if piece.kind == "paused" and (suspended or at_ms - since < LATE_LINE_MS):
            continue
        wanted = piece.kind != "resumed"
        state[client_id] = (wanted, at_ms)
        if wanted != suspended:
            kind = CONSUMER_SUSPEND if wanted else CONSUMER_RESUME
            rows.append(_of_suspension(kind, at_ms, piece, group, client_id, channels[0]))
    for client_id, piece in put_off.items():
        at_ms = context.time_of(piece) + SECOND_MS
        lines = (context.time_of(other) for other in pieces if other.place == piece.place)
        channels = presence.channels(client_id, at_ms)
        suspended, since = state.get(client_id, (False, 0))
        goes_on = suspended and since <= at_ms and max(lines) > at_ms + PUT_OFF_MS
        if goes_on and channels:
            kind = CONSUMER_RESUME
            rows.append(_of_suspension(kind, at_ms, piece, group, client_id, channels[0]))
    return rows


def _of_suspension(
    kind: str, at_ms: int, piece: Evidence, group: str, client_id: str, channel_id: str | None
) -> Event:
    return event(
        kind, at_ms, piece.source, consumer_group=group, client_id=client_id, channel_id=channel_id
    )


# When a client called unsubscribe(), by its own log: brokers learn it with a later heartbeat.

UNSUBSCRIBE_MARGIN_MS = 10_000
UNSUBSCRIBE_KNOWN_MS = REBALANCE_WAIT_MS + HEARTBEAT_MS + UNSUBSCRIBE_MARGIN_MS
"""unsubscribe(): an own pass, then brokers learn it by a heartbeat (rocketmq.md §6.4)."""


class Unsubscriptions:
    """Lines in which clients of one group log that they unsubscribe from a topic."""

    def __init__(
        self, pieces: Iterable[GroupEvidence], names: ProcessNames, context: ClusterContext
    ) -> None:
        self._lines = sorted(
            (context.time_of(p), p.source, p.values["topic"], names.client_of(p))
            for p in pieces
            if p.kind == "unsubscribed"
        )

    def before(
        self, client_id: str, topic: str, since_ms: int, known_ms: int, *, unseen: bool
    ) -> tuple[int, str] | None:
        """Return time and line of the unsubscription that brokers knew of at `known_ms`.

        Args:
            client_id: the member.
            topic: that it gave up.
            since_ms: when it subscribed it still.
            known_ms: when a broker or the member itself first states it.
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

TopicsByMember = Mapping[ConnectedMember, frozenset[str]]


class SubscriptionVersions:
    """Lines on subscriptions that name no member, by broker and topic."""

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

        A heartbeat logs the topics that it adds and removes before the line with its member: where
        that line was dropped, these still show that some member subscribes something else.
        """
        moves = self._moves.get(broker, [])
        after = bisect_right(moves, table.line)
        return after == len(moves) or moves[after][0] >= table.line[0] + HEARTBEAT_SEEN_MS

    def of_silent(
        self, broker: str, table: SubscriptionTable, topics: TopicsByMember, events: Iterable[Event]
    ) -> dict[ConnectedMember, dict[str, int]]:
        """Return when a silent member subscribed a topic that another member brought before.

        The next newer subVersion is its own if it alone lacked the topic and nothing moved the
        queues of the others; else nothing is known.

        Args:
            broker: whose table it is.
            table: as the last line on a member left it.
            topics: those known so far of the members that send heartbeats there.
            events: of the group.
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
        """Return the next newer subVersion of the topic, if it was logged as soon as it was set."""
        current = table.versions.get(topic)
        for second_ms, position, version in self._lines.get((broker, topic), ()):
            if (second_ms, position) > table.line and current is not None and version > current:
                in_time = second_ms < table.line[0] + HEARTBEAT_SEEN_MS
                at_once = second_ms - SAME_MOMENT_MS <= version < second_ms + SECOND_MS
                return version if in_time and at_once else None
        return None


def _moving(topic: str, at_ms: int, table: SubscriptionTable, events: Iterable[Event]) -> bool:
    """Return True if queues may have been changing owners at that time.

    The reporter's own subscription is over once its subVersion rose: it has its queues.
    """
    for row in events:
        if at_ms - RESETTLE_MS <= row["event_ms"] <= at_ms:
            subscribed = row["event_type"] == SUBSCRIBE and row["topic"] == topic
            of_reporter = ConnectedMember(row["client_id"], row["channel_id"]) == table.reporter
            if not (subscribed and of_reporter and row["event_ms"] < table.versions[topic]):
                return True
    return False


# Members that dumps or their own logs show and no broker's log: lines are dropped under load.
#
# Brokers may discard INFO lines, so a join or a graceful leave can be missing
# (rocketmq.md §10.1).

DUMP_MS = 10_000
"""A dump's time is its command's start; member changes so near to it are no contradiction."""
BATCH_MS = MINUTE_MS
"""Dumps of one group at all brokers are taken one after the other."""


def unlogged_joins(
    group: str,
    pieces: Sequence[GroupEvidence],
    presence: Presence,
    names: ProcessNames,
    context: ClusterContext,
) -> tuple[list[Event], list[Finding]]:
    """Return joins (and leaves) of members that other files show and no broker's log has; findings.

    A member whose own log has its heartbeats joined with the first of them; a member that
    ``consumerStatus`` lists joined at the start that it states; any other was there before, also
    where consumerStatus alone names it: mqadmin asks whom a broker lists. A broker that lists a
    connection whose line it has, of a process that left, has a stale list.
    """
    logged = {(p.place, p.values["channel"]) for p in pieces if p.kind == "consumer_connected"}
    started = {
        client_id: piece.values["start_ms"]
        for piece in pieces
        if piece.kind == "client" and (client_id := piece.values.get("client_file"))
    }
    rows: list[Event] = []
    findings: list[Finding] = []
    added: set[str] = set()
    mentions = [
        p
        for p in pieces
        if p.kind in ("heartbeat", "member", "client", "listed_client")
        and context.time_of(p) >= context.start_ms
    ]
    for piece in sorted(
        mentions,
        key=lambda p: (
            p.kind != "heartbeat",
            p.kind == "listed_client",
            context.time_of(p),
            p.source,
        ),
    ):
        client_id = named_client(piece)
        if not client_id or client_id in added:
            continue
        at_ms = context.time_of(piece)
        if presence.present_between(client_id, at_ms - DUMP_MS, at_ms + DUMP_MS):
            continue
        if client_id in presence.memberships and piece.kind != "member":
            continue
        if piece.kind == "member" and (piece.place, piece.values["client_addr"]) in logged:
            continue
        added.add(client_id)
        when = at_ms if piece.kind == "heartbeat" else started.get(client_id)
        if client_id in presence.memberships or (when is None and _is_new(piece, at_ms, context)):
            when = at_ms
        rows.append(_join(group, piece, client_id, when, context))
        if piece.kind == "heartbeat":
            rows += _own_leave(group, pieces, client_id, at_ms, names, context)
        findings.append(not_logged(group, client_id, "join", piece.source, rows[-1]["event_ms"]))
    return rows, findings


def _is_new(piece: Evidence, at_ms: int, context: ClusterContext) -> bool:
    """Return True if the listing server's log has a start of the server and had ended."""
    place = piece.place
    starts = context.starts.get(place) or context.proxies.starts.get(place)
    return bool(starts) and context.log_had_ended(place, at_ms)


def unlogged_leaves(
    group: str, pieces: Sequence[GroupEvidence], presence: Presence, context: ClusterContext
) -> tuple[list[Event], list[Finding]]:
    """Return losses of members that should be there and no broker lists any more; findings.

    Only dumps of all brokers that ever had a member, within a minute, count: a broker that knows no
    member prints nothing, which a failure does too. Where none of them knows a member, that counts
    if ``consumerProgress -s true`` of that time shows no holder of any queue either. A member that
    answers ``consumerStatus`` then is there.
    """
    answered = [
        (context.time_of(p), named_client(p))
        for p in pieces
        if p.kind in ("client", "listed_client")
    ]
    rows: list[Event] = []
    findings: list[Finding] = []
    of_group = {p.place for p in pieces if p.kind in ("consumer_connected", "member") and p.place}
    of_group -= context.slave_places  # what masters do not list and a slave does is listed
    of_group = {place for place in of_group if not place.startswith(BEHIND)}
    # brokers do not list who is behind a proxy, and each proxy lists who is behind any
    behind = {
        p.values["client_id"]
        for p in pieces
        if (p.kind == "consumer_connected" and p.place.startswith(BEHIND))
        or (p.kind == "member" and p.place.startswith(PROXIES))
    }
    unheld = _unheld(pieces, context)
    for dumps in _batches(pieces, context):
        batch: list[Listed] = [p for p in dumps if p.kind != "no_members"]
        first_ms = context.time_of(dumps[0])
        lost_ms = last_ms = context.time_of(dumps[-1])
        if not batch:
            seen = [ms for ms in unheld if first_ms - BATCH_MS < ms < last_ms + BATCH_MS]
            batch = dumps if seen else []
            lost_ms = min([first_ms, *seen])
        if not batch or of_group - {p.place for p in batch}:
            continue
        listed = {p.values["client_id"] for p in batch if p.kind == "member"}
        listed |= {
            client_id
            for ms, client_id in answered
            if client_id and first_ms - DUMP_MS <= ms <= last_ms + BATCH_MS
        }
        if not any(p.place.startswith(PROXIES) for p in batch):
            listed |= behind
        gone = set(presence.clients(first_ms - DUMP_MS, last_ms + DUMP_MS)) - listed
        for client_id in sorted(gone - {row["client_id"] for row in rows}):
            for channel in presence.channels(client_id, lost_ms):
                rows.append(
                    event(
                        CONSUMER_LOST, lost_ms, batch[-1].source, consumer_group=group,
                        client_id=client_id, channel_id=channel,
                    )
                )  # fmt: skip
            findings.append(not_logged(group, client_id, "leave", batch[-1].source, lost_ms))
    return rows, findings


def _unheld(pieces: Iterable[GroupEvidence], context: ClusterContext) -> list[int]:
    """Return when ``consumerProgress -s true`` showed queues and no holder."""
    holders: dict[str, tuple[int, bool]] = {}
    for piece in pieces:
        if piece.kind == "queue_progress" and piece.values["with_clients"]:
            dump = file_of(piece.source)
            shown = piece.values["client_ip"] is not None or piece.values.get("partial", False)
            held = holders.get(dump, (0, False))[1] or shown
            holders[dump] = (context.time_of(piece), held)
    return sorted(at_ms for at_ms, held in holders.values() if not held)


def _batches(pieces: Iterable[GroupEvidence], context: ClusterContext) -> Iterator[list[Listed]]:
    """Yield dumps taken together: each broker once, all within `BATCH_MS`."""
    batch: list[Listed] = []
    dumps: dict[str, str] = {}
    listed = [
        p
        for p in pieces
        if p.kind in ("member", "group_connection", "no_members")
        and p.place
        and not p.values.get("partial")
    ]
    for piece in sorted(listed, key=lambda p: (context.time_of(p), p.source)):
        dump = file_of(piece.source)
        late = batch and context.time_of(piece) >= context.time_of(batch[0]) + BATCH_MS
        if late or dumps.setdefault(piece.place, dump) != dump:
            yield batch
            batch, dumps = [], {piece.place: dump}
        batch.append(piece)
    if batch:
        yield batch


def _join(
    group: str,
    piece: HeartbeatPiece | MemberPiece | ClientPiece | ListedClientPiece,
    client_id: str,
    when: int | None,
    context: ClusterContext,
) -> Event:
    observed = when is None or when <= context.start_ms
    # of an answer to consumerStatus it is the consumer's own field, else its heartbeat's
    states_start = piece.kind == "client" or tells_start(client_id)
    model = where = None
    topics: list[str] = []
    if piece.kind == "heartbeat":
        topics = piece.values["topics"]
    elif piece.kind == "member":
        topics = [topic for topic, _ in piece.values["subscriptions"] or ()]
    if piece.kind != "listed_client":
        model = piece.values["message_model"]
        where = piece.values["consume_from_where"] if states_start else None
    row = event(
        CONSUMER_JOIN,
        context.start_ms if when is None or observed else when,
        piece.source,
        consumer_group=group,
        client_id=client_id,
        message_model=model,
        consume_from_where=where,
        detail=OBSERVED if observed else None,
    )
    if topics:
        row["subscriptions"] = sorted({t for t in topics if not is_retry_topic(t)})
    return row


def _own_leave(
    group: str,
    pieces: Iterable[GroupEvidence],
    client_id: str,
    joined_ms: int,
    names: ProcessNames,
    context: ClusterContext,
) -> list[Event]:
    """Return the member's leave if the client's own log shows that it unregistered."""
    left = [p for p in pieces if p.kind == "left_broker"]
    for piece in sorted(left, key=context.time_of):
        at_ms = context.time_of(piece)
        if at_ms > joined_ms and names.client_of(piece) == client_id:
            return [
                event(
                    CONSUMER_LEAVE, at_ms, piece.source, consumer_group=group, client_id=client_id
                )
            ]
    return []


def not_logged(group: str, client_id: str, what: str, source: str, at_ms: int) -> Finding:
    """Return the finding that a ``join`` or ``leave`` is in no broker's log."""
    return finding(
        f"INGEST_{what.upper()}_NOT_LOGGED",
        f"No broker's log records the {what} of {client_id}; the time is taken from {source}.",
        "Collect broker.log of every broker; brokers drop INFO lines under load.",
        WARNING,
        consumer_group=group,
        client_id=client_id,
        first_ms=at_ms,
        last_ms=at_ms,
        evidence={"source": source},
    )

"""Members of a group according to dumps, as evidence alongside the brokers' logs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, TypeGuard

from rebalance_core.contracts.document_facts import SUBJECTS
from rebalance_core.contracts.fact_declaration import GROUP
from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.events.connections import ProcessNames
from rebalance_core.ingest.evidence import Evidence, is_on_group
from rebalance_core.ingest.fact import file_of
from rebalance_core.ingest.parse.inside_second import inside_second
from rebalance_core.ingest.piece import Piece
from rebalance_core.ingest.rows import Event, Finding, finding
from rebalance_core.model.events import CONSUMER_JOIN, CONSUMER_LEAVE, CONSUMER_LOST
from rebalance_core.model.queue import is_retry_topic
from rebalance_core.model.times import HEARTBEAT_MS, SECOND_MS, utc
from rebalance_core.model.verdicts import WARNING
from rebalance_core.protocol.settling_windows import ROUTE_MS

if TYPE_CHECKING:
    from rebalance_core.ingest.evidence_types import (
        BrokerOutPiece,
        BrokerStartingPiece,
        ClientSubscriptionPiece,
        ConsumerConnectedPiece,
        ConsumerListedPiece,
        ConsumerListedValues,
        DumpedMembersEvidence,
        HeartbeatPiece,
        LogEndedPiece,
        LoggedMembersEvidence,
        MemberPiece,
        MembersEvidence,
        MembersListedPiece,
        MembersListedValues,
        TopicsListedPiece,
        TopicsListedValues,
    )


# The process whose connections are listed in a broker's dump: a slave while its master is gone.
#
# mqadmin queries it instead of the master, whether or not it acts as master (rocketmq.md §15).
def with_answering_replica(pieces: Iterable[Evidence], context: ClusterContext) -> list[Evidence]:
    """Return the pieces, with those of kind ``member`` placed at the process that answered.

    This is the slave whose log has the connection or, while the master is gone, the only slave
    whose files were collected. If nothing shows it, the piece is left out.
    """
    pieces = list(pieces)
    announced = {(p.place, p.values["channel"]) for p in pieces if p.kind == "consumer_connected"}
    slaves: dict[str, list[str]] = {}
    for folder in context.folders.values():
        if folder.place != folder.broker_name:
            slaves.setdefault(folder.broker_name, []).append(folder.place)
    placed = []
    for piece in pieces:
        if piece.kind != "member":
            placed.append(piece)
            continue
        slave_places = sorted(slaves.get(piece.place, ()))
        channel = piece.values["client_addr"]
        logged = [place for place in slave_places if (place, channel) in announced]
        if logged and (piece.place, channel) not in announced:
            placed.append(replace(piece, place=logged[0]))
        elif not context.is_masterless(piece.place, context.time_of(piece)):
            placed.append(piece)
        elif len(slave_places) == 1:
            placed.append(replace(piece, place=slave_places[0]))
    return placed


# Connections that ``consumerConnection`` lists without a line in the broker's log.
#
# They were opened before the log began or after it ended, or their line was dropped
# (rocketmq.md §10.1). They are assumed to have existed since the client's own start or since
# another broker first logged it, or otherwise since the log's start.
_DUMPED = frozenset(SUBJECTS["dumped_members"])
_LOGGED = frozenset(SUBJECTS["logged_members"])


def of_dumped_members(piece: Evidence) -> TypeGuard[DumpedMembersEvidence]:
    """Return True for evidence on members from the clients themselves or from dumps of members."""
    return piece.kind in _DUMPED


def listed_connections(
    pieces: Iterable[Evidence], context: ClusterContext
) -> list[ConsumerListedPiece]:
    """Return a ``consumer_listed`` piece for each connection that is in dumps but in no broker's
    log.

    Its values are channel, client_id, topics (the client's own if any file states them, otherwise
    the group's at that broker), message_model, consume_from_where, ended (True if the broker's log
    had ended by then) and later (True if its topics are those that it stated after all logs had
    ended).

    Connections that may have been made after the broker's log ended are left to `listed_tables`:
    those for which the log has the broker's start, or another connection of the client is known
    that this one may have replaced, and the client states no start in between.
    """
    used = filter(of_dumped_members, pieces)
    ordered = sorted(used, key=lambda p: (context.time_of(p), p.source))
    connections: list[ConsumerListedPiece] = []
    subscriptions, beats = own_subscriptions(ordered, context), first_heartbeats(ordered, context)
    started = start_times(ordered)
    asked = {client_id for client_id, _, _ in _stated_topics(ordered, context)}
    announced = {
        (p.place, p.values["channel"]): p for p in ordered if p.kind == "consumer_connected"
    }
    first: dict[str, tuple[int, str]] = {}
    for connected in announced.values():
        client_id = connected.values["client_id"]
        line = (context.time_of(connected), connected.place)
        first[client_id] = min(line, first.get(client_id, line))
    first_ms = {client_id: at_ms for client_id, (at_ms, _) in first.items()}
    lists, clients = _whole_lists(ordered, context), listed_clients(ordered, context)
    listed: set[tuple[str, str]] = set()
    dated: set[tuple[str, str]] = set()
    for piece in of_logged_brokers(ordered, context):
        v, seen_ms = piece.values, context.time_of(piece)
        key = (piece.place, v["client_addr"])
        if key in announced or key in listed:
            continue
        listed.add(key)
        restarts = [ms for ms, _ in context.starts.get(piece.place, ()) if ms <= seen_ms]
        start_ms = started.get(v["client_id"], 0)
        ended = context.log_had_ended(piece.place, seen_ms)
        beat = beats.get(v["client_id"]) if ended else None
        if ended:
            if beat and beat[0] > context.log_ends[piece.place] and (restarts or start_ms):
                start_ms = beat[0]  # closer than the start of start()
            earlier = [ms for ms in lists[piece.place] if ms < seen_ms]
            seen_before = first_ms.get(v["client_id"], seen_ms) < seen_ms
            twin = (piece.place, v["client_id"]) in dated  # either process may have started
            lacked_ms = max([*restarts, *earlier], default=0)
            first_look = not (context.logged or earlier)  # its members existed before
            if ((seen_before or twin) and not first_look) or (lacked_ms and start_ms <= lacked_ms):
                continue
            start_ms = 0 if twin else start_ms
        if start_ms:
            dated.add((piece.place, v["client_id"]))
        first_ms.setdefault(v["client_id"], seen_ms)
        lacked_ms = last_list_without(
            clients.get(piece.place, {}), v["client_id"], context.start_ms, seen_ms
        )
        since = max(start_ms, context.start_ms, lacked_ms, *restarts)
        came_ms = _came(
            first.get(v["client_id"]), since, seen_ms, context, lists_since_start=bool(restarts)
        )
        since = max(since, came_ms)
        values = listed_values(piece, subscriptions)
        if ended:
            later = v["client_id"] in asked and context.all_logs_had_ended(seen_ms)
            values["ended"], values["later"] = True, later and beat is None
            values["topics"] = beat[1] if beat else values["topics"]
        connections.append(
            Piece(
                part=piece.part,
                key=piece.key,
                kind="consumer_listed",
                at_ms=since,
                place=piece.place,
                position=piece.position,
                source=piece.source,
                values=values,
            )
        )
    return connections


def _came(
    line: tuple[int, str] | None,
    since_ms: int,
    seen_ms: int,
    context: ClusterContext,
    *,
    lists_since_start: bool,
) -> int:
    """Return when a client joined, by its first line in another broker's log; 0 if it may be later.

    A client sends heartbeats to all brokers. A broker with a log for the whole time, and no recent
    start, would have had it before, except for a line less than a heartbeat after the first log
    begins.

    Args:
        line: the time and place of the first line.
        since_ms: the time before which it was not a member at the broker that lists it.
        seen_ms: when that broker listed it.
        context: the cluster's context.
        lists_since_start: whether the log of the broker that lists it contains a start of the
            broker.
    """
    if line is None or line[0] > seen_ms:
        return 0
    at_ms, place = line
    begin = max(since_ms, at_ms - ROUTE_MS - HEARTBEAT_MS) + HEARTBEAT_MS
    if since_ms == context.start_ms and at_ms < begin and not lists_since_start:
        return 0
    started = any(begin < ms <= at_ms for ms, _ in context.starts.get(place, ()))
    log_covers = context.log_begins.get(place, at_ms) <= begin
    return at_ms if log_covers and not started else 0


def _whole_lists(pieces: Iterable[Evidence], context: ClusterContext) -> dict[str, set[int]]:
    """Return, by broker, when it listed all its members after its log had ended."""
    lists: dict[str, set[int]] = {}
    for piece in filter(_is_member, pieces):
        at_ms = context.time_of(piece)
        whole = not piece.values.get("partial") and context.log_had_ended(piece.place, at_ms)
        lists.setdefault(piece.place, set()).update({at_ms} if whole else ())
    return lists


def listed_clients(
    pieces: Iterable[Evidence], context: ClusterContext
) -> dict[str, dict[int, set[str]]]:
    """Return, by broker, the client ids of each whole list of its members, by when it was made."""
    lists: dict[str, dict[int, set[str]]] = {}
    for piece in filter(_is_member, pieces):
        if not piece.values.get("partial"):
            of_broker = lists.setdefault(piece.place, {})
            of_broker.setdefault(context.time_of(piece), set()).add(piece.values["client_id"])
    return lists


def last_list_without(
    lists: Mapping[int, set[str]], client_id: str, since_ms: int, until_ms: int
) -> int:
    """Return when a broker last listed its members without this one, or 0 if it never did.

    Args:
        lists: the broker's lists, from `listed_clients`.
        client_id: the member's client id.
        since_ms: only lists after this moment count.
        until_ms: only lists before this moment count.
    """
    without = (ms for ms, listed in lists.items() if client_id not in listed)
    return max((ms for ms in without if since_ms < ms < until_ms), default=0)


def _is_member(piece: Evidence) -> TypeGuard[MemberPiece]:
    return piece.kind == "member"


def of_logged_brokers(pieces: Iterable[Evidence], context: ClusterContext) -> Iterator[MemberPiece]:
    """Yield the members that dumps list for brokers whose log was collected, from the logs'
    beginning on, or for all brokers if no log was collected.
    """
    for piece in filter(_is_member, pieces):
        if piece.place not in context.log_ends:
            continue  # for a broker without a log nothing would show their end
        if piece.values["client_addr"] and context.time_of(piece) >= context.start_ms:
            yield piece  # members listed before the logs may have left before them


def listed_values(
    piece: MemberPiece, subscriptions: Mapping[str, list[str]]
) -> ConsumerListedValues:
    """Return the values of a ``consumer_listed`` piece, from a piece of kind ``member``."""
    v = piece.values
    topics = subscriptions.get(v["client_id"]) or sorted(
        {pair[0] for pair in v["subscriptions"] or ()}
    )
    # push consumers always subscribe to some topic, so a dump without any was cut off
    said = topics or v["consume_type"] == "CONSUME_ACTIVELY"
    return {
        "channel": v["client_addr"],
        "client_id": v["client_id"],
        "topics": topics if said else None,
        "message_model": v["message_model"],
        "consume_from_where": v["consume_from_where"],
        "known_ms": None,
    }


def _is_subscription(piece: Evidence) -> TypeGuard[ClientSubscriptionPiece]:
    return piece.kind == "client_subscription"


def _stated_topics(
    pieces: Iterable[Evidence], context: ClusterContext
) -> Iterator[tuple[str, int, ClientSubscriptionPiece]]:
    """Yield the topics of each client whose answer is complete, with the client and the time."""
    for piece in filter(_is_subscription, pieces):
        client_id = piece.values.get("client_file")
        if client_id and not piece.values.get("partial"):
            yield client_id, context.time_of(piece), piece


def start_times(pieces: Iterable[DumpedMembersEvidence]) -> dict[str, int]:
    """Return the start time of each client in ``consumerStatus``, as the client states it, epoch
    ms.
    """
    return {
        client_id: p.values["start_ms"]
        for p in pieces
        if p.kind == "client"
        and (client_id := p.values.get("client_file"))
        and p.values["start_ms"]
    }


def own_subscriptions(
    pieces: Iterable[Evidence], context: ClusterContext
) -> Mapping[str, list[str]]:
    """Return each client's topics from ``consumerStatus``, or otherwise from its first
    heartbeat.
    """
    topics: dict[str, set[str]] = {}
    for client_id, _, piece in _stated_topics(pieces, context):
        topics.setdefault(client_id, set()).add(piece.values["topic"])
    stated = {client_id: sorted(names) for client_id, names in topics.items()}
    beats = first_heartbeats(pieces, context)
    return {client_id: names for client_id, (_, names) in beats.items()} | stated


def _is_heartbeat(piece: Evidence) -> TypeGuard[HeartbeatPiece]:
    return piece.kind == "heartbeat"


def first_heartbeats(
    pieces: Iterable[Evidence], context: ClusterContext
) -> dict[str, tuple[int, list[str]]]:
    """Return the time and topics of the first heartbeat in each client's own log."""
    beats: dict[str, tuple[int, list[str]]] = {}
    logged = filter(_is_heartbeat, pieces)
    for piece in sorted(logged, key=context.time_of):
        topics = sorted(set(piece.values["topics"]))
        beats.setdefault(piece.values["client_id"], (context.time_of(piece), topics))
    return beats


# What dumps show about a broker's members after the end of its log: complete tables, not changes.
#
# Operators may copy the logs and run mqadmin later, or logs may be cut off. Each
# ``consumerConnection`` of the broker then gives all its connections at that time, and each
# ``consumerStatus`` gives its client's subscriptions. Any difference from the previous state arose
# in between.
AFTER_ALL = 2**62
"""The position after all others with the same time and place."""


def listed_tables(
    group: str, pieces: list[Evidence], context: ClusterContext
) -> Iterator[MembersEvidence]:
    """Yield evidence of three kinds that no log line states.

    ``log_ended`` is for each broker, at the end of its log. ``members_listed`` is for each dump
    after that: ``members`` has the `listed_values` of its connections by client id. A dump without
    members shows nothing, because a failure prints nothing either. ``topics_listed`` is for each
    client that was queried after every broker's log had ended: its client_id and topics, without
    the retry topic.
    """
    for place, until_ms in context.log_ends.items():
        end_ms = until_ms + SECOND_MS - 1
        ended: LogEndedPiece = Piece(
            part=GROUP,
            key=group,
            kind="log_ended",
            at_ms=end_ms,
            place=place,
            position=AFTER_ALL,
            source="",
            values={},
        )
        yield ended
    subscriptions = own_subscriptions(pieces, context)
    dumps: dict[tuple[str, int, str], list[MemberPiece]] = {}
    for piece in of_logged_brokers(pieces, context):
        at_ms = context.time_of(piece)
        if context.log_had_ended(piece.place, at_ms) and not piece.values.get("partial"):
            dumps.setdefault((piece.place, at_ms, file_of(piece.source)), []).append(piece)
    for (place, at_ms, _), members in dumps.items():
        listed: dict[str, list[ConsumerListedValues]] = {}
        for piece in members:
            listed.setdefault(piece.values["client_id"], []).append(
                listed_values(piece, subscriptions)
            )
        whole: MembersListedValues = {"members": listed}
        source = members[0].source
        listing: MembersListedPiece = Piece(
            part=GROUP,
            key=group,
            kind="members_listed",
            at_ms=at_ms,
            place=place,
            position=AFTER_ALL,
            source=source,
            values=whole,
        )
        yield listing
    yield from _own_topics(group, pieces, context)


def _own_topics(
    group: str, pieces: Iterable[Evidence], context: ClusterContext
) -> Iterator[TopicsListedPiece]:
    asked: dict[tuple[int, str], list[ClientSubscriptionPiece]] = {}
    for client_id, at_ms, piece in _stated_topics(pieces, context):
        asked.setdefault((at_ms, client_id), []).append(piece)
    for (at_ms, client_id), topics in asked.items():
        if context.all_logs_had_ended(at_ms):
            names = frozenset(p.values["topic"] for p in topics)
            values: TopicsListedValues = {
                "client_id": client_id,
                "topics": {topic for topic in names if not is_retry_topic(topic)},
            }
            source = topics[0].source
            yield Piece(
                part=GROUP,
                key=group,
                kind="topics_listed",
                at_ms=at_ms,
                place="",
                position=AFTER_ALL,
                source=source,
                values=values,
            )


def dated_by_dumps(
    after_logs: Iterable[Event],
    events: Iterable[Event],
    pieces: Iterable[Evidence],
    names: ProcessNames,
    context: ClusterContext,
) -> list[Event]:
    """Return the events that only a dump shows; losses in the client's own log become leaves.

    The client's log explains a loss if the client unregistered between its join and the dump and
    its id was that of a single process. The row itself is changed.

    Args:
        after_logs: events shown by dumps that were taken after a broker's log had ended.
        events: all events of the group.
        pieces: evidence on the group.
        names: the names of its clients' processes.
        context: the cluster's context.
    """
    joins: dict[str, list[int]] = {}
    for row in events:
        if row["event_type"] == CONSUMER_JOIN:
            joins.setdefault(row["client_id"], []).append(row["event_ms"])
    left: dict[str | None, list[tuple[int, str]]] = {}
    for piece in pieces:
        if piece.kind == "left_broker":
            loss = (context.time_of(piece), piece.source)
            left.setdefault(names.client_of(piece), []).append(loss)
    by_dumps = []
    for row in after_logs:
        join_times = joins.get(row["client_id"], [])
        lines = [
            line
            for line in left.get(row["client_id"], ())
            if len(join_times) == 1 and join_times[0] < line[0] <= row["event_ms"]
        ]
        if row["event_type"] == CONSUMER_LOST and lines:
            row["event_type"] = CONSUMER_LEAVE
            row["event_ms"], row["source"] = min(lines)
        else:
            by_dumps.append(row)
    return by_dumps


SHOWN = 20
"""Maximum number of events that the finding names."""


def after_logs(group: str, events: Iterable[Event], context: ClusterContext) -> list[Finding]:
    """Return the finding on events shown only by dumps after the end of the logs.

    Args:
        group: the consumer group.
        events: those events.
        context: the cluster's context.
    """
    rows = sorted(events, key=lambda row: row["event_ms"])
    if not rows:
        return []
    ends = {
        place: ms for place, ms in sorted(context.log_ends.items()) if ms < rows[-1]["event_ms"]
    }
    first_ms = min(ends.values(), default=rows[0]["event_ms"])
    shown = {_name(row): row["source"] for row in rows[:SHOWN]}
    ends_at = ", ".join(f"{place} at {utc(ms)}" for place, ms in ends.items())
    when, since = f"after broker.log had ended ({ends_at})", "the log's end"
    remedy = "Copy the logs after the dumps, up to their last line."
    if not context.logged:
        when, since = "(no broker.log was collected)", "the dump before"
        remedy = "Collect broker.log of every broker, with all rotated files (otherdays/)."
    dated, they = f"{len(rows)} events are dated by the dump that shows them", "They"
    if len(rows) == 1:
        dated, they = "1 event is dated by the dump that shows it", "It"
    return [
        finding(
            "INGEST_LOG_ENDED",
            f"Only dumps show what members did {when}. {dated} or by the client's own start "
            f"time. {they} may have happened at any time since {since}: windows and start bounds "
            "do not cover that.",
            remedy,
            WARNING,
            consumer_group=group,
            first_ms=first_ms,
            last_ms=rows[-1]["event_ms"],
            evidence=shown,
        )
    ]


def _name(row: Event) -> str:
    return " ".join(filter(None, (row["event_type"], row.get("topic"), row["client_id"])))


def _is_logged(piece: Evidence) -> TypeGuard[LoggedMembersEvidence]:
    return piece.kind in _LOGGED


def timed_evidence(
    group: str, pieces: list[Evidence], context: ClusterContext
) -> Iterator[tuple[int, MembersEvidence]]:
    """Yield the lines in the brokers' logs, the members in dumps, and starts and ends of brokers.

    Times never go back between two lines of a log within the same second. The kinds
    ``broker_starting`` and ``broker_out`` come from the brokers themselves.
    """
    for name, times in context.starts.items():
        for at_ms, source in times:
            start: BrokerStartingPiece = Piece(
                part=GROUP,
                key=group,
                kind="broker_starting",
                at_ms=at_ms,
                place=name,
                position=-1,
                source=source,
                values={},
            )
            yield at_ms, start
    for name, times in context.ends.items():
        for at_ms, source in times:
            out: BrokerOutPiece = Piece(
                part=GROUP,
                key=group,
                kind="broker_out",
                at_ms=at_ms,
                place=name,
                position=-1,
                source=source,
                values={},
            )
            yield at_ms, out
    listed = with_answering_replica(pieces, context)
    for piece in (*listed_connections(listed, context), *listed_tables(group, listed, context)):
        yield context.time_of(piece), piece
    notified = _notifications(pieces, context)
    last: dict[str, int] = {}
    logged = filter(_is_logged, pieces)
    for line in sorted(logged, key=lambda p: (context.time_of(p), p.position)):
        before = last.get(line.place, 0)
        at_ms = _best(line, context.time_of(line), before, notified.get(line.place, []))
        last[line.place] = at_ms
        yield at_ms, line


def _best(piece: LoggedMembersEvidence, second: int, before: int, notified: list[int]) -> int:
    """Return the line's estimated time; `before` is that of the previous line in its log."""
    if piece.kind == "consumer_connected":
        at_ms = beat_ms(piece, second)
        if at_ms == second and second <= before < second + SECOND_MS:
            return before + 1  # within a second, the order of lines shows which was first
        return max(at_ms, before) if before < second + SECOND_MS else at_ms
    if piece.kind == "consumer_data" and second <= before < second + SECOND_MS:
        return before
    return inside_second(second, notified, before)


def beat_ms(piece: ConsumerConnectedPiece, second: int) -> int:
    """Return the time of the connection's first heartbeat if it agrees with the line's second."""
    beat = piece.values["beat_ms"]
    return beat if second - SECOND_MS <= beat < second + SECOND_MS else second


def _notifications(pieces: Iterable[Evidence], context: ClusterContext) -> dict[str, list[int]]:
    by_broker: dict[str, list[int]] = {}
    for piece in filter(is_on_group, pieces):
        if piece.kind == "notified":
            broker = context.places.get(piece.values["address"])
            if broker is not None:
                by_broker.setdefault(broker, []).append(context.time_of(piece))
    return {broker: sorted(times) for broker, times in by_broker.items()}

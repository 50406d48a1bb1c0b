"""Members that dumps or their own logs show and no broker's log records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.collection import PROXIES
from rebalance_core.ingest.events.connections import (
    ProcessNames,
    named_client,
)
from rebalance_core.ingest.events.presence import Presence
from rebalance_core.ingest.events.proxies import BEHIND
from rebalance_core.ingest.evidence import Evidence
from rebalance_core.ingest.fact import file_of
from rebalance_core.ingest.rows import Event, Finding, event, finding
from rebalance_core.model.events import (
    CONSUMER_JOIN,
    CONSUMER_LEAVE,
    CONSUMER_LOST,
    OBSERVED,
)
from rebalance_core.model.queue import is_retry_topic
from rebalance_core.model.times import MINUTE_MS
from rebalance_core.model.verdicts import WARNING
from rebalance_core.protocol.client_reports import tells_start

if TYPE_CHECKING:
    from rebalance_core.ingest.evidence_types import (
        ClientPiece,
        GroupConnectionPiece,
        GroupEvidence,
        HeartbeatPiece,
        ListedClientPiece,
        MemberPiece,
        NoMembersPiece,
    )

    Listed: TypeAlias = MemberPiece | GroupConnectionPiece | NoMembersPiece


DUMP_MS = 10_000
"""A dump's time is that of its command's start; member changes this close to it do not contradict
it.
"""
BATCH_MS = MINUTE_MS
"""The dumps of one group from all brokers are made one after another."""


def unlogged_joins(
    group: str,
    pieces: Sequence[GroupEvidence],
    presence: Presence,
    names: ProcessNames,
    context: ClusterContext,
) -> tuple[list[Event], list[Finding]]:
    """Return the joins (and leaves) of members that other files show but no broker's log has, and
    findings.

    A member whose own log has its heartbeats joined with the first of them; a member that
    ``consumerStatus`` lists joined at the start that it states. Any other existed before, even if
    only consumerStatus names it, because mqadmin queries the clients that a broker lists. A broker
    that lists a connection of a process that left, although it logged the connection, has a stale
    list.
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
    """Return the losses of members that should be present but no broker lists any more, and
    findings.

    Only dumps from all brokers that ever had a member, within a minute, count, because a broker
    that knows no member prints nothing, and so does a failure. If none of them knows a member, that
    counts if ``consumerProgress -s true`` at that time shows no holder of any queue either. A
    member that answers ``consumerStatus`` at that time is present.
    """
    answered = [
        (context.time_of(p), named_client(p))
        for p in pieces
        if p.kind in ("client", "listed_client")
    ]
    rows: list[Event] = []
    findings: list[Finding] = []
    of_group = {p.place for p in pieces if p.kind in ("consumer_connected", "member") and p.place}
    of_group -= context.slave_places  # members listed only by a slave are listed
    of_group = {place for place in of_group if not place.startswith(BEHIND)}
    # brokers do not list members behind proxies, but each proxy lists all of them
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
                        CONSUMER_LOST,
                        lost_ms,
                        batch[-1].source,
                        consumer_group=group,
                        client_id=client_id,
                        channel_id=channel,
                    )
                )
            findings.append(not_logged(group, client_id, "leave", batch[-1].source, lost_ms))
    return rows, findings


def _unheld(pieces: Iterable[GroupEvidence], context: ClusterContext) -> list[int]:
    """Return when ``consumerProgress -s true`` showed queues but no holder."""
    holders: dict[str, tuple[int, bool]] = {}
    for piece in pieces:
        if piece.kind == "queue_progress" and piece.values["with_clients"]:
            dump = file_of(piece.source)
            shown = piece.values["client_ip"] is not None or piece.values.get("partial", False)
            held = holders.get(dump, (0, False))[1] or shown
            holders[dump] = (context.time_of(piece), held)
    return sorted(at_ms for at_ms, held in holders.values() if not held)


def _batches(pieces: Iterable[GroupEvidence], context: ClusterContext) -> Iterator[list[Listed]]:
    """Yield dumps taken together, with each broker once and all within `BATCH_MS`."""
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
    # consumerStatus has the consumer's own field, otherwise its heartbeat's
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
    """Return the finding that no broker's log has a ``join`` or ``leave``."""
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

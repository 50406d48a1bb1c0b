"""Members that dumps or their own logs show and no broker's log: lines are dropped under load.

Brokers may discard INFO lines, so a join or a graceful leave can be missing (rocketmq.md §10.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.collection.collected_file import PROXIES
from rebalance_core.ingest.events.connections import ProcessNames
from rebalance_core.ingest.events.presence import Presence
from rebalance_core.ingest.evidence.evidence import Evidence
from rebalance_core.ingest.fact import file_of
from rebalance_core.ingest.proxies import BEHIND
from rebalance_core.ingest.rows import Row, event, finding
from rebalance_core.model.events import CONSUMER_JOIN, CONSUMER_LEAVE, CONSUMER_LOST, OBSERVED
from rebalance_core.model.queue import is_retry_topic
from rebalance_core.model.statuses import WARNING
from rebalance_core.model.times import MINUTE_MS
from rebalance_core.protocol.members import tells_start

DUMP_MS = 10_000
"""A dump's time is its command's start; member changes so near to it are no contradiction."""
BATCH_MS = MINUTE_MS
"""Dumps of one group at all brokers are taken one after the other."""


def unlogged_joins(
    group: str,
    pieces: list[Evidence],
    presence: Presence,
    names: ProcessNames,
    context: ClusterContext,
) -> tuple[list[Row], list[Row]]:
    """Joins (and leaves) of members that no broker's log has when others see them; findings.

    A member whose own log has its heartbeats joined with the first of them; one that
    ``consumerStatus`` lists joined when it says it started; any other was there before. A broker
    that lists a connection whose line it has, of a process that left, has a stale list.
    """
    logged = {(p.place, p.values["channel"]) for p in pieces if p.kind == "consumer_connected"}
    started = {
        piece.values["client_file"]: piece.values["start_ms"]
        for piece in pieces
        if piece.kind == "client" and piece.values.get("client_file")
    }
    rows: list[Row] = []
    findings: list[Row] = []
    added: set[str] = set()
    mentions = [
        p
        for p in pieces
        if p.kind in ("heartbeat", "member", "client") and context.time_of(p) >= context.start_ms
    ]
    for piece in sorted(
        mentions, key=lambda p: (p.kind != "heartbeat", context.time_of(p), p.source)
    ):
        client_id = str(piece.values.get("client_id") or piece.values.get("client_file") or "")
        at_ms = context.time_of(piece)
        known = presence.touched(client_id, at_ms - DUMP_MS, at_ms + DUMP_MS)
        if not client_id or client_id in added or known:
            continue
        if client_id in presence.stays and piece.kind != "member":
            continue
        if piece.kind == "member" and (piece.place, piece.values["client_addr"]) in logged:
            continue
        added.add(client_id)
        when = at_ms if piece.kind == "heartbeat" else started.get(client_id)
        if client_id in presence.stays or (when is None and _is_new(piece, at_ms, context)):
            when = at_ms
        rows.append(_join(group, piece, client_id, when, context))
        if piece.kind == "heartbeat":
            rows += _own_leave(group, pieces, client_id, at_ms, names, context)
        findings.append(not_logged(group, client_id, "join", piece.source, rows[-1]["event_ms"]))
    return rows, findings


def _is_new(piece: Evidence, at_ms: int, context: ClusterContext) -> bool:
    """True if the log of who lists the member has its start, lacks the member, and had ended."""
    place = piece.place
    starts = context.starts.get(place) or context.proxies.starts.get(place)
    return bool(starts) and context.log_had_ended(place, at_ms)


def unlogged_leaves(
    group: str, pieces: Iterable[Evidence], presence: Presence, context: ClusterContext
) -> tuple[list[Row], list[Row]]:
    """Losses of members that should be there and that no broker lists any more; findings.

    Only dumps of all brokers that ever had a member, within a minute, tell: a broker that knows
    none prints nothing, which a failure does too. Where none of them knows one, that counts if
    ``consumerProgress -s true`` of that time shows no holder of any queue either.
    """
    rows: list[Row] = []
    findings: list[Row] = []
    pieces = list(pieces)
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
        batch = [p for p in dumps if p.kind != "no_members"]
        first_ms = context.time_of(dumps[0])
        lost_ms = last_ms = context.time_of(dumps[-1])
        if not batch:
            seen = [ms for ms in unheld if first_ms - BATCH_MS < ms < last_ms + BATCH_MS]
            batch = dumps if seen else []
            lost_ms = min([first_ms, *seen])
        if of_group - {p.place for p in batch}:
            continue
        listed = {p.values["client_id"] for p in batch if p.kind == "member"}
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


def _unheld(pieces: Iterable[Evidence], context: ClusterContext) -> list[int]:
    """When ``consumerProgress -s true`` showed queues and nobody that holds one."""
    holders: dict[str, tuple[int, bool]] = {}
    for piece in pieces:
        if piece.kind == "queue_progress" and piece.values["with_clients"]:
            dump = file_of(piece.source)
            held = holders.get(dump, (0, False))[1] or piece.values["client_ip"] is not None
            holders[dump] = (context.time_of(piece), held)
    return sorted(at_ms for at_ms, held in holders.values() if not held)


def _batches(pieces: Iterable[Evidence], context: ClusterContext) -> Iterator[list[Evidence]]:
    """Dumps taken together: each broker once, all within `BATCH_MS`."""
    batch: list[Evidence] = []
    dumps: dict[str, str] = {}
    kinds = ("member", "group_connection", "no_members")
    listed = [p for p in pieces if p.kind in kinds and p.place]
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
    group: str, piece: Evidence, client_id: str, when: int | None, context: ClusterContext
) -> Row:
    observed = when is None or when <= context.start_ms
    topics = piece.values.get("topics")
    # of an answer to consumerStatus it is the consumer's own field, else its heartbeat's
    own = piece.kind == "client" or tells_start(client_id)
    where = piece.values.get("consume_from_where") if own else None
    if piece.kind == "member":
        topics = [pair[0] for pair in piece.values["subscriptions"] or ()]
    row = event(
        CONSUMER_JOIN,
        context.start_ms if when is None or observed else when,
        piece.source,
        consumer_group=group,
        client_id=client_id,
        message_model=piece.values.get("message_model"),
        consume_from_where=where,
        detail=OBSERVED if observed else None,
    )
    if topics:
        row["subscriptions"] = sorted({t for t in topics if not is_retry_topic(t)})
    return row


def _own_leave(
    group: str,
    pieces: Iterable[Evidence],
    client_id: str,
    joined_ms: int,
    names: ProcessNames,
    context: ClusterContext,
) -> list[Row]:
    """Where only the client's log tells of it: its unregistering."""
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


def not_logged(group: str, client_id: str, what: str, source: str, at_ms: int) -> Row:
    """The finding that a ``join`` or ``leave`` is in no broker's log."""
    return finding(
        f"INGEST_{what.upper()}_NOT_LOGGED",
        f"No broker's log has the {what} of {client_id}; it is dated by {source}.",
        "Collect broker.log of every broker; brokers drop INFO lines under load.",
        WARNING,
        consumer_group=group,
        client_id=client_id,
        first_ms=at_ms,
        last_ms=at_ms,
        evidence={"source": source},
    )

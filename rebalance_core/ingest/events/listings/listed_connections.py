"""Connections that ``consumerConnection`` lists and no line of the broker's log announces.

They were made before the log begins, after it ended, or their line was dropped
(rocketmq.md §10.1). A connection of a client that nothing else shows is taken to exist since that
client says it started, else since the log's start.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.evidence.evidence import Evidence

_USED = ("client", "client_subscription", "consumer_connected", "heartbeat", "member")


def listed_connections(pieces: Iterable[Evidence], context: ClusterContext) -> list[Evidence]:
    """One piece of evidence, kind ``consumer_listed``, for each such connection.

    Its values: channel, client_id, topics (the client's own where any file tells them, else the
    group's at that broker), message_model, consume_from_where; ended: True where the broker's log
    had ended by then; later: True if its topics are those that it said when all logs had ended.

    Those that may have been made after the broker's log ended are left to `listed_tables`: where
    the log has the broker's start, or another connection of the client is known, which this one may
    have replaced, and the client does not say that it started in between.
    """
    used = [piece for piece in pieces if piece.kind in _USED]
    pieces = sorted(used, key=lambda p: (context.time_of(p), p.source))
    found: list[Evidence] = []
    own, beats = own_subscriptions(pieces, context), first_heartbeats(pieces, context)
    started = start_times(pieces)
    asked = {p.values.get("client_file") for p in pieces if p.kind == "client_subscription"}
    announced = {
        (p.place, p.values["channel"]): p for p in pieces if p.kind == "consumer_connected"
    }
    first_ms: dict[str, int] = {}
    for piece in announced.values():
        client_id, at_ms = piece.values["client_id"], context.time_of(piece)
        first_ms[client_id] = min(at_ms, first_ms.get(client_id, at_ms))
    listed: set[tuple[str, str]] = set()
    dated: set[tuple[str, str]] = set()
    for piece in of_logged_brokers(pieces, context):
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
            if beat and beat[0] > context.logged[piece.place] and (restarts or start_ms):
                start_ms = beat[0]  # nearer than when start() began
            known = first_ms.get(v["client_id"], seen_ms) < seen_ms
            twin = (piece.place, v["client_id"]) in dated  # whose start is it?
            if known or twin or (restarts and start_ms <= max(restarts)):
                continue
        if start_ms:
            dated.add((piece.place, v["client_id"]))
        first_ms.setdefault(v["client_id"], seen_ms)
        since = max(start_ms, context.start_ms, *restarts)
        values = listed_values(piece, own)
        if ended:
            later = v["client_id"] in asked and context.all_logs_had_ended(seen_ms)
            values |= {"ended": True, "topics": beat[1] if beat else values["topics"]}
            values["later"] = later and beat is None
        found.append(replace(piece, kind="consumer_listed", at_ms=since, values=values))
    return found


def of_logged_brokers(pieces: Iterable[Evidence], context: ClusterContext) -> Iterator[Evidence]:
    """The members that dumps list of brokers whose log was collected, since the logs begin."""
    for piece in pieces:
        if piece.kind != "member" or piece.place not in context.logged:
            continue  # of a broker without a log nothing would tell that they end
        if piece.values["client_addr"] and context.time_of(piece) >= context.start_ms:
            yield piece  # who was there before the logs begin may have gone before


def listed_values(piece: Evidence, own: Mapping[str, list[str]]) -> dict[str, Any]:
    """The values of a ``consumer_listed`` piece, from one on a ``member``."""
    v = piece.values
    topics = own.get(v["client_id"]) or sorted({pair[0] for pair in v["subscriptions"] or ()})
    # push consumers always subscribe something: a dump without it was cut
    said = topics or v.get("consume_type") == "CONSUME_ACTIVELY"
    return {
        "channel": v["client_addr"],
        "client_id": v["client_id"],
        "topics": topics if said else None,
        "message_model": v["message_model"],
        "consume_from_where": v["consume_from_where"],
        "known_ms": None,
    }


def start_times(pieces: Iterable[Evidence]) -> dict[str, int]:
    """When each client that ``consumerStatus`` lists says it started, epoch ms."""
    return {
        p.values["client_file"]: p.values["start_ms"]
        for p in pieces
        if p.kind == "client" and p.values.get("client_file") and p.values["start_ms"]
    }


def own_subscriptions(
    pieces: Iterable[Evidence], context: ClusterContext
) -> Mapping[str, list[str]]:
    """Topics that each client says it subscribes: ``consumerStatus``, else its first heartbeat."""
    topics: dict[str, set[str]] = {}
    for piece in pieces:
        if piece.kind == "client_subscription" and piece.values.get("client_file"):
            topics.setdefault(piece.values["client_file"], set()).add(piece.values["topic"])
    stated = {client_id: sorted(names) for client_id, names in topics.items()}
    beats = first_heartbeats(pieces, context)
    return {client_id: names for client_id, (_, names) in beats.items()} | stated


def first_heartbeats(
    pieces: Iterable[Evidence], context: ClusterContext
) -> dict[str, tuple[int, list[str]]]:
    """Time and topics of the first heartbeat that each client logs itself."""
    beats: dict[str, tuple[int, list[str]]] = {}
    logged = [piece for piece in pieces if piece.kind == "heartbeat"]
    for piece in sorted(logged, key=context.time_of):
        topics = sorted(set(piece.values["topics"]))
        beats.setdefault(piece.values["client_id"], (context.time_of(piece), topics))
    return beats

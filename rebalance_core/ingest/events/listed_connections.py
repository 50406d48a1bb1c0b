"""Connections that ``consumerConnection`` lists and no line of the broker's log announces.

They were made before the log begins, or their line was dropped (rocketmq.md §10.1). Each is taken
to exist since its client says it started, else since the log's start.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.evidence.evidence import Evidence


def listed_connections(pieces: Iterable[Evidence], context: ClusterContext) -> list[Evidence]:
    """One piece of evidence, kind ``consumer_listed``, for each such connection.

    Its values: channel, client_id, topics (the client's own where any file tells them, else the
    group's at that broker), message_model, consume_from_where.
    """
    pieces = list(pieces)
    own = own_subscriptions(pieces, context)
    started = {
        p.values["client_file"]: p.values["start_ms"]
        for p in pieces
        if p.kind == "client" and p.values.get("client_file") and p.values["start_ms"]
    }
    announced = {(p.place, p.values["channel"]) for p in pieces if p.kind == "consumer_connected"}
    listed: dict[tuple[str, str], Evidence] = {}
    for piece in sorted(pieces, key=lambda p: (context.time_of(p), p.source)):
        v = piece.values
        if piece.kind != "member" or piece.place not in context.logged or not v["client_addr"]:
            continue  # of a broker without a log nothing would tell that they end
        if context.time_of(piece) < context.start_ms:
            continue  # who was there before may have gone before
        key = (piece.place, v["client_addr"])
        if key in announced or key in listed:
            continue
        seen_ms = context.time_of(piece)
        restarts = [ms for ms, _ in context.starts.get(piece.place, ()) if ms <= seen_ms]
        since = max(started.get(v["client_id"], 0), context.start_ms, *restarts)
        topics = own.get(v["client_id"]) or sorted({pair[0] for pair in v["subscriptions"] or ()})
        values = {
            "channel": v["client_addr"],
            "client_id": v["client_id"],
            "topics": topics,
            "message_model": v["message_model"],
            "consume_from_where": v["consume_from_where"],
            "known_ms": None,
        }
        listed[key] = replace(piece, kind="consumer_listed", at_ms=since, values=values)
    return list(listed.values())


def own_subscriptions(
    pieces: Iterable[Evidence], context: ClusterContext
) -> Mapping[str, list[str]]:
    """Topics that each client says it subscribes: ``consumerStatus``, else its first heartbeat."""
    topics: dict[str, set[str]] = {}
    for piece in pieces:
        if piece.kind == "client_subscription" and piece.values.get("client_file"):
            topics.setdefault(piece.values["client_file"], set()).add(piece.values["topic"])
    for piece in sorted(pieces, key=context.time_of):
        if piece.kind == "heartbeat":
            topics.setdefault(piece.values["client_id"], set(piece.values["topics"]))
    return {client_id: sorted(names) for client_id, names in topics.items()}

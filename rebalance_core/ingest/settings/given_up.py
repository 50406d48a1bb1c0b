"""Members that no longer ask a broker for a topic, though they are set to (rocketmq.md §2.8).

To 5.3.1 a client that got no answer to its first questions on a topic divides it itself until it
is restarted. Its log says only that *it* divided the topic.
"""

from __future__ import annotations

from collections.abc import Iterable

from rebalance_core.contracts.fact_declaration import PROCESS_ID
from rebalance_core.ingest.evidence.evidence import Evidence
from rebalance_core.model.queue import is_retry_topic


def given_up(pieces: Iterable[Evidence]) -> list[Evidence]:
    """The first line of each member and topic that it divides itself, though it is set to ask.

    A member is set to ask where ``clientRebalance`` is false and its listener is not orderly, or
    where its process got an assignment for another topic.

    Args:
        pieces: evidence on a group, in order of time.
    """
    asks: dict[str, int] = {}
    answered: set[tuple[str, str | None]] = set()
    divided: dict[tuple[str, str], Evidence] = {}
    for piece in pieces:
        v = piece.values
        if piece.kind == "client" and v["client_rebalance"] is False and not v.get("ordered"):
            asks[v.get("client_file") or ""] = v.get("start_ms") or 0
        elif piece.kind == "broker_allocated":
            answered.add((v["client_id"], v.get(PROCESS_ID)))
        elif piece.kind == "allocated":
            divided.setdefault((v["client_id"], v["topic"]), piece)
    return [
        piece
        for (client_id, _), piece in divided.items()
        if asks.get(client_id, (piece.at_ms or 0) + 1) <= (piece.at_ms or 0)
        or (client_id, piece.values.get(PROCESS_ID)) in answered
    ]


def divide_all(pieces: Iterable[Evidence]) -> set[str]:
    """Those of them, by client id, that no broker answered for any topic but retry topics."""
    pieces = list(pieces)
    asked = {
        piece.values["client_id"]
        for piece in pieces
        if piece.kind == "broker_allocated" and not is_retry_topic(piece.values["topic"])
    }
    first = given_up(pieces)
    return {p.values["client_id"] for p in first if not is_retry_topic(p.values["topic"])} - asked

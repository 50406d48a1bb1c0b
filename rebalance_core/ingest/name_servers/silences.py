"""Name servers that were down for a while: what they knew is gone, and no broker with it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rebalance_core.ingest.evidence.evidence import Evidence
from rebalance_core.model.times import REGISTRATION_MS

HEARD_MS = 2 * REGISTRATION_MS
"""Every broker that lives has registered by then with a name server that started (60 s at most)."""
STARTS, STOPS = "name_server_starting", "name_server_stopping"
_LOSSES = ("broker_removed", "replica_removed", "broker_channel_closed", "broker_expired")


def silences(ordered: Sequence[Evidence]) -> dict[int, str]:
    """By number of a piece of evidence the name server of which it is the last before its start.

    Nothing tells how long it lived after that. While it did it logged each broker that it lost, so
    what another one lost since then it did not have either.

    Args:
        ordered: evidence on the cluster by time.
    """
    last: dict[str, int] = {}
    silent: dict[int, str] = {}
    for number, piece in enumerate(ordered):
        if piece.kind == STARTS and piece.place in last:
            silent[last[piece.place]] = piece.place
        last[piece.place] = number
    return silent


def heard(pieces: Iterable[Evidence]) -> list[Evidence]:
    """The evidence without brokers that a name server lost by shutting down.

    Those of 4.9 close all connections at a graceful stop, and log each broker as removed; clients
    keep the routes that they have.
    """
    pieces = list(pieces)
    turns: dict[str, list[tuple[int, bool]]] = {}
    for piece in pieces:
        if piece.kind in (STARTS, STOPS) and piece.at_ms is not None:
            turns.setdefault(piece.place, []).append((piece.at_ms, piece.kind == STOPS))
    return [piece for piece in pieces if piece.kind not in _LOSSES or not _stops(piece, turns)]


def _stops(piece: Evidence, turns: dict[str, list[tuple[int, bool]]]) -> bool:
    before = [turn for turn in turns.get(piece.place, ()) if turn[0] <= (piece.at_ms or 0)]
    return max(before, default=(0, False))[1]

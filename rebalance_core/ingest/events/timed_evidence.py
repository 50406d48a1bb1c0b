"""The evidence on a group's members with the best millisecond of each line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rebalance_core.contracts.fact_declaration import GROUP
from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.events.listings.answerers import at_answerers
from rebalance_core.ingest.events.listings.listed_connections import listed_connections
from rebalance_core.ingest.events.listings.listed_tables import listed_tables
from rebalance_core.ingest.evidence.evidence import Evidence
from rebalance_core.ingest.parse.text.second_resolution import inside_second
from rebalance_core.model.times import SECOND_MS

LOGGED_BY_BROKERS = (
    "consumer_connected",
    "consumer_data",
    "consumer_left",
    "consumer_closed",
    "consumer_expired",
)


def timed_evidence(
    group: str, pieces: list[Evidence], context: ClusterContext
) -> Iterator[tuple[int, Evidence]]:
    """Lines of the brokers' logs, what dumps list, and starts and ends of brokers.

    Times never go back between two lines of one log that stand in one second. The kinds
    ``broker_starting`` and ``broker_out`` are the brokers' own.
    """
    for kind, moments in (("broker_starting", context.starts), ("broker_out", context.ends)):
        for name, times in moments.items():
            for at_ms, source in times:
                yield at_ms, Evidence(GROUP, group, kind, at_ms, name, -1, source, {})
    listed = at_answerers(pieces, context)
    for piece in (*listed_connections(listed, context), *listed_tables(group, listed, context)):
        yield context.time_of(piece), piece
    notified = _notifications(pieces, context)
    last: dict[str, int] = {}
    logged = [p for p in pieces if p.kind in LOGGED_BY_BROKERS]
    for piece in sorted(logged, key=lambda p: (context.time_of(p), p.position)):
        before = last.get(piece.place, 0)
        at_ms = _best(piece, context.time_of(piece), before, notified.get(piece.place, []))
        last[piece.place] = at_ms
        yield at_ms, piece


def _best(piece: Evidence, second: int, before: int, notified: list[int]) -> int:
    """The line's time; `before` is that of the line before it in the same log."""
    if piece.kind == "consumer_connected":
        at_ms = beat_ms(piece, second)
        return max(at_ms, before) if before < second + SECOND_MS else at_ms
    if piece.kind == "consumer_data" and second <= before < second + SECOND_MS:
        return before
    return inside_second(second, notified, before)


def beat_ms(piece: Evidence, second: int) -> int:
    """When the connection's first heartbeat came, if that agrees with the line's second."""
    beat = int(piece.values["beat_ms"])
    return beat if second - SECOND_MS <= beat < second + SECOND_MS else second


def _notifications(pieces: Iterable[Evidence], context: ClusterContext) -> dict[str, list[int]]:
    by_broker: dict[str, list[int]] = {}
    for piece in pieces:
        if piece.kind == "notified":
            broker = context.places.get(piece.values["address"])
            if broker is not None:
                by_broker.setdefault(broker, []).append(context.time_of(piece))
    return {broker: sorted(times) for broker, times in by_broker.items()}

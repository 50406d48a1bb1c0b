"""CONSUMER_SUSPEND and CONSUMER_RESUME from the client's own log: brokers learn nothing of it."""

from __future__ import annotations

from collections.abc import Iterable

from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.events.presence import Presence
from rebalance_core.ingest.events.process_names import ProcessNames
from rebalance_core.ingest.evidence.evidence import Evidence
from rebalance_core.ingest.rows import Row, event
from rebalance_core.model.events import CONSUMER_RESUME, CONSUMER_SUSPEND

LATE_LINE_MS = 2_000
"""Pulls of a suspended consumer are put off by 1 s and logged: one may follow the resumption."""


def suspension_events(
    group: str,
    pieces: Iterable[Evidence],
    names: ProcessNames,
    presence: Presence,
    context: ClusterContext,
) -> list[Row]:
    """Suspensions and resumptions of members that are there.

    A member that was suspended before its log begins shows by the pulls that it puts off.
    """
    rows: list[Row] = []
    state: dict[str, tuple[bool, int]] = {}
    kinds = ("suspended", "resumed", "paused")
    ordered = sorted(
        (p for p in pieces if p.kind in kinds),
        key=lambda p: (context.time_of(p), p.place, p.position),
    )
    for piece in ordered:
        at_ms = context.time_of(piece)
        client_id = names.client_of(piece) or presence.of_instance(
            piece.values.get("instance"), at_ms
        )
        channels = presence.channels(client_id, at_ms) if client_id is not None else []
        if client_id is None or not channels:
            continue
        suspended, since = state.get(client_id, (False, 0))
        if piece.kind == "paused" and (suspended or at_ms - since < LATE_LINE_MS):
            continue
        wanted = piece.kind != "resumed"
        state[client_id] = (wanted, at_ms)
        if wanted != suspended:
            kind = CONSUMER_SUSPEND if wanted else CONSUMER_RESUME
            rows.append(
                event(
                    kind, at_ms, piece.source, consumer_group=group,
                    client_id=client_id, channel_id=channels[0],
                )
            )  # fmt: skip
    return rows

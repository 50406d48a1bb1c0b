"""CONSUMER_SUSPEND and CONSUMER_RESUME from the client's own log, because brokers do not learn of
them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from math import inf
from typing import TYPE_CHECKING, TypeAlias

from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.events.connections import (
    ProcessNames,
)
from rebalance_core.ingest.events.presence import Presence
from rebalance_core.ingest.evidence import Evidence, is_on_group
from rebalance_core.ingest.rows import Event, Finding, event, finding
from rebalance_core.model.events import (
    CONSUMER_RESUME,
    CONSUMER_SUSPEND,
)
from rebalance_core.model.times import SECOND_MS

if TYPE_CHECKING:
    from rebalance_core.ingest.evidence_types import (
        GroupConnectionPiece,
        MemberPiece,
        NoMembersPiece,
        PausedPiece,
    )

    Listed: TypeAlias = MemberPiece | GroupConnectionPiece | NoMembersPiece


LATE_LINE_MS = 2_000
"""A suspended consumer postpones pulls by 1 s and logs this; one such line may follow when it
resumes.
"""


PUT_OFF_MS = 30_000
"""A suspended consumer postpones pulls more often than this, because none waits at a broker for
this long.
"""


STARTING_MS = 20 * SECOND_MS
"""Members that start together, within one pass interval, are assumed to run their first pass."""
LISTED = 20
"""Maximum number of clients that the finding names."""


def suspension_events(
    group: str,
    pieces: Sequence[Evidence],
    names: ProcessNames,
    presence: Presence,
    context: ClusterContext,
) -> list[Event]:
    """Return the suspensions and resumptions of live members.

    A member that was suspended before its log begins is visible by its postponed pulls, whose lines
    name its process; a member whose log continues without postponed pulls has resumed.
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


def assumed_awake(
    group: str,
    names: ProcessNames,
    presence: Presence,
    context: ClusterContext,
    proxied: Collection[str],
    topics: Iterable[str],
) -> list[Finding]:
    """Return a finding if members whose logs do not show suspensions had to reallocate queues.

    Only a client's own log shows that it was suspended: such a member runs no pass, so it keeps its
    queues and takes no others. While members and queues stay the same, there is nothing to
    reallocate. If no client's log was collected at all, `file_findings` has the finding for all
    groups at once.

    Args:
        group: the group.
        names: its clients' logs.
        presence: the presence of its members.
        context: the cluster.
        proxied: clients behind proxies, which run no pass.
        topics: the topics that its members subscribe to.
    """
    if not context.client_logs:
        return []
    of_members = (
        turn
        for memberships in presence.memberships.values()
        for _, *span in memberships
        for turn in span
        if turn is not None
    )
    turns = sorted({*of_members} | context.queue_turns(topics))
    unlogged = sorted(
        client_id
        for client_id, memberships in presence.memberships.items()
        if client_id not in proxied
        and any(
            _next_unlogged(turns, since + STARTING_MS, names.logged(client_id))
            < (inf if until is None else until)
            for _, since, until in memberships
        )
    )
    if not unlogged:
        return []
    shown = ", ".join(unlogged[:LISTED]) + (", ..." if len(unlogged) > LISTED else "")
    members = "1 member" if len(unlogged) == 1 else f"{len(unlogged)} members"
    return [
        finding(
            "INGEST_ASSUMED",
            f"Members of {group} came or left, or its queues changed, while no collected log shows "
            f"what {members} did ({shown}), and only a client's own log shows its suspension: none "
            "is assumed. If one was suspended then, the past owners shown here are wrong.",
            "Nothing unless these clients call suspend(); then collect their logs.",
            consumer_group=group,
            evidence={"suspended members without a log": "none", "clients": shown},
        )
    ]


def _next_unlogged(turns: Sequence[int], after_ms: int, logged: tuple[int, int] | None) -> float:
    """Return the first of the sorted moments after this one that a client's log does not cover, or
    infinity if it covers all.
    """
    index = bisect_right(turns, after_ms)
    if logged is not None and index < len(turns) and logged[0] <= turns[index]:
        index = max(index, bisect_right(turns, logged[1]))
    return turns[index] if index < len(turns) else inf

"""Events of members that were not present: facts in one file that another file rules out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeAlias

from rebalance_core.ingest.rows import Event, Finding, finding
from rebalance_core.model.events import (
    CONSUMER_JOIN,
    CONSUMER_LEAVE,
    CONSUMER_LOST,
)
from rebalance_core.model.verdicts import WARNING

if TYPE_CHECKING:
    from rebalance_core.ingest.evidence_types import (
        GroupConnectionPiece,
        MemberPiece,
        NoMembersPiece,
    )

    Listed: TypeAlias = MemberPiece | GroupConnectionPiece | NoMembersPiece


def without_contradictions(
    group: str, events: Iterable[Event]
) -> tuple[list[Event], list[Finding]]:
    """Return the events without those of members that were not present, and findings on these.

    The first dump that no longer lists a member dates its loss. If a later line names the member
    without a join in between, the join's line was dropped.

    Args:
        group: the consumer group.
        events: all events of its members, in order.
    """
    live: set[tuple[str, str | None]] = set()
    kept: list[Event] = []
    dropped: dict[str, list[Event]] = {}
    for row in events:
        member = (row["client_id"], row.get("channel_id"))
        if row["event_type"] == CONSUMER_JOIN:
            live.add(member)
        elif member not in live:
            dropped.setdefault(row["client_id"], []).append(row)
            continue
        elif row["event_type"] in (CONSUMER_LEAVE, CONSUMER_LOST):
            live.discard(member)
        kept.append(row)
    return kept, [_finding(group, client_id, rows) for client_id, rows in dropped.items()]


def _finding(group: str, client_id: str, rows: list[Event]) -> Finding:
    return finding(
        "INGEST_CONTRADICTION",
        f"{len(rows)} events of {client_id} are not used: another file shows that the client had "
        "left by then, and no file shows its return.",
        "Collect broker.log of every broker; brokers drop INFO lines under load.",
        WARNING,
        consumer_group=group,
        client_id=client_id,
        first_ms=rows[0]["event_ms"],
        last_ms=rows[-1]["event_ms"],
        evidence={row["source"]: row["event_type"] for row in rows},
    )

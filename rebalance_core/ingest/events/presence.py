"""Memberships over time, from a group's own events."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeAlias

from rebalance_core.ingest.rows import Event, event_order
from rebalance_core.model.events import (
    CONSUMER_JOIN,
    CONSUMER_LEAVE,
    CONSUMER_LOST,
)

if TYPE_CHECKING:
    from rebalance_core.ingest.evidence_types import (
        GroupConnectionPiece,
        MemberPiece,
        NoMembersPiece,
    )

    Listed: TypeAlias = MemberPiece | GroupConnectionPiece | NoMembersPiece


class Presence:
    """Memberships of the members of one group: client id, channel, first and last moments."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.memberships: dict[str, list[tuple[str | None, int, int | None]]] = {}
        for row in sorted(events, key=event_order):
            memberships = self.memberships.setdefault(row["client_id"], [])
            channel = row.get("channel_id")
            if row["event_type"] == CONSUMER_JOIN:
                memberships.append((channel, row["event_ms"], None))
            elif row["event_type"] in (CONSUMER_LEAVE, CONSUMER_LOST):
                for index, (name, since, until) in enumerate(memberships):
                    if name == channel and until is None:
                        memberships[index] = (name, since, row["event_ms"])

    def channels(self, client_id: str, at_ms: int) -> list[str | None]:
        """Return the channels of the client's processes that are live at that moment."""
        return [
            name
            for name, since, until in self.memberships.get(client_id, ())
            if since <= at_ms and (until is None or at_ms < until)
        ]

    def processes(self, at_ms: int) -> int:
        """Count the processes that are live at that moment."""
        return sum(len(self.channels(client_id, at_ms)) for client_id in self.memberships)

    def clients(self, from_ms: int, to_ms: int) -> list[str]:
        """Return the client ids that were present throughout the period."""
        return sorted(
            client_id
            for client_id, memberships in self.memberships.items()
            if any(
                since <= from_ms and (until is None or to_ms < until)
                for _, since, until in memberships
            )
        )

    def present_between(self, client_id: str, from_ms: int, to_ms: int) -> bool:
        """Return True if the client came, went or was present during the period."""
        return any(
            since <= to_ms and (until is None or from_ms <= until)
            for _, since, until in self.memberships.get(client_id, ())
        )

    def of_instance(self, instance: str | None, at_ms: int) -> str | None:
        """Return the only member whose id has that instance name (``ip@instance…``), or None."""
        members = [
            client_id
            for client_id in self.memberships
            if instance
            and client_id.partition("@")[2].startswith(instance)
            and self.channels(client_id, at_ms)
        ]
        return members[0] if len(members) == 1 else None

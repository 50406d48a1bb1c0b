"""Who was a member when, by a group's own events; events of members that were not there."""

from __future__ import annotations

from collections.abc import Iterable

from rebalance_core.ingest.rows import Row, event_order, finding
from rebalance_core.model.events import CONSUMER_JOIN, CONSUMER_LEAVE, CONSUMER_LOST
from rebalance_core.model.statuses import WARNING

# Who was a member when: looked up from a group's own events.


class Presence:
    """Stays of the members of one group: client id, channel, first and last moment."""

    def __init__(self, events: Iterable[Row]) -> None:
        self.stays: dict[str, list[tuple[str | None, int, int | None]]] = {}
        for row in sorted(events, key=event_order):
            stays = self.stays.setdefault(row["client_id"], [])
            channel = row.get("channel_id")
            if row["event_type"] == CONSUMER_JOIN:
                stays.append((channel, row["event_ms"], None))
            elif row["event_type"] in (CONSUMER_LEAVE, CONSUMER_LOST):
                for index, (name, since, until) in enumerate(stays):
                    if name == channel and until is None:
                        stays[index] = (name, since, row["event_ms"])

    def channels(self, client_id: str, at_ms: int) -> list[str | None]:
        """Channels of the client's processes that are there at that moment."""
        return [
            name
            for name, since, until in self.stays.get(client_id, ())
            if since <= at_ms and (until is None or at_ms < until)
        ]

    def processes(self, at_ms: int) -> int:
        """How many processes there are at that moment."""
        return sum(len(self.channels(client_id, at_ms)) for client_id in self.stays)

    def clients(self, from_ms: int, to_ms: int) -> list[str]:
        """Client ids that were there all the time between."""
        return sorted(
            client_id
            for client_id, stays in self.stays.items()
            if any(
                since <= from_ms and (until is None or to_ms < until) for _, since, until in stays
            )
        )

    def touched(self, client_id: str, from_ms: int, to_ms: int) -> bool:
        """True if the client came, went or was there between."""
        return any(
            since <= to_ms and (until is None or from_ms <= until)
            for _, since, until in self.stays.get(client_id, ())
        )

    def of_instance(self, instance: str | None, at_ms: int) -> str | None:
        """The member whose id has that instance name (``ip@instance…``), if there is one."""
        members = [
            client_id
            for client_id in self.stays
            if instance
            and client_id.partition("@")[2].startswith(instance)
            and self.channels(client_id, at_ms)
        ]
        return members[0] if len(members) == 1 else None


# Events of members that are not there: what one file says and another one rules out.


def without_contradictions(group: str, events: Iterable[Row]) -> tuple[list[Row], list[Row]]:
    """The events in order, without those of members that are not there; a finding for each member.

    A dump that lists a member no more dates its loss; a line that names it later, with no join
    between, was left when the join's line was dropped.
    """
    live: set[tuple[str, str | None]] = set()
    kept: list[Row] = []
    dropped: dict[str, list[Row]] = {}
    for row in sorted(events, key=event_order):
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


def _finding(group: str, client_id: str, rows: list[Row]) -> Row:
    return finding(
        "INGEST_CONTRADICTION",
        f"{len(rows)} events of {client_id} are not used: it was gone by then, as another file "
        "tells, and no file has its return.",
        "Collect broker.log of every broker; brokers drop INFO lines under load.",
        WARNING,
        consumer_group=group,
        client_id=client_id,
        first_ms=rows[0]["event_ms"],
        last_ms=rows[-1]["event_ms"],
        evidence={row["source"]: row["event_type"] for row in rows},
    )

"""Which topics a member behind a proxy subscribes (rocketmq.md §14).

Lines tell it of remoting clients alone. A gRPC client's settings are not logged whole, but a proxy,
or a broker with one inside, logs each topic that is new to the group's table there, at once after
the member that brought it. Its members subscribe what the table then holds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.evidence.evidence import Evidence
from rebalance_core.model.times import SECOND_MS

BROUGHT_MS = 2 * SECOND_MS
"""The lines on a member's topics follow that on the member; times have seconds."""


class GroupTopics:
    """The group's topics at each place over time."""

    def __init__(self, pieces: Iterable[Evidence], context: ClusterContext) -> None:
        self._context = context
        self._changes: dict[str, list[tuple[int, int, str, str | None]]] = {}
        self._listed: set[str] = set()
        for piece in pieces:
            at_ms, topic = context.time_of(piece), piece.values.get("topic")
            change = (at_ms, piece.position, piece.kind, topic)
            dropped = piece.kind == "subscription_changed" and "version" not in piece.values
            if piece.kind in ("group_topic", "group_emptied") or dropped:
                self._changes.setdefault(piece.place, []).append(change)
            elif piece.kind in ("member", "group_connection"):
                self._listed |= {topic for topic, _ in piece.values["subscriptions"] or ()}
        for changes in self._changes.values():
            changes.sort(key=lambda change: change[:2])

    def told(self, piece: Evidence, place: str) -> list[Evidence]:
        """The line of a member as the statement of its topics, at `place`; empty: not known.

        Args:
            piece: kind ``consumer_connected``.
            place: of the member's connection.
        """
        v = piece.values
        if "protocol" not in v:
            return []
        topics = v["topics"] or self._at(piece) or sorted(self._listed)
        if not topics:
            return []
        values = {
            "group": v["group"],
            "channel": v["channel"],
            "consume_type": v["consume_type"],
            "message_model": v["message_model"],
            "consume_from_where": None,
            "topics": topics,
            "expressions": {},
            "versions": {},
            "known_ms": None,
        }
        return [replace(piece, kind="consumer_data", place=place, values=values)]

    def _at(self, piece: Evidence) -> list[str]:
        """What the table of the member's place held then, else that of any other."""
        until_ms = self._context.time_of(piece) + BROUGHT_MS
        own = self._held(piece.place, until_ms)
        held = own or set().union(*(self._held(place, until_ms) for place in self._changes))
        return sorted(held)

    def _held(self, place: str, until_ms: int) -> set[str]:
        held: set[str] = set()
        for at_ms, _, kind, topic in self._changes.get(place, ()):
            if at_ms > until_ms:
                break
            if kind == "group_emptied":
                held.clear()
            elif topic is not None:
                (held.add if kind == "group_topic" else held.discard)(topic)
        return held

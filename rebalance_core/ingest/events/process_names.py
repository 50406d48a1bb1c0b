"""Which client id a line of a client's log is about: lines name the group, not always the client.

All starts of a client append to one file. From 5.1 on each line has the process id; before, the
last client id that the file named for the group counts.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.evidence.evidence import Evidence


class ProcessNames:
    """Client ids of one group by client log, process and time."""

    def __init__(self, pieces: Iterable[Evidence], context: ClusterContext) -> None:
        self._context = context
        self._places: dict[str, str] = {}
        self._mentions: dict[tuple[str, str | None], list[tuple[int, str]]] = {}
        for piece in pieces:
            if piece.kind in ("heartbeat", "allocated"):
                key = (piece.place, piece.values.get("pid"))
                mention = (context.time_of(piece), piece.values["client_id"])
                self._mentions.setdefault(key, []).append(mention)
                self._places[mention[1]] = piece.place
        for mentions in self._mentions.values():
            mentions.sort()

    def client_of(self, piece: Evidence) -> str | None:
        """The client id, None if the file never named it."""
        mentions = self._mentions.get((piece.place, piece.values.get("pid")))
        if not mentions:
            return None
        index = bisect_right(mentions, self._context.time_of(piece), key=lambda mention: mention[0])
        return mentions[max(index - 1, 0)][1]

    def zone_of(self, client_id: str) -> str | None:
        """Time zone of the client's host, as ``collection.toml`` says it; None if it does not."""
        return self._context.client_zones.get(self._places.get(client_id, ""))

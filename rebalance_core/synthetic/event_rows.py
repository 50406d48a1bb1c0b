"""Rows of an entity in cluster_events, numbered so that no two rows in a cluster share a key."""

from typing import Any

Row = dict[str, Any]
"""Column name to value; a missing column is null."""

FIRST_TOPIC = 1
FIRST_GROUP = 1_000_000
NUMBERS_PER_ENTITY = 1_000_000_000


class EventRows:
    """Events of an entity in a cluster, in order.

    ``sequence`` is entity x 10^9 + the event's number within the entity, so it orders the events of
    an entity and never collides. Entity 0 stands for the cluster's brokers, 1 + t for topic t and
    1,000,000 + g for group g; at the same instant, brokers come first, then topics, then groups.
    """

    def __init__(self, cluster: str, entity: int) -> None:
        self._rows: list[Row] = []
        self._cluster = cluster
        self._next = entity * NUMBERS_PER_ENTITY

    def add(self, event_ms: int, event_type: str, **values: Any) -> None:
        """Add an event; ``values`` are the other columns."""
        row: Row = {
            "cluster": self._cluster,
            "event_ms": event_ms,
            "sequence": self._next,
            "event_type": event_type,
        }
        row.update(values)
        self._rows.append(row)
        self._next += 1

    def take(self) -> list[Row]:
        """Return the rows since the last call; the numbers continue."""
        rows, self._rows = self._rows, []
        return rows

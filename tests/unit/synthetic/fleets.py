"""Rows of whole fleets, and one group's history as the replay reads it; no JVM."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from rebalance_core.model.events import Event
from rebalance_core.replay.history import GroupHistory
from rebalance_core.synthetic.clusters import broker_events
from rebalance_core.synthetic.days import group_events
from rebalance_core.synthetic.fleet import FleetPlan
from rebalance_core.synthetic.groups import group_of
from rebalance_core.synthetic.table_parts import PARTS, PartRows
from rebalance_core.synthetic.topics import topic_events

Row = dict[str, Any]


def joined(pieces: Iterable[PartRows]) -> list[Row]:
    """The pieces of an entity's rows as one list of dicts."""
    return [row for piece in pieces for row in _dicts(piece)]


def _dicts(piece: PartRows) -> list[Row]:
    if isinstance(piece, list):
        return piece
    columns = [column.tolist() for column in piece.values()]
    return [dict(zip(piece, values, strict=True)) for values in zip(*columns, strict=True)]


@lru_cache(maxsize=4)
def table(plan: FleetPlan, name: str) -> list[Row]:
    """All rows of one table of a fleet."""
    return [
        row
        for part in PARTS[name]
        for number in range(part.entities(plan))
        for row in joined(part.rows(plan, number))
    ]


def history(plan: FleetPlan, number: int) -> GroupHistory:
    """The events that concern one group, its topics and its cluster; no offsets."""
    group = group_of(plan, number)
    own = joined(group_events(plan, number))
    topics = set(group.settings.subscriptions or ())
    for row in own:
        topics |= set(row.get("subscriptions") or ()) | {row.get("topic", "")}
    full = plan.topics_of_full_cluster * group.cluster.number
    shared = [
        row
        for topic in range(plan.topics_in(group.cluster.number))
        for row in joined(topic_events(plan, full + topic))
        if row["topic"] in topics
    ]
    rows = [*joined(broker_events(plan, group.cluster.number)), *shared, *own]
    return GroupHistory(
        group.cluster.name, group.name, group.settings, tuple(map(_event, rows)), None, None
    )


def _event(row: Row) -> Event:
    names = set(Event.__dataclass_fields__)
    return Event(**{name: value for name, value in row.items() if name in names})

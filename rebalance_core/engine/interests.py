"""What the groups of an input read, as small tables: all that says which rows concern which group.

Made of any part of the input; those of all parts are merged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.checks.packed_rows import PackedTables
from rebalance_core.engine.options import like_pattern
from rebalance_core.engine.units import GROUP
from rebalance_core.kernels.codes.codes import COMMITS, EVENTS, GROUPS
from rebalance_core.model import events
from rebalance_core.model.errors import InputRefused, did_you_mean

_NAMES = pa.string()
_GROUP = [(name, _NAMES) for name in GROUP]
_QUEUES = pa.schema(
    [("cluster", _NAMES), ("topic", _NAMES), ("broker_name", _NAMES), ("queues", pa.int64())]
)
_SCHEMAS = {
    "groups": pa.schema([*_GROUP, ("events", pa.int64())]),
    "topics": pa.schema([*_GROUP, ("topic", _NAMES)]),
    "queues": _QUEUES,
}


@dataclass(frozen=True, eq=False)
class Interests(PackedTables):
    """What groups read.

    Attributes:
        groups: cluster, consumer_group and their consumer events, for groups that have some.
        topics: cluster, consumer_group and each topic it ever subscribes, once.
        queues: cluster, topic, broker_name and the most queues ever configured there.
    """

    groups: pa.Table
    topics: pa.Table
    queues: pa.Table

    @classmethod
    def merged(cls, parts: Iterable[Interests]) -> Interests:
        """Those of all parts."""
        all_of = [_interests(), *parts]
        groups, topics, queues = (
            pa.concat_tables([getattr(part, name) for part in all_of]) for name in _SCHEMAS
        )
        return cls(
            _aggregated(groups, "events", "sum"),
            _distinct(topics),
            _aggregated(queues, "queues", "max"),
        )


def interests_of(table: str, rows: pa.Table) -> Interests | None:
    """What some used rows of an input table say; None: rows of this table say nothing."""
    if table == EVENTS:
        return _of_events(rows)
    if table == GROUPS:
        return Interests.merged([_interests(topics=_subscribed(rows))])
    return None


def refuse_no_group(wanted: str | None, interests: Interests | None) -> None:
    """Raise `InputRefused` unless a group with consumer events is wanted.

    Args:
        wanted: a glob of groups' names; None: all, of which there may be none.
        interests: of the whole input.
    """
    if wanted is None:
        return
    names = pc.unique((interests or _interests()).groups["consumer_group"])
    if not pc.any(pc.match_like(names, like_pattern(wanted))).as_py():
        known = sorted(names.to_pylist())
        there = f"{len(known):,} groups" if len(known) != 1 else f"the group {known[0]}"
        raise InputRefused(
            f"--group {wanted} matches no group with consumer events; "
            f"the input has {there}{did_you_mean(wanted, known)}"
        )


def interests_of_named(table: str, rows: pa.Table) -> Interests | None:
    """`interests_of`, for every group that a row of any table names, and with what it committed on.

    A group without consumer events has 0 of them.

    Args:
        table: the name of the table.
        rows: used rows; None comes of a table whose rows name no group.
    """
    if "consumer_group" not in rows.column_names:
        return None
    own = interests_of(table, rows)
    names = (_of_types(rows, events.GROUP_EVENTS) if table == EVENTS else rows).select(GROUP)
    names = names.filter(names["consumer_group"].is_valid())
    none = pa.repeat(pa.scalar(0, pa.int64()), len(names))
    named = _interests(groups=names.append_column("events", none))
    if table == COMMITS:
        named = replace(named, topics=rows.select([*GROUP, "topic"]))
    return Interests.merged([named] if own is None else [own, named])


def _of_events(rows: pa.Table) -> Interests:
    of_consumers = _of_types(rows, events.CONSUMER_EVENTS).select(GROUP)
    once = pa.repeat(pa.scalar(1, pa.int64()), len(of_consumers))
    configured = _of_types(rows, (events.TOPIC_CONFIG,))
    queues = configured.select(_QUEUES.names[:-1])
    made = _interests(
        groups=of_consumers.append_column("events", once),
        topics=_subscribed(_of_types(rows, (events.CONSUMER_JOIN, events.SUBSCRIBE))),
        queues=queues.append_column("queues", configured["read_queue_nums"]),
    )
    return Interests.merged([made])


def _interests(**tables: pa.Table) -> Interests:
    """Interests of these tables; the others are empty."""
    return Interests(
        **{
            name: tables[name].cast(schema) if name in tables else schema.empty_table()
            for name, schema in _SCHEMAS.items()
        }
    )


def _of_types(rows: pa.Table, types: Sequence[str]) -> pa.Table:
    return rows.filter(pc.is_in(rows["event_type"], pa.array(types)))


def _subscribed(rows: pa.Table) -> pa.Table:
    """Each group with the topics that its rows name: the list's, or the single one."""
    rows = rows.combine_chunks()
    lists = rows["subscriptions"]
    parent = pc.list_parent_indices(lists)
    listed = rows.select(GROUP).take(parent).append_column("topic", pc.list_flatten(lists))
    if "topic" not in rows.column_names:
        return _named(listed)
    single = rows.filter(lists.is_null()).select([*GROUP, "topic"])
    return _named(pa.concat_tables([listed, single]))


def _named(topics: pa.Table) -> pa.Table:
    return topics.filter(topics["topic"].is_valid())


def _aggregated(table: pa.Table, column: str, function: str) -> pa.Table:
    """One row for each key with the sum or the maximum of the last column."""
    keys = [name for name in table.column_names if name != column]
    made = table.group_by(keys, use_threads=False).aggregate([(column, function)])
    return made.select([*keys, f"{column}_{function}"]).rename_columns(table.column_names)


def _distinct(table: pa.Table) -> pa.Table:
    return table.group_by(table.column_names, use_threads=False).aggregate([])

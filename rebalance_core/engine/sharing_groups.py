"""Finds groups that share client instances, which are processes that joined several groups over one
connection.
"""

from collections.abc import Iterable, Mapping
from itertools import permutations

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.model.events import CONSUMER_JOIN

Group = tuple[str, str]
INSTANCE = ("cluster", "client_id", "channel_id")


def joins_of(events: pa.Table) -> pa.Table:
    """Return the distinct (cluster, client_id, channel_id, consumer_group) of all joins."""
    joins = events.filter(pc.equal(events["event_type"], CONSUMER_JOIN))
    names = [*INSTANCE, "consumer_group"]
    return joins.select(names).group_by(names, use_threads=False).aggregate([])


def groups_sharing_with(joins: pa.Table) -> dict[Group, tuple[Group, ...]]:
    """Return, by (cluster, group), the other groups that its processes also joined, sorted.

    Args:
        joins: from `joins_of`; rows may be repeated across parts of an input.
    """
    sizes = joins.group_by(INSTANCE, use_threads=False).aggregate(
        [("consumer_group", "count_distinct")]
    )
    if not pc.any(pc.greater(sizes["consumer_group_count_distinct"], 1)).as_py():
        return {}
    groups: dict[tuple[str, ...], set[str]] = {}
    for row in joins.to_pylist():
        instance = tuple(row[name] for name in INSTANCE)
        groups.setdefault(instance, set()).add(row["consumer_group"])
    return groups_sharing_in((instance[0], names) for instance, names in groups.items())


def groups_sharing_in(
    instances: Iterable[tuple[str, Iterable[str]]],
) -> dict[Group, tuple[Group, ...]]:
    """Return the result of `groups_sharing_with`, given (cluster, groups) for each client
    instance.
    """
    sharing: dict[Group, set[Group]] = {}
    for cluster, names in instances:
        for group_name, other in permutations(set(names), 2):
            sharing.setdefault((cluster, group_name), set()).add((cluster, other))
    return {group: tuple(sorted(others)) for group, others in sorted(sharing.items())}


def wanted_with_sharing(
    wanted: Iterable[Group], sharing_groups: Mapping[Group, Iterable[Group]]
) -> set[Group]:
    """Return the wanted groups and those that share client instances with them."""
    groups = set(wanted)
    return groups.union(*(sharing_groups.get(group, ()) for group in groups))

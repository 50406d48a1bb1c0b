"""Rows of queue_offsets and committed_offsets as arrays, sorted for look-ups by time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np

from rebalance_core.kernels.group_rows import Groups
from rebalance_core.kernels.segments import Bools, Ints, first_of_run
from rebalance_core.kernels.table_columns import (
    COMMITS,
    OFFSETS,
    Columns,
    Key,
)


@dataclass(frozen=True, slots=True)
class Observations:
    """Rows of queue_offsets, sorted by group, topic, broker, queue id and moment."""

    group: Ints
    topic: Ints
    broker: Ints
    queue_id: Ints
    at_ms: Ints
    min_offset: Ints
    max_offset: Ints
    zero: Bools
    never_zero: Bools
    """Masks of the broker's answer to a group that never committed (rocketmq.md §5.3): 0, or not 0.
    Neither mask is set where the answer depends on whether entry 0 is in memory, which no file
    shows.
    """

    @classmethod
    def none(cls) -> Observations:
        """Return observations without rows."""
        numbers = np.zeros(0, np.int64)
        return cls(*(numbers,) * 7, numbers > 0, numbers > 0)

    def take(self, row: Ints) -> Observations:
        """Return the selected rows."""
        return Observations(*(getattr(self, field.name)[row] for field in fields(self)))

    def with_emptied(self, emptied: Observations) -> Observations:
        """Return these rows together with those for emptied queues, which take precedence at their
        moment.
        """
        if not len(emptied.group):
            return self
        rows = [
            np.concatenate([getattr(emptied, f.name), getattr(self, f.name)]) for f in fields(self)
        ]
        is_seen = np.arange(len(rows[0])) >= len(emptied.group)
        group, topic, broker, queue_id, at_ms = rows[:5]
        order = np.lexsort((is_seen, at_ms, queue_id, broker, topic, group))
        moment = np.cumsum(first_of_run(*(row[order] for row in rows[:5])))
        gone = np.isin(moment, moment[~is_seen[order]]) & is_seen[order]
        again = ~is_seen[order] & ~first_of_run(moment)
        return Observations(*(row[order][~gone & ~again] for row in rows))


@dataclass(frozen=True, slots=True)
class Commits:
    """Rows of committed_offsets, with one value per row, sorted by group, queue, moment and
    offset.
    """

    group: Ints
    topic: Ints
    broker: Ints
    queue_id: Ints
    at_ms: Ints
    offset: Ints
    client: Ints


def read_observations(
    table: Columns, group: Ints, codes: Mapping[Key, Ints], groups: Groups
) -> Observations:
    """Return the observations of the groups' queues."""
    topic, broker = codes[OFFSETS, "topic"], codes[OFFSETS, "broker_name"]
    queue_id, at_ms = table.ints("queue_id"), table.ints("observed_ms")
    low, high = table.ints("min_offset"), table.ints("max_offset")
    empty_is_zero = groups.empty_queue_is_zero[group]
    cached = table.bools("head_cached", null=False)
    uncached = ~table.bools("head_cached", null=True)
    zero = (low <= 0) & np.where(high <= 0, empty_is_zero, cached)
    never_zero = (low > 0) | np.where(high <= 0, ~empty_is_zero, uncached)
    order = np.lexsort((at_ms, queue_id, broker, topic, group))
    return Observations(
        group=group[order],
        topic=topic[order],
        broker=broker[order],
        queue_id=queue_id[order],
        at_ms=at_ms[order],
        min_offset=low[order],
        max_offset=high[order],
        zero=zero[order],
        never_zero=never_zero[order],
    )


def read_commits(table: Columns, group: Ints, codes: Mapping[Key, Ints]) -> Commits:
    """Return the groups' commits; of two observed at the same moment, the higher one counts as
    newer.
    """
    topic, broker = codes[COMMITS, "topic"], codes[COMMITS, "broker_name"]
    queue_id, at_ms = table.ints("queue_id"), table.ints("observed_ms")
    offset = table.ints("committed_offset")
    order = np.lexsort((offset, at_ms, queue_id, broker, topic, group))
    columns = (group, topic, broker, queue_id, at_ms, offset, codes[COMMITS, "client_id"])
    return Commits(*(column[order] for column in columns))

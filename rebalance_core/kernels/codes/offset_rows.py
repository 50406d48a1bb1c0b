"""Rows of queue_offsets and committed_offsets as arrays, sorted for look-ups by moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rebalance_core.kernels.codes.columns import COMMITS, OFFSETS, Columns, Key
from rebalance_core.kernels.codes.group_rows import Groups
from rebalance_core.kernels.segments import Bools, Ints


@dataclass(frozen=True, slots=True)
class Observations:
    """One value a row of queue_offsets, by group, topic, broker, queue id and moment."""

    group: Ints
    topic: Ints
    broker: Ints
    queue_id: Ints
    at_ms: Ints
    min_offset: Ints
    max_offset: Ints
    broker_zero: Bools
    """The broker would answer 0 to a group that never committed (SEM §5.3)."""

    @classmethod
    def none(cls) -> Observations:
        """No row."""
        numbers = np.zeros(0, np.int64)
        return cls(numbers, numbers, numbers, numbers, numbers, numbers, numbers, numbers > 0)


@dataclass(frozen=True, slots=True)
class Commits:
    """One value a row of committed_offsets, by group, queue, moment and offset."""

    group: Ints
    topic: Ints
    broker: Ints
    queue_id: Ints
    at_ms: Ints
    offset: Ints
    client: Ints


def read_observations(
    given: Columns, group: Ints, codes: Mapping[Key, Ints], groups: Groups
) -> Observations:
    """The observations of the groups' queues."""
    topic, broker = codes[OFFSETS, "topic"], codes[OFFSETS, "broker_name"]
    queue_id, at_ms = given.ints("queue_id"), given.ints("observed_ms")
    low, high = given.ints("min_offset"), given.ints("max_offset")
    cached = given.bools("head_cached", null=True)
    zero = (low <= 0) & np.where(high <= 0, groups.empty_queue_is_zero[group], cached)
    order = np.lexsort((at_ms, queue_id, broker, topic, group))
    return Observations(
        group[order], topic[order], broker[order], queue_id[order], at_ms[order],
        low[order], high[order], zero[order],
    )  # fmt: skip


def read_commits(given: Columns, group: Ints, codes: Mapping[Key, Ints]) -> Commits:
    """The commits of the groups; of two seen at one moment the higher one is the newer."""
    topic, broker = codes[COMMITS, "topic"], codes[COMMITS, "broker_name"]
    queue_id, at_ms = given.ints("queue_id"), given.ints("observed_ms")
    offset = given.ints("committed_offset")
    order = np.lexsort((offset, at_ms, queue_id, broker, topic, group))
    columns = (group, topic, broker, queue_id, at_ms, offset, codes[COMMITS, "client_id"])
    return Commits(*(column[order] for column in columns))

"""The input of the kernels: the rows of many groups, as arrays of codes.

Groups are numbered by kind of strategy, then by name; every array is in the order of groups.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.contracts import INPUT_TABLES
from rebalance_core.kernels import group_kinds, group_rows, segments
from rebalance_core.kernels.config_lists import NAME, ConfigLists, listed_brokers, read_lists
from rebalance_core.kernels.encoded_events import Events, read_events
from rebalance_core.kernels.encoded_offsets import (
    Commits,
    Observations,
    read_commits,
    read_observations,
)
from rebalance_core.kernels.engine_options import EngineOptions
from rebalance_core.kernels.group_rows import Groups, StrategyFor
from rebalance_core.kernels.member_strategies import MemberStrategies
from rebalance_core.kernels.segments import Bools, Ints
from rebalance_core.kernels.table_columns import (
    COMMITS,
    EVENTS,
    GROUPS,
    OFFSETS,
    TABLES,
    Columns,
    Key,
    encode_all,
    encode_channels,
)
from rebalance_core.kernels.topic_sets import TopicSets
from rebalance_core.model.queue import RETRY_TOPIC_PREFIX
from rebalance_core.strategies import AllocationStrategy


@dataclass(frozen=True, slots=True)
class Names:
    """The names that codes stand for; clients, topics and brokers in Java's order."""

    clusters: pa.StringArray
    """The cluster of each group, in the order of `groups`."""
    groups: pa.StringArray
    clients: pa.StringArray
    channels: pa.StringArray
    topics: pa.StringArray
    brokers: pa.StringArray
    words: pa.StringArray
    """The strategy texts, versions, message models and start modes."""


@dataclass(frozen=True, slots=True)
class EncodedGroups:
    """Many groups, each complete."""

    names: Names
    groups: Groups
    strategies: tuple[AllocationStrategy, ...]
    """The strategies that `Groups.allocation` indexes."""
    member_strategies: MemberStrategies
    lists: ConfigLists
    events: Events
    topic_sets: TopicSets
    topic_is_retry: Bools
    """For each topic code, whether it is the retry topic of any group."""
    observations: Observations | None
    """The rows of queue_offsets; None: the input has no such table."""
    shared_observations: bool
    """Whether a row of `observations` belongs to all groups of its cluster; its group is then any
    of these.
    """
    commits: Commits | None
    """The rows of committed_offsets; None: the input has no such table."""

    def divided_by(self, number: int) -> EncodedGroups:
        """Return the groups as if all members allocated by their group's strategy with this number.

        Groups with fewer strategies get a kind that divides nothing.
        """
        if number == 0:
            return self  # a group with a strategy has the kind of its first strategy
        allocation = self.member_strategies.of_number(number, len(self.groups))
        kinds = group_kinds.kinds_of(self.strategies)
        unknown = self.groups.kind == group_kinds.NOT_VECTORIZED
        kind = np.where(unknown, group_kinds.NOT_VECTORIZED, kinds[allocation])
        return replace(self, groups=replace(self.groups, kind=kind, allocation=allocation))


def read_encoded_groups(
    rows: Mapping[str, pa.Table], options: EngineOptions, strategy_for: StrategyFor
) -> EncodedGroups:
    """Return rows of whole groups, in any order, as codes.

    Args:
        rows: input tables by name; every group has at least one row in cluster_events. A missing
            table has no rows; only cluster_events is required. Rows of queue_offsets without the
            column consumer_group belong to all groups of their cluster.
        options: see `EngineOptions`.
        strategy_for: (strategy text, client version) -> strategy.
    """
    tables = {name: Columns(rows[name] if name in rows else _no_rows(name)) for name in TABLES}
    clusters, group_names, numbers = _number_groups(tables)
    tables[GROUPS] = _one_row_a_group(tables[GROUPS], numbers[GROUPS], len(group_names))
    retry_topics = pc.binary_join_element_wise(RETRY_TOPIC_PREFIX, group_names, "")
    topics, codes = encode_all(
        _all(tables, "topic", EVENTS, OFFSETS, COMMITS)
        | {(t, "subscriptions"): tables[t].lists("subscriptions").flatten() for t in TABLES[:2]}
        | {(GROUPS, "retry"): retry_topics}
    )
    found_words = encode_all(
        group_rows.words_of(tables, numbers[EVENTS], options.strategy_override)
    )
    brokers = _all(tables, "broker_name", EVENTS, OFFSETS, COMMITS)
    brokers[NAME, "broker_name"] = listed_brokers(found_words[0])
    named = {
        "brokers": encode_all(brokers),
        "clients": encode_all(_all(tables, "client_id", EVENTS, COMMITS)),
        "channels": encode_channels(tables[EVENTS]),
        "words": found_words,
    }
    for _, column_codes in named.values():
        codes |= column_codes
    words, sets = named["words"][0], TopicSets()
    retry = options.include_retry_topics
    groups, strategies, member_strategies = group_rows.divided(
        group_rows.read_groups(tables[GROUPS], codes, words, sets, retry=retry),
        tables,
        numbers[EVENTS],
        codes,
        words,
        strategy_for,
    )
    order = np.lexsort((groups.kind, ~group_kinds.divides(groups.kind)))
    groups = groups.take(order)
    renumbered = np.argsort(order)
    numbers = {name: renumbered[number] for name, number in numbers.items()}
    return EncodedGroups(
        names=Names(
            clusters.take(pa.array(order)),
            group_names.take(pa.array(order)),
            topics=topics,
            **{name: names for name, (names, _) in named.items()},
        ),
        groups=groups,
        strategies=strategies,
        member_strategies=member_strategies.renumbered(renumbered),
        lists=read_lists(strategies, topics, named["brokers"][0]),
        events=read_events(tables[EVENTS], numbers[EVENTS], codes, groups, sets),
        topic_sets=sets,
        topic_is_retry=_retry_topics(topics),
        observations=read_observations(tables[OFFSETS], numbers[OFFSETS], codes, groups)
        if options.queue_offsets_given
        else None,
        shared_observations=_is_shared(tables[OFFSETS]),
        commits=read_commits(tables[COMMITS], numbers[COMMITS], codes)
        if options.committed_offsets_given
        else None,
    )


def _no_rows(table: str) -> pa.Table:
    return INPUT_TABLES[table].arrow_schema().empty_table()


def _retry_topics(topics: pa.StringArray) -> Bools:
    is_retry = pc.starts_with(topics, RETRY_TOPIC_PREFIX)
    return is_retry.to_numpy(zero_copy_only=False)


def _all(tables: Mapping[str, Columns], name: str, *of: str) -> dict[Key, pa.StringArray]:
    return {(table, name): tables[table].strings(name) for table in of}


def _number_groups(
    tables: Mapping[str, Columns],
) -> tuple[pa.StringArray, pa.StringArray, dict[str, Ints]]:
    """Return the clusters and names of the groups, and the group number of every table's rows."""
    cluster_names, clusters = encode_all(_all(tables, "cluster", *TABLES))
    of_groups = [name for name in TABLES if name != OFFSETS or not _is_shared(tables[OFFSETS])]
    group_names, groups = encode_all(_all(tables, "consumer_group", *of_groups))
    keys = {
        name: clusters[name, "cluster"] * len(group_names) + groups.get((name, "consumer_group"), 0)
        for name in TABLES
    }
    distinct = segments.distinct(keys[EVENTS])
    cluster, group = np.divmod(distinct, max(1, len(group_names)))
    numbers = {name: np.searchsorted(distinct, key) for name, key in keys.items()}
    return cluster_names.take(pa.array(cluster)), group_names.take(pa.array(group)), numbers


def _is_shared(offsets: Columns) -> bool:
    return "consumer_group" not in offsets.rows.column_names


def _one_row_a_group(table: Columns, group: Ints, count: int) -> Columns:
    """Return the settings by group number, with nulls for a group without settings."""
    row_of = np.full(count, -1, np.int64)
    row_of[group] = np.arange(len(table))
    return Columns(table.rows.take(pa.array(row_of, mask=row_of < 0)))

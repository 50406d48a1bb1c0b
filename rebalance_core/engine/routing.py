"""Finds the topics that an input's groups read, and routes rows to tasks, splitting giant
groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.checks.packed_rows import PackedTables, by_bucket
from rebalance_core.checks.rejections import Rejections
from rebalance_core.checks.row_counts import Complaint
from rebalance_core.checks.row_limits import MAX_BAD_SHARE, complaint_lines
from rebalance_core.contracts.ledger import UNKNOWN_MEMBER
from rebalance_core.engine.fan_out import (
    GROUP,
    distinct_pairs,
    of_types,
    subscribed,
    without_text,
)
from rebalance_core.engine.options import matches
from rebalance_core.engine.sharing_groups import Group, wanted_with_sharing
from rebalance_core.kernels import segments
from rebalance_core.kernels.queue_parts import Part, part_of, turns_of
from rebalance_core.kernels.segments import Bools, Ints, pointers, ranges
from rebalance_core.kernels.table_columns import COMMITS, EVENTS, GROUPS, OFFSETS
from rebalance_core.model import events
from rebalance_core.model.errors import InputRefused, did_you_mean
from rebalance_core.model.queue import RETRY_TOPIC_PREFIX

# The topics and brokers of an input's groups, as small tables that determine which rows concern
# which group. They are computed for each part of the input and then merged.
_NAMES = pa.string()
_GROUP = [(name, _NAMES) for name in GROUP]
_HOST = pa.schema([("cluster", _NAMES), ("topic", _NAMES), ("broker_name", _NAMES)])
_BROKER = pa.schema([("cluster", _NAMES), ("broker_name", _NAMES)])
_TOPIC = [("cluster", _NAMES), ("topic", _NAMES)]
_QUEUES = pa.schema(
    [("cluster", _NAMES), ("topic", _NAMES), ("broker_name", _NAMES), ("queues", pa.int64())]
)


@dataclass(frozen=True, eq=False)
class Interests(PackedTables):
    """The topics and queues that groups read.

    Attributes:
        groups: cluster, consumer_group and the number of consumer events, for groups that have any.
        joins: cluster, consumer_group and the number of joins among these.
        topics: distinct cluster, consumer_group and topic to which the group ever subscribes.
        queues: cluster, topic, broker_name and the maximum number of queues configured there.
        seen: distinct cluster, topic and broker_name in end offsets of queues.
        brokers: distinct cluster and broker_name in TOPIC_CONFIG or BROKER_UP.
        about: distinct cluster and broker_name in any other event.
        commits: cluster, consumer_group and the number of their rows in committed_offsets.
        observations: cluster, topic and the number of their rows in queue_offsets.
    """

    SCHEMAS: ClassVar = {
        "groups": pa.schema([*_GROUP, ("events", pa.int64())]),
        "joins": pa.schema([*_GROUP, ("joins", pa.int64())]),
        "topics": pa.schema([*_GROUP, ("topic", _NAMES)]),
        "queues": _QUEUES,
        "seen": _HOST,
        "brokers": _BROKER,
        "about": _BROKER,
        "commits": pa.schema([*_GROUP, ("rows", pa.int64())]),
        "observations": pa.schema([*_TOPIC, ("rows", pa.int64())]),
    }

    groups: pa.Table
    joins: pa.Table
    topics: pa.Table
    queues: pa.Table
    seen: pa.Table
    brokers: pa.Table
    about: pa.Table
    commits: pa.Table
    observations: pa.Table

    @classmethod
    def merged(cls, parts: Iterable[Interests]) -> Interests:
        """Merge the interests of all parts."""
        rows = cls.joined(parts)
        return cls(
            _aggregated(rows["groups"], "events", "sum"),
            _aggregated(rows["joins"], "joins", "sum"),
            _distinct(rows["topics"]),
            _aggregated(rows["queues"], "queues", "max"),
            _distinct(rows["seen"]),
            _distinct(rows["brokers"]),
            _distinct(rows["about"]),
            _aggregated(rows["commits"], "rows", "sum"),
            _aggregated(rows["observations"], "rows", "sum"),
        )


def interests_of(table: str, rows: pa.Table) -> Interests | None:
    """Return the interests named in used rows of an input table, or None if there are none."""
    if table == EVENTS:
        return _of_events(rows)
    if table == GROUPS:
        return Interests.merged([Interests.of(topics=subscribed(rows))])
    if table == OFFSETS:
        seen = _counted(rows, _HOST.names)
        observations = seen.select(["cluster", "topic", "rows"])
        made = Interests.of(seen=seen.select(_HOST.names), observations=observations)
        return Interests.merged([made])
    if table == COMMITS:
        return Interests.of(commits=_counted(rows, GROUP))
    return None


def _counted(rows: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Return the distinct keys, with the number of rows of each as ``rows``."""
    counted = rows.select(keys).group_by(keys, use_threads=False).aggregate([([], "count_all")])
    return counted.select([*keys, "count_all"]).rename_columns([*keys, "rows"])


def refuse_no_group(wanted: str | None, interests: Interests | None) -> None:
    """Raise `InputRefused` unless a selected group has consumer events and its topics are known.

    Args:
        wanted: a glob for group names; None for all groups, even if there are none.
        interests: the interests of the whole input.
    """
    _refuse_no_match(wanted, interests, " with consumer events")
    _refuse_unknown_brokers(interests or Interests.of())
    _refuse_unconfigured(wanted, interests or Interests.of())


def refuse_no_consumer(
    interests: Interests | None, complaints: Callable[[], Sequence[Complaint]]
) -> None:
    """Raise `InputRefused` if there is no consumer event, since a simulation would succeed without
    finding anything.

    Args:
        interests: the interests of the whole input.
        complaints: returns the end of a refusal's message; called only for a refusal.
    """
    if not len((interests or Interests.of()).groups):
        lines = complaint_lines(complaints())
        why = ": all of its rows are bad" if lines else ""
        text = f"cluster_events has no consumer event to simulate{why}"
        raise InputRefused("\n".join([text, *lines]))


_BEGINNING = (
    "pass the earlier run that covers it (--state RUN) or the whole history (--from and --to "
    "leave rows out of the output)"
)
"""Advice on how to supply the missing beginning of a history."""
LEAST_STRAYS = 2
"""The number of events without a member from which they are systematic; a single event may be an
error in the log.
"""


def refuse_no_member(wanted: str | None, interests: Interests | None, rejected: Rejections) -> None:
    """Raise `InputRefused` if events concern members that never joined, as in a truncated history.

    This is the case if no consumer event concerns an existing member, or if most events that
    require a member lack its join and are more than a few strays among many joins.

    Args:
        wanted: as in `refuse_no_group`.
        interests: the interests of the whole input.
        rejected: all rows of ``rejected``.
    """
    named = interests or Interests.of()
    events, joins = (
        sum(
            row[name]
            for row in rows.to_pylist()
            if wanted is None or matches(wanted, row["consumer_group"])
        )
        for name, rows in (("events", named.groups), ("joins", named.joins))
    )
    unknown = rejected.times(UNKNOWN_MEMBER)
    if events and unknown >= events:
        text = "no member is left to simulate: every consumer event in cluster_events is a bad row"
        raise InputRefused("\n".join([text, *complaint_lines(rejected.complaints())]))
    most = unknown > MAX_BAD_SHARE * (events - joins) and unknown >= MAX_BAD_SHARE * joins
    if most and unknown >= LEAST_STRAYS:
        raise InputRefused(
            f"cluster_events lacks its first events: {unknown:,} of the {events - joins:,} events "
            "about members concern members without an earlier CONSUMER_JOIN, so they are "
            f"refused; {_BEGINNING}, or a CONSUMER_JOIN for each member that was online at its "
            "beginning"
        )


SHOWN = 5
"""Maximum number of topics or brokers that a message names."""


def _refuse_unknown_brokers(interests: Interests) -> None:
    """Raise `InputRefused` if most brokers in events are never configured and never come up."""
    there, about = (
        set(zip(*(table[name].to_pylist() for name in _BROKER.names), strict=True))
        for table in (interests.brokers, interests.about)
    )
    lacking = sorted({broker for _, broker in about - there})
    if len(about - there) > MAX_BAD_SHARE * len(about | there):
        raise InputRefused(
            "cluster_events lacks its first events: no TOPIC_CONFIG and no BROKER_UP names "
            f"{len(lacking):,} broker(s) that other events mention ({_shown(lacking)}), so those "
            f"events are refused; {_BEGINNING}, or a TOPIC_CONFIG with detail OBSERVED for each "
            "topic and broker"
        )


def _shown(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    return f"{', '.join(names[:SHOWN])}{more}"


def _refuse_unconfigured(wanted: str | None, interests: Interests) -> None:
    """Raise `InputRefused` if subscribed topics are never configured, which means that the
    beginning is missing.

    Members may subscribe to a topic that does not exist, but a topic whose queues have end offsets
    does exist, and it is implausible that more than half of the subscribed topics do not.
    """
    names = interests.groups["consumer_group"].to_pylist()
    groups = {
        key
        for key in zip(interests.groups["cluster"].to_pylist(), names, strict=True)
        if wanted is None or matches(wanted, key[1])
    }
    pairs = [
        (row["cluster"], row["topic"])
        for row in interests.topics.to_pylist()
        if (row["cluster"], row["consumer_group"]) in groups
        and not row["topic"].startswith(RETRY_TOPIC_PREFIX)
    ]
    hosts = set(zip(*(interests.queues[name].to_pylist() for name in _HOST.names), strict=True))
    configured = {host[:2] for host in hosts}
    lacking = [topic for topic in pairs if topic not in configured]
    seen = zip(*(interests.seen[name].to_pylist() for name in _HOST.names), strict=True)
    subscribed_topics = set(pairs)
    certain = {host for host in seen if host not in hosts and host[:2] in subscribed_topics}
    if not certain and len(lacking) <= MAX_BAD_SHARE * len(pairs):
        return
    lacking_topics = sorted({f"{topic} on {broker}" for _, topic, broker in certain})
    lacking_topics = lacking_topics or sorted({topic for _, topic in lacking})
    raise InputRefused(
        f"cluster_events lacks its first events: groups subscribe to {len(lacking_topics):,} "
        "topic(s) that no TOPIC_CONFIG configures "
        f"({_shown(lacking_topics)}){', though their queues have ends' if certain else ''}, so "
        f"the events of their members are refused; {_BEGINNING}, or a TOPIC_CONFIG with detail "
        "OBSERVED for each topic and broker"
    )


def refuse_unnamed_group(wanted: str | None, interests: Interests | None) -> None:
    """Call `refuse_no_group` for a run that assesses every group named in any row.

    Args:
        wanted: as in `refuse_no_group`.
        interests: the interests of the whole input (`interests_of_named`).
    """
    _refuse_no_match(wanted, interests, "")


def _refuse_no_match(wanted: str | None, interests: Interests | None, kind: str) -> None:
    names = pc.unique((interests or Interests.of()).groups["consumer_group"])
    group_names = sorted(names.to_pylist())
    if wanted is None or any(matches(wanted, name) for name in group_names):
        return
    groups_shown = (
        f"{len(group_names):,} groups" if len(group_names) != 1 else f"the group {group_names[0]}"
    )
    raise InputRefused(
        f"--group {wanted} matches no group{kind}; "
        f"the input has {groups_shown}{did_you_mean(wanted, group_names)}"
    )


def interests_of_named(table: str, rows: pa.Table) -> Interests | None:
    """Return `interests_of`, extended by every group named in any row and the topics of its
    commits.

    Groups without consumer events have the number 0.

    Args:
        table: the name of the table.
        rows: its used rows. If a table's rows name no group, the result is None.
    """
    if "consumer_group" not in rows.column_names:
        return None
    interests = interests_of(table, rows)
    names = of_types(rows, events.GROUP_EVENTS, GROUP) if table == EVENTS else rows.select(GROUP)
    names = names.filter(names["consumer_group"].is_valid())
    none = pa.repeat(pa.scalar(0, pa.int64()), len(names))
    named = Interests.of(groups=names.append_column("events", none))
    if table == COMMITS:
        named = replace(named, topics=rows.select([*GROUP, "topic"]))
    return Interests.merged([named] if interests is None else [interests, named])


def _of_events(rows: pa.Table) -> Interests:
    of_consumers = of_types(rows, events.CONSUMER_EVENTS, GROUP)
    once = pa.repeat(pa.scalar(1, pa.int64()), len(of_consumers))
    of_joins = of_types(rows, (events.CONSUMER_JOIN,), GROUP)
    configured = of_types(
        rows, (events.TOPIC_CONFIG,), [*_QUEUES.names[:-1], "read_queue_nums"]
    ).rename_columns(_QUEUES.names)
    subscribing = of_types(
        rows, (events.CONSUMER_JOIN, events.SUBSCRIBE), [*GROUP, "topic", "subscriptions"]
    )
    named = rows.select([*_BROKER.names, "event_type"]).filter(rows["broker_name"].is_valid())
    there = of_types(named, (events.TOPIC_CONFIG, events.BROKER_UP), _BROKER.names)
    others = [
        event_type
        for event_type in events.EVENT_TYPES
        if event_type not in (events.TOPIC_CONFIG, events.BROKER_UP)
    ]
    made = Interests.of(
        brokers=there,
        about=of_types(named, others, _BROKER.names),
        groups=of_consumers.append_column("events", once),
        joins=of_joins.append_column("joins", once[: len(of_joins)]),
        topics=subscribed(subscribing),
        queues=configured,
    )
    return Interests.merged([made])


def _aggregated(table: pa.Table, column: str, function: str) -> pa.Table:
    """Return one row per key, with the sum or the maximum of a column."""
    keys = [name for name in table.column_names if name != column]
    made = table.group_by(keys, use_threads=False).aggregate([(column, function)])
    return made.select([*keys, f"{column}_{function}"]).rename_columns(table.column_names)


def _distinct(table: pa.Table) -> pa.Table:
    return table.group_by(table.column_names, use_threads=False).aggregate([])


# Routing: every group goes into one bucket as a whole, except that a giant group goes into several.
#
# A group's weight approximates the cost of its pass: its cells (queues x consumer events), and the
# rows of offsets and commits of its queues. Groups are distributed in turn by descending weight,
# which balances the buckets even if groups are skewed. A row that concerns groups in several
# buckets goes to each of them once, but a row about a single queue goes only to the part of a
# divided group that has the queue. Within a bucket, `fan_out` assigns it to groups.
GIANT_CELLS = 1 << 26
"""Groups with more cells than this are divided, so that a unit takes seconds rather than
minutes.
"""

CELLS_OF_ROW = 1 << 8
"""The number of cells that a row of offsets or commits counts as; a unit has at most a quarter of a
million rows.
"""

UNDIVIDED = 1 << 62
"""More cells than any group has, which disables division."""


@dataclass(frozen=True, eq=False)
class Lookup:
    """The buckets of each key.

    Attributes:
        keys: The distinct keys.
        first: Where each key's buckets begin, followed by the end; shape (keys + 1,).
        buckets: The distinct buckets of each key, contiguous.
    """

    keys: pa.StringArray
    first: Ints
    buckets: Ints

    @classmethod
    def from_pairs(cls, keys: pa.StringArray, buckets: Ints) -> Lookup:
        """Return the lookup of (key, bucket) pairs, which may repeat."""
        pairs = pa.table({"key": keys, "bucket": buckets})
        pairs = pairs.group_by(["key", "bucket"], use_threads=False).aggregate([])
        encoded = pairs["key"].combine_chunks().dictionary_encode()
        code = np.asarray(encoded.indices)
        order = np.argsort(code, kind="stable")
        count = np.bincount(code, minlength=len(encoded.dictionary))
        return cls(encoded.dictionary, pointers(count), np.asarray(pairs["bucket"])[order])

    def rows_of(self, keys: pa.StringArray) -> tuple[Ints, Ints]:
        """Return (row number, bucket) for every bucket of each row's key; a null key has no
        bucket.
        """
        code = np.asarray(pc.fill_null(pc.index_in(keys, self.keys), -1)).astype(np.int64)
        row = np.flatnonzero(code >= 0)
        first = self.first[code[row]]
        count = self.first[code[row] + 1] - first
        return np.repeat(row, count), self.buckets[ranges(first, count)]


@dataclass(frozen=True, eq=False)
class DividedGroups:
    """Groups divided into parts, each of which gets the rows of its own queues.

    Attributes:
        groups: The number of each divided group, by its key.
        topics: The numbers of the divided groups that read a topic, by its key.
        parts: The number of parts of each group.
        block: The block size of each group; see `kernels.queue_parts.Part`.
        first: Where the parts of each group begin in ``buckets``.
        buckets: The bucket of each part.
    """

    groups: Lookup
    topics: Lookup
    parts: Ints
    block: Ints
    first: Ints
    buckets: Ints

    def rows_of(self, rows: pa.Table, number: Ints, group: Ints) -> tuple[Ints, Ints]:
        """Return (row number, bucket) for the part that has each row's queue.

        Args:
            rows: The rows of a table with one row per queue.
            number: Numbers of rows.
            group: The number of a divided group that each row concerns.
        """
        mine = rows.select(["topic", "broker_name", "queue_id"]).take(pa.array(number))
        mine = mine.combine_chunks()
        turn = turns_of(*(_flat(mine[name]) for name in ("topic", "broker_name")))
        queue_id = mine["queue_id"].to_numpy().astype(np.int64)
        part = part_of(turn, queue_id, self.parts[group], self.block[group])
        return number, self.buckets[self.first[group] + part]


@dataclass(frozen=True, eq=False)
class Routing:
    """The buckets to which the rows of each group, topic and broker go.

    Attributes:
        buckets: The number of buckets.
        clusters: The clusters that have groups.
        groups: The buckets of each cluster and group.
        topics: The buckets of each cluster and topic.
        brokers: The buckets of each cluster and broker.
        giants: For each bucket, the parts of divided groups that it computes, by cluster and group.
        guests: For each bucket, the groups whose rows it gets only because of other groups
            (`groups_sharing_with`).
        whole_groups: Like ``groups``, without groups divided by queue.
        whole_topics: Like ``topics``, but only for these groups.
        divided: The groups divided by queue; None if there are none or if parts are not shares of
            queues.
        units: The number of groups and parts of divided groups.
    """

    buckets: int
    clusters: pa.StringArray
    groups: Lookup
    topics: Lookup
    brokers: Lookup
    giants: dict[int, dict[Group, list[Part]]]
    guests: dict[int, frozenset[Group]] = field(default_factory=dict)
    whole_groups: Lookup | None = None
    whole_topics: Lookup | None = None
    divided: DividedGroups | None = None
    units: int = 0

    def split(self, table: str, rows: pa.Table) -> Iterator[tuple[int, pa.Table]]:
        """Yield each bucket with the used rows of an input table that belong to it."""
        number, bucket = self._buckets(table, rows)
        # The text of a row is needed only for an event that names an unknown member.
        yield from by_bucket(rows if table == EVENTS else without_text(rows), bucket, number)

    def _buckets(self, table: str, rows: pa.Table) -> tuple[Ints, Ints]:
        """Return (row number, bucket) for every bucket that a row goes to."""
        if table in (OFFSETS, COMMITS):
            return self._of_queues(table, rows)
        groups = _keys(self.clusters, rows, "consumer_group")
        if table != EVENTS:
            return self.groups.rows_of(groups)
        of_group = pc.is_in(rows["event_type"], pa.array(events.GROUP_EVENTS)).combine_chunks()
        of_topic = pc.is_in(rows["event_type"], pa.array(events.TOPIC_EVENTS)).combine_chunks()
        nothing = pa.scalar(None, pa.string())
        topics = _keys(self.clusters, rows, "topic")
        brokers = _keys(self.clusters, rows, "broker_name")
        parts = (
            self.groups.rows_of(pc.if_else(of_group, groups, nothing)),
            self.topics.rows_of(pc.if_else(of_topic, topics, nothing)),
            self.brokers.rows_of(pc.if_else(pc.or_(of_group, of_topic), nothing, brokers)),
        )
        row, bucket = (np.concatenate(column) for column in zip(*parts, strict=True))
        return row, bucket

    def _of_queues(self, table: str, rows: pa.Table) -> tuple[Ints, Ints]:
        """Return `_buckets` for a table with one row per queue."""
        name = "topic" if table == OFFSETS else "consumer_group"
        keys = _keys(self.clusters, rows, name)
        divided = self.divided
        if divided is None or self.whole_topics is None or self.whole_groups is None:
            return (self.topics if table == OFFSETS else self.groups).rows_of(keys)
        whole = self.whole_topics if table == OFFSETS else self.whole_groups
        parts = divided.topics if table == OFFSETS else divided.groups
        of_part = divided.rows_of(rows, *parts.rows_of(keys))
        pairs = (whole.rows_of(keys), of_part)
        row, bucket = (np.concatenate(column) for column in zip(*pairs, strict=True))
        # a bucket with one whole group and a part of another gets a row that concerns both only
        # once
        return distinct_pairs(row, bucket)


def routing_of(
    interests: Interests,
    buckets: int,
    group_pattern: str | None = None,
    giant_cells: int = GIANT_CELLS,
    sharing_groups: Mapping[Group, Sequence[Group]] | None = None,
    *,
    as_one: bool = False,
    by_queue: bool = False,
) -> Routing:
    """Assign the groups to buckets of about equal work.

    Args:
        interests: The interests of all rows.
        buckets: The number of buckets; if there are fewer units, the rest remain empty.
        group_pattern: SQL LIKE pattern for the selected groups; None for all.
        giant_cells: The maximum number of cells in a unit.
        sharing_groups: For each group, the other groups whose rows also go to its buckets.
        as_one: Whether a group and all groups that share its instances form one unit;
            ``giant_cells`` must then be `UNDIVIDED`.
        by_queue: Whether a part is a share of a group's queues that gets only their rows of offsets
            and commits. Otherwise parts get all rows, which do not count in a unit's size.
    """
    groups, wanted = _wanted(interests.groups, group_pattern, sharing_groups or {})
    wanted |= as_one
    clusters = pc.unique(groups["cluster"])
    of_group, topics = _read_by(interests, clusters, groups)
    cells, most_queues = _cells(interests, clusters, groups, of_group, topics)
    weight = cells + CELLS_OF_ROW * _rows(interests, clusters, groups, of_group, topics)
    sizes = weight if by_queue else cells
    parts = np.where(wanted, np.maximum(1, -(-sizes // giant_cells)), 0)
    unit_group = np.repeat(np.arange(len(groups)), parts)
    turn = np.argsort(-(weight / np.maximum(parts, 1))[unit_group], kind="stable")
    bucket = np.empty(len(unit_group), np.int64)
    bucket[turn] = np.arange(len(turn)) % buckets
    if as_one and sharing_groups:
        bucket = bucket[_first_of_unit(groups, sharing_groups)]
    block = np.maximum(1, -(-most_queues // np.maximum(parts, 1)))
    giants = _giants(groups, parts, block, bucket)
    by_part = (parts, block, pointers(parts), bucket)
    guest, its_bucket = _sharing_groups(groups, unit_group, bucket, sharing_groups or {})
    guests = _guests_by_bucket(groups, guest, its_bucket)
    unit_group = np.concatenate([unit_group, guest])
    order = np.argsort(unit_group, kind="stable")
    unit_group, bucket = unit_group[order], np.concatenate([bucket, its_bucket])[order]
    parts = np.bincount(unit_group, minlength=len(groups))
    first = pointers(parts)
    group_keys = _keys(clusters, groups, "consumer_group")
    reading = segments.distinct(of_group)
    retry = _retry_keys(clusters, groups).take(pa.array(reading))
    read_by, topics = np.concatenate([of_group, reading]), pa.concat_arrays([topics, retry])

    def lookups(some: Bools) -> tuple[Lookup, Lookup]:
        """Return the buckets of the given groups, and those of the topics that they read."""
        mine, of = some[unit_group], some[read_by]
        reader = read_by[of]
        count = parts[reader]
        topic = np.repeat(np.flatnonzero(of), count)
        topic_buckets = bucket[ranges(first[reader], count)]
        return (
            Lookup.from_pairs(group_keys.take(pa.array(unit_group[mine])), bucket[mine]),
            Lookup.from_pairs(topics.take(pa.array(topic)), topic_buckets),
        )

    by_group, by_topic = lookups(np.ones(len(groups), np.bool_))
    is_divided = by_part[0] > 1
    whole: tuple[Lookup | None, Lookup | None] = (None, None)
    divided = None
    if by_queue and is_divided.any():
        whole = lookups(~is_divided)
        number = np.flatnonzero(is_divided)
        read = np.flatnonzero(is_divided[read_by])
        divided = DividedGroups(
            Lookup.from_pairs(group_keys.take(pa.array(number)), number),
            Lookup.from_pairs(topics.take(pa.array(read)), read_by[read]),
            *by_part,
        )
    place, broker_buckets = by_topic.rows_of(_keys(clusters, interests.queues, "topic"))
    brokers = _keys(clusters, interests.queues, "broker_name").take(pa.array(place))
    return Routing(
        buckets=buckets,
        clusters=clusters,
        groups=by_group,
        topics=by_topic,
        brokers=Lookup.from_pairs(brokers, broker_buckets),
        giants=giants,
        guests=guests,
        whole_groups=whole[0],
        whole_topics=whole[1],
        divided=divided,
        units=int(by_part[0].sum()),
    )


def _wanted(
    groups: pa.Table, pattern: str | None, sharing_groups: Mapping[Group, Sequence[Group]]
) -> tuple[pa.Table, Bools]:
    """Return, in order, the selected groups and those that share instances with them, and a mask of
    the selected groups.
    """
    groups = groups.sort_by([("cluster", "ascending"), ("consumer_group", "ascending")])
    groups = groups.combine_chunks()
    if pattern is None:
        return groups, np.ones(len(groups), np.bool_)
    fits = pc.match_like(groups["consumer_group"], pattern)
    if not sharing_groups:
        groups = groups.filter(fits).combine_chunks()
        return groups, np.ones(len(groups), np.bool_)
    wanted = np.asarray(fits)
    names = _names_of(groups)
    kept = wanted_with_sharing((names[n] for n in np.flatnonzero(wanted).tolist()), sharing_groups)
    chosen = np.array([name in kept for name in names], np.bool_)
    return groups.filter(pa.array(chosen)).combine_chunks(), wanted[chosen]


def _names_of(groups: pa.Table) -> list[Group]:
    return list(zip(*(groups[name].to_pylist() for name in GROUP), strict=True))


def _first_of_unit(groups: pa.Table, sharing_groups: Mapping[Group, Sequence[Group]]) -> Ints:
    """Return, for each group, the number of the first group connected to it through shared
    instances.
    """
    names = _names_of(groups)
    numbers = {name: number for number, name in enumerate(names)}
    first = np.full(len(names), -1, np.int64)
    for number in range(len(names)):
        reached = [] if first[number] >= 0 else [number]
        while reached:
            place = reached.pop()
            if first[place] < 0:
                first[place] = number
                reached += [
                    numbers[sharing_group]
                    for sharing_group in sharing_groups.get(names[place], ())
                    if sharing_group in numbers
                ]
    return first


def _sharing_groups(
    groups: pa.Table,
    unit_group: Ints,
    bucket: Ints,
    sharing_groups: Mapping[Group, Sequence[Group]],
) -> tuple[Ints, Ints]:
    """Return (group, bucket) pairs whose bucket computes another group that shares instances with
    the group.
    """
    nothing = np.empty(0, np.int64)
    if not sharing_groups:
        return nothing, nothing
    names = _names_of(groups)
    numbers = {name: number for number, name in enumerate(names)}
    made = set(zip(unit_group.tolist(), bucket.tolist(), strict=True))
    pairs_elsewhere = {
        (numbers[sharing_group], bucket_number)
        for group, bucket_number in made
        for sharing_group in sharing_groups.get(names[group], ())
        if sharing_group in numbers
    }
    pairs = sorted(pairs_elsewhere - made)
    return np.array([n for n, _ in pairs], np.int64), np.array(
        [bucket_number for _, bucket_number in pairs], np.int64
    )


def _guests_by_bucket(groups: pa.Table, guest: Ints, bucket: Ints) -> dict[int, frozenset[Group]]:
    names, guests_of = _names_of(groups.take(pa.array(guest))), dict[int, set[Group]]()
    for name, bucket_number in zip(names, bucket.tolist(), strict=True):
        guests_of.setdefault(bucket_number, set()).add(name)
    return {bucket_number: frozenset(guests) for bucket_number, guests in guests_of.items()}


def _keys(clusters: pa.StringArray, rows: pa.Table, name: str) -> pa.StringArray:
    """Return keys made of cluster index and name; null without a name or for an unknown cluster."""
    cluster = pc.index_in(rows["cluster"], clusters).cast(pa.string())
    keys = pc.binary_join_element_wise(cluster, rows[name], ":")
    return keys.combine_chunks() if isinstance(keys, pa.ChunkedArray) else keys


def _retry_keys(clusters: pa.StringArray, groups: pa.Table) -> pa.StringArray:
    topics = pc.binary_join_element_wise(RETRY_TOPIC_PREFIX, groups["consumer_group"], "")
    return _keys(clusters, groups.append_column("topic", topics), "topic")


def _read_by(
    interests: Interests, clusters: pa.StringArray, groups: pa.Table
) -> tuple[Ints, pa.StringArray]:
    """Return (group number, topic key) for every topic that a group reads."""
    wanted = _keys(clusters, groups, "consumer_group")
    wanted_index = pc.index_in(_keys(clusters, interests.topics, "consumer_group"), wanted)
    topics = _keys(clusters, interests.topics, "topic").filter(wanted_index.is_valid())
    return np.asarray(wanted_index.drop_null()).astype(np.int64), topics


def _cells(
    interests: Interests,
    clusters: pa.StringArray,
    groups: pa.Table,
    of_group: Ints,
    topics: pa.StringArray,
) -> tuple[Ints, Ints]:
    """Return each group's number of cells (consumer events x queues + 1) and its maximum number of
    queues.

    The latter counts the queues of one topic on one broker.
    """
    keys = _keys(clusters, interests.queues, "topic")
    configured = pa.table({"topic": keys, "queues": interests.queues["queues"]})
    sums = configured.group_by("topic", use_threads=False).aggregate(
        [("queues", "sum"), ("queues", "max")]
    )
    place = pc.index_in(topics, sums["topic"].combine_chunks())
    of_topic, most_of_topic = (
        np.asarray(pc.fill_null(sums[name].take(place), 0)) for name in ("queues_sum", "queues_max")
    )
    queues = np.bincount(of_group, weights=of_topic, minlength=len(groups)).astype(np.int64)
    most = np.zeros(len(groups), np.int64)
    np.maximum.at(most, of_group, most_of_topic)
    cells: Ints = np.asarray(groups["events"]) * (queues + 1)
    return cells, most


def _rows(
    interests: Interests,
    clusters: pa.StringArray,
    groups: pa.Table,
    of_group: Ints,
    topics: pa.StringArray,
) -> Ints:
    """Return the number of rows of offsets and commits that concern each group's queues."""
    commits, observations = interests.commits, interests.observations
    place = pc.index_in(
        _keys(clusters, groups, "consumer_group"), _keys(clusters, commits, "consumer_group")
    )
    own: Ints = np.asarray(pc.fill_null(commits["rows"].take(place), 0))
    place = pc.index_in(topics, _keys(clusters, observations, "topic"))
    of_topic = np.asarray(pc.fill_null(observations["rows"].take(place), 0))
    shared = np.bincount(of_group, weights=of_topic, minlength=len(groups))
    return own + shared.astype(np.int64)


def _flat(column: pa.ChunkedArray) -> pa.Array:
    """Return the only array of a column after `combine_chunks`."""
    return pa.concat_arrays([pa.array([], column.type), *column.chunks])


def _giants(
    groups: pa.Table, parts: Ints, block: Ints, bucket: Ints
) -> dict[int, dict[Group, list[Part]]]:
    parts_by_bucket: dict[int, dict[Group, list[Part]]] = {}
    first = pointers(parts)
    for group in np.flatnonzero(parts > 1).tolist():
        name = (groups["cluster"][group].as_py(), groups["consumer_group"][group].as_py())
        for number in range(int(parts[group])):
            part = Part(number, int(parts[group]), int(block[group]))
            of_bucket = parts_by_bucket.setdefault(int(bucket[first[group] + number]), {})
            of_bucket.setdefault(name, []).append(part)
    return parts_by_bucket

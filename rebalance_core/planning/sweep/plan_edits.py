"""Rows of whole groups and clusters in every history."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.checks.packed_rows import PackedTables
from rebalance_core.contracts import INPUT_TABLES
from rebalance_core.contracts.table import TABLE
from rebalance_core.engine.fan_out import GROUP, group_starts
from rebalance_core.engine.routing import Interests, interests_of
from rebalance_core.model import events
from rebalance_core.planning.scenario.cluster_life import PROXY_SOURCE, ClusterNames
from rebalance_core.planning.scenario.edit import matches
from rebalance_core.planning.scenario.scenario import queues_in, refuse_unknown_names, unmatched
from rebalance_core.planning.variants import EditsByHistory, Variants, scenarios_of

EVENTS, GROUPS = "cluster_events", "consumer_groups"
CLUSTER, WARNING = "_cluster", "_warning"
"""Rows that belong to no table: one per cluster, and parts that an edit could not apply."""
NO_GROUP = ""
"""The consumer group in rows of a cluster itself; no group has an empty name."""

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Unit:
    """The consecutive rows of a group, or of a cluster itself (None)."""

    first: int
    rows: int
    cluster: str
    group: str | None


class HistoryRows:
    """The rows of a chunk of units in every history.

    Args:
        chunk: Rows of cluster_events and consumer_groups, distinguished by ``_table``, with those
            of each unit adjacent; events of brokers and topics have the group `NO_GROUP`. Every
            cluster has a row in the table `CLUSTER`, because an edit may add events to a cluster
            without events.
        edits: The changes of each history.
    """

    def __init__(self, chunk: pa.Table, edits: EditsByHistory) -> None:
        self._chunk = chunk
        self._edits = edits
        self._units = list(_history_units(chunk))
        self._recorded: dict[_Unit, list[Row]] = {}

    def rows_of(self, history: int) -> pa.Table:
        """Return the rows of a history, and a row of `WARNING` for each edit that could not be
        applied in full.

        Columns are those of the chunk; a cluster's own rows have no group. ``source`` contains the
        text of a warning.

        Raises:
            InputRefused: The same cases as in `EditsByHistory.edited`.
        """
        lacking, added = self.changes(history)
        kept = np.ones(self._chunk.num_rows, np.bool_)
        kept[lacking] = False
        recorded = self._chunk.filter(pa.array(kept))
        recorded = recorded.filter(pc.not_equal(recorded[TABLE], CLUSTER))
        return pa.concat_tables([_without_no_group(recorded), added])

    def changes(self, history: int) -> tuple[list[int], pa.Table]:
        """Return what a history changes: the positions of rows that it lacks, and its new rows.

        Columns and errors are as in `rows_of`; a row that an edit changes is in both results.
        """
        lacking: list[int] = []
        added: list[Row] = []
        for unit in self._units:
            if self._edits.touches(history, unit.cluster, unit.group):
                stay, new = self._edited(history, unit)
                rows = range(unit.first, unit.first + unit.rows)
                lacking += sorted(set(rows).difference(stay))
                added += new
        return lacking, _without_no_group(pa.Table.from_pylist(added, self._chunk.schema))

    def _edited(self, history: int, unit: _Unit) -> tuple[list[int], list[Row]]:
        """Return the positions of the rows that stay, and the new rows."""
        rows = self._recorded.get(unit)
        if rows is None:
            rows = self._chunk.slice(unit.first, unit.rows).to_pylist()
            self._recorded[unit] = rows
        events = {
            (row["event_ms"], row["sequence"]): unit.first + place
            for place, row in enumerate(rows)
            if row[TABLE] == EVENTS
        }
        event_rows = [row for row in rows if row[TABLE] == EVENTS]
        settings = [place for place, row in enumerate(rows) if row[TABLE] == GROUPS]
        group_row = rows[settings[0]] if settings else None
        edited = self._edits.edited(history, unit.cluster, unit.group, event_rows, group_row)
        stay = [events[row["event_ms"], row["sequence"]] for row in edited.kept]
        stay += [unit.first + place for place in settings]
        new = [row | {TABLE: EVENTS} for row in edited.added]
        new += [
            {"cluster": unit.cluster, TABLE: WARNING, "source": text} for text in edited.warnings
        ]
        return stay, new


def _without_no_group(rows: pa.Table) -> pa.Table:
    """Return the rows, with null for `NO_GROUP`."""
    group = rows["consumer_group"]
    group = pc.if_else(pc.equal(group, NO_GROUP), pa.scalar(None, pa.string()), group)
    return rows.set_column(rows.column_names.index("consumer_group"), "consumer_group", group)


def _history_units(chunk: pa.Table) -> Iterator[_Unit]:
    if not chunk.num_rows:
        return
    starts = group_starts(chunk)
    names = chunk.select(GROUP).take(pa.array(starts))
    lengths = np.diff(starts, append=chunk.num_rows)
    columns = (names[name].to_pylist() for name in GROUP)
    for first, rows, cluster, group in zip(
        starts.tolist(), lengths.tolist(), *columns, strict=True
    ):
        yield _Unit(first, rows, cluster, group or None)


_NAMED = {
    "consumer_group": "groups",
    "topic": "topics",
    "broker_name": "brokers",
    "source": "proxies",
}
_ENDS = pa.schema([("cluster", pa.string()), ("event_ms", pa.int64())])
_NAMES = pa.schema([("cluster", pa.string()), ("of", pa.string()), ("name", pa.string())])
_SET_UP = pa.schema([("cluster", pa.string()), ("consumer_group", pa.string())])
_EVENT = INPUT_TABLES[EVENTS].arrow_schema()


@dataclass(frozen=True, eq=False)
class EventFacts(PackedTables):
    """The facts about all events and settings on which a plan's edits depend, whichever rows are
    available.

    Attributes:
        ends: cluster and its last event, ``event_ms``.
        names: cluster, the column (``of``) and each name that events have in it, once; ``source``
            names proxies.
        set_up: cluster and consumer_group of the rows of consumer_groups, each once.
        shared: The events of brokers and topics, with the contract's columns, in any order.
    """

    SCHEMAS: ClassVar = {"ends": _ENDS, "names": _NAMES, "set_up": _SET_UP, "shared": _EVENT}

    ends: pa.Table
    names: pa.Table
    set_up: pa.Table
    shared: pa.Table

    @classmethod
    def of_tables(cls, tables: Mapping[str, pa.Table]) -> EventFacts:
        """Collect the facts from all used rows, by table name."""
        parts = (event_facts(name, rows) for name, rows in tables.items())
        return cls.merged(facts for facts in parts if facts is not None)

    @classmethod
    def merged(cls, parts: Iterable[EventFacts]) -> EventFacts:
        """Merge the facts of all parts."""
        tables = cls.joined(parts)
        names, set_up = _distinct(tables["names"]), _distinct(tables["set_up"])
        return cls(_lasts(tables["ends"]), names, set_up, tables["shared"])

    def end_ms(self) -> dict[str, int]:
        """Return the time of every cluster's last event, epoch ms."""
        columns = (self.ends[name].to_pylist() for name in _ENDS.names)
        return dict(zip(*columns, strict=True))

    def clusters(self) -> dict[str, ClusterNames]:
        """Return the names that patterns of scenarios may match, by cluster."""
        by_cluster: dict[str, ClusterNames] = {}
        for row in self.names.to_pylist():
            names = by_cluster.setdefault(row["cluster"], ClusterNames())
            getattr(names, _NAMED[row["of"]]).add(row["name"])
        return by_cluster


def event_facts(table: str, rows: pa.Table) -> EventFacts | None:
    """Return the facts in the used rows of an input table, or None if there are none."""
    if table == GROUPS:
        return EventFacts.of(set_up=_distinct(rows.select(_SET_UP.names)))
    if table != EVENTS:
        return None
    names = [_distinct(_named(rows, column)) for column in _NAMED]
    of_group = is_type(rows, events.GROUP_EVENTS)
    return EventFacts.of(
        ends=_lasts(rows.select(_ENDS.names)),
        names=pa.concat_tables(names),
        shared=rows.filter(pc.invert(of_group)).select(_EVENT.names),
    )


_MEMBER = ["cluster", "consumer_group", "client_id", "channel_id"]
_LIVES = pa.schema(
    [
        *((name, pa.string()) for name in (*_MEMBER, "event_type")),
        ("event_ms", pa.int64()),
        ("sequence", pa.int64()),
    ]
)


@dataclass(frozen=True, eq=False)
class Lives(PackedTables):
    """The last event of each process in a group, its join or its end.

    Attributes:
        last: The rows, with the contract's columns; a process that only a single broker lost is
            still there.
    """

    SCHEMAS: ClassVar = {"last": _LIVES}

    last: pa.Table

    @classmethod
    def of_tables(cls, tables: Mapping[str, pa.Table]) -> Lives:
        """Return the last events of all used rows, by table name."""
        return cls.merged(filter(None, (lives(name, rows) for name, rows in tables.items())))

    @classmethod
    def merged(cls, parts: Iterable[Lives]) -> Lives:
        """Merge the events of all parts."""
        return cls(_last_events(cls.joined(parts)["last"]))

    def members(self) -> dict[str, list[tuple[str, str]]]:
        """Return (group, client id) of the members at the end, by cluster."""
        there = self.last.filter(is_type(self.last, [events.CONSUMER_JOIN]))
        members: dict[str, list[tuple[str, str]]] = {}
        for row in there.select(_MEMBER[:3]).group_by(_MEMBER[:3]).aggregate([]).to_pylist():
            members.setdefault(row["cluster"], []).append((row["consumer_group"], row["client_id"]))
        return members


def lives(table: str, rows: pa.Table) -> Lives | None:
    """Return the last events in used rows, or None if there are none."""
    if table != EVENTS:
        return None
    ends = (events.CONSUMER_LEAVE, events.CONSUMER_LOST)
    ended = pc.and_(is_type(rows, ends), pc.is_null(rows["broker_name"]))
    wanted = rows.filter(pc.or_(ended, is_type(rows, [events.CONSUMER_JOIN])))
    return Lives.of(last=_last_events(wanted.select(_LIVES.names)))


def _last_events(rows: pa.Table) -> pa.Table:
    ordered = rows.sort_by([("event_ms", "ascending"), ("sequence", "ascending")])
    columns = _LIVES.names[len(_MEMBER) :]
    grouped = ordered.group_by(_MEMBER, use_threads=False)
    last = grouped.aggregate([(name, "last") for name in columns])
    names = {f"{name}_last": name for name in columns}
    last = last.rename_columns([names.get(name, name) for name in last.column_names])
    return last.select(_LIVES.names)


def is_type(rows: pa.Table, types: Sequence[str]) -> pa.ChunkedArray:
    """Return whether each row of cluster_events is of one of these types."""
    return pc.is_in(rows["event_type"], value_set=pa.array(types, pa.string()))


def _lasts(ends: pa.Table) -> pa.Table:
    lasts = ends.group_by("cluster", use_threads=False).aggregate([("event_ms", "max")])
    return lasts.select(["cluster", "event_ms_max"]).rename_columns(_ENDS.names)


def _named(rows: pa.Table, column: str) -> pa.Table:
    named = rows.select(["cluster", column]).filter(pc.is_valid(rows[column]))
    if column == "source":
        named = named.filter(pc.starts_with(named[column], "proxy/"))
        found = pc.struct_field(pc.extract_regex(named[column], f"^{PROXY_SOURCE}$"), "proxy")
        named = named.set_column(1, column, found).filter(pc.is_valid(found))
    of = pa.repeat(column, named.num_rows)
    return pa.table({"cluster": named["cluster"], "of": of, "name": named[column]})


def _distinct(table: pa.Table) -> pa.Table:
    return table.group_by(table.column_names, use_threads=False).aggregate([])


# Events of brokers and topics are edited here, by cluster; those of groups are edited where the
# rows of whole groups are available, in any part of the input (`process.plan_histories`).
EVENT_KEY = ["cluster", "event_ms", "sequence"]


@dataclass(frozen=True, eq=False)
class ClusterEventChanges(PackedTables):
    """The changes that a history makes to the events of brokers and topics.

    Attributes:
        lacking: The keys (`EVENT_KEY`) of rows that it lacks.
        added: Its new rows of cluster_events.
    """

    lacking: pa.Table
    added: pa.Table


@dataclass(frozen=True, eq=False)
class EditPlan:
    """The edits of all histories, computed once for all clusters and sent to every task.

    Attributes:
        edits: The edits of groups.
        shared: By history, the edits of brokers and topics.
        unmatched: Descriptions of scenario patterns that match nothing.
        warnings: Descriptions of parts that edits of brokers and topics could not apply.
    """

    edits: EditsByHistory
    shared: tuple[ClusterEventChanges, ...]
    unmatched: tuple[str, ...]
    warnings: frozenset[str]

    def all_warnings(self, of_groups: Iterable[str]) -> tuple[str, ...]:
        """Return all warnings, including those of edits of groups."""
        return (*self.unmatched, *sorted({*self.warnings, *of_groups}))


def plan_edits(facts: EventFacts, variants: Variants) -> EditPlan:
    """Edit the events of brokers and topics.

    Args:
        facts: The facts about all events.
        variants: The variants to plan.

    Raises:
        InputRefused: The same cases as in `EditsByHistory.edited`.
        UsageError: The same cases as in `refuse_unknown_names`.
    """
    ends = facts.end_ms()
    queues = {}
    if any(edit.asks_queues for scenario in scenarios_of(variants) for edit in scenario.edits):
        configs = facts.shared.filter(is_type(facts.shared, events.TOPIC_EVENTS))
        queues = queues_in(configs.to_pylist())
    # without a scenario, no name is read
    clusters = facts.clusters() if scenarios_of(variants) else {}
    for scenario in scenarios_of(variants):
        refuse_unknown_names(scenario, clusters)
    proxies = {name: tuple(sorted(names.proxies)) for name, names in clusters.items()}
    edits = EditsByHistory(variants.histories, ends, queues, proxies)
    units = _units(facts.shared, ends)
    rows = HistoryRows(units, edits)
    shared, warnings = [], set[str]()
    for number in range(len(variants.histories)):
        lacking, changed = rows.changes(number)
        added = changed.filter(pc.equal(changed[TABLE], EVENTS)).select(facts.shared.column_names)
        shared.append(
            ClusterEventChanges(units.select(EVENT_KEY).take(pa.array(lacking, pa.int64())), added)
        )
        warned = changed.filter(pc.equal(changed[TABLE], WARNING))
        warnings.update(warned["source"].to_pylist())
    lacking_names = [unmatched(scenario, clusters) for scenario in scenarios_of(variants)]
    unmatched_texts = tuple(chain.from_iterable(lacking_names))
    return EditPlan(edits, tuple(shared), unmatched_texts, frozenset(warnings))


def interests_in(recorded: Interests, facts: EventFacts, edits: EditPlan) -> Interests:
    """Return the topics that the groups read in any history, for `routing_of`.

    Args:
        recorded: The topics in the recorded history.
        facts: The facts about all events and settings.
        edits: The changes that histories make.
    """
    all_groups = pa.concat_tables([_all_groups(facts), recorded.groups.select(list(GROUP))])
    groups = all_groups.append_column(
        "events", pa.repeat(pa.scalar(0, pa.int64()), all_groups.num_rows)
    )
    # an edit may add members to a group that has only settings
    merged = Interests.merged(
        [
            recorded,
            Interests.of(groups=groups),
            *filter(None, (interests_of(EVENTS, shared.added) for shared in edits.shared)),
        ]
    )
    topics = pa.Table.from_pylist(
        list(_subscribed(merged.groups, edits.edits)), recorded.topics.schema
    )
    return Interests.merged([merged, Interests.of(topics=topics)])


def _units(shared: pa.Table, clusters: Iterable[str]) -> pa.Table:
    """Return the rows with those of each cluster adjacent, as `HistoryRows` needs them."""
    place = shared.column_names.index("consumer_group")
    no_group = pa.repeat(NO_GROUP, shared.num_rows)
    units = shared.set_column(place, "consumer_group", no_group)
    units = units.append_column(TABLE, pa.repeat(EVENTS, units.num_rows))
    names = pa.table({"cluster": pa.array(list(clusters), pa.string())})
    # an edit may add rows to a cluster that has none
    for column, value in (("consumer_group", NO_GROUP), (TABLE, CLUSTER)):
        names = names.append_column(column, pa.repeat(value, names.num_rows))
    rows = pa.concat_tables([units, names], promote_options="default")
    return rows.sort_by("cluster").combine_chunks()


def _all_groups(facts: EventFacts) -> pa.Table:
    named = facts.names.filter(pc.equal(facts.names["of"], "consumer_group"))
    columns = {"cluster": named["cluster"], "consumer_group": named["name"]}
    return pa.concat_tables([pa.table(columns, facts.set_up.schema), facts.set_up])


def _subscribed(groups: pa.Table, edits: EditsByHistory) -> Iterator[dict[str, str]]:
    """Yield the topics that edits add to groups' subscriptions."""
    chosen = {
        edit
        for history in edits.histories
        if history.scenario
        for edit in history.scenario.edits
        if edit.subscribed()
    }
    if not chosen:
        return
    for row in groups.select(list(GROUP)).to_pylist():
        for edit in chosen:
            if matches(row["cluster"], edit.cluster) and edit.concerns_group(row["consumer_group"]):
                yield from (row | {"topic": topic} for topic in edit.subscribed())

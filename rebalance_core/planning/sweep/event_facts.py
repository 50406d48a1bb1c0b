"""What the edits of a plan want to know of all events, whatever rows are at hand.

Made of any part of the input; those of all parts are merged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.checks.packed_rows import PackedTables
from rebalance_core.contracts import INPUT_TABLES
from rebalance_core.model import events
from rebalance_core.planning.scenario.cluster_life import ClusterNames
from rebalance_core.planning.sweep.history_rows import EVENTS, GROUPS

_NAMED = {"consumer_group": "groups", "topic": "topics", "broker_name": "brokers"}
_ENDS = pa.schema([("cluster", pa.string()), ("event_ms", pa.int64())])
_NAMES = pa.schema([("cluster", pa.string()), ("of", pa.string()), ("name", pa.string())])
_SET_UP = pa.schema([("cluster", pa.string()), ("consumer_group", pa.string())])
_EVENT = INPUT_TABLES[EVENTS].arrow_schema()


@dataclass(frozen=True, eq=False)
class EventFacts(PackedTables):
    """Facts of events and settings.

    Attributes:
        ends: cluster and its last event, ``event_ms``.
        names: cluster, the column (``of``) and each name that events have there, once.
        set_up: cluster, consumer_group of the rows of consumer_groups, once.
        shared: The events of brokers and topics, columns of the contract; any order.
    """

    ends: pa.Table
    names: pa.Table
    set_up: pa.Table
    shared: pa.Table

    @classmethod
    def of_tables(cls, tables: Mapping[str, pa.Table]) -> EventFacts:
        """Those of all used rows, by table name."""
        found = (event_facts(name, rows) for name, rows in tables.items())
        return cls.merged(facts for facts in found if facts is not None)

    @classmethod
    def merged(cls, parts: Iterable[EventFacts]) -> EventFacts:
        """Those of all parts."""
        found = [_facts(), *parts]
        ends = pa.concat_tables([part.ends for part in found])
        return cls(
            _lasts(ends),
            _distinct(pa.concat_tables([part.names for part in found])),
            _distinct(pa.concat_tables([part.set_up for part in found])),
            pa.concat_tables([part.shared for part in found]),
        )

    def end_ms(self) -> dict[str, int]:
        """The last event of every cluster, epoch ms."""
        columns = (self.ends[name].to_pylist() for name in _ENDS.names)
        return dict(zip(*columns, strict=True))

    def clusters(self) -> dict[str, ClusterNames]:
        """What patterns of scenarios may match, by cluster."""
        found: dict[str, ClusterNames] = {}
        for row in self.names.to_pylist():
            names = found.setdefault(row["cluster"], ClusterNames())
            getattr(names, _NAMED[row["of"]]).add(row["name"])
        return found


def event_facts(table: str, rows: pa.Table) -> EventFacts | None:
    """Facts of some used rows of an input table; None: rows of this table say nothing."""
    if table == GROUPS:
        return _facts(set_up=_distinct(rows.select(_SET_UP.names)))
    if table != EVENTS:
        return None
    names = [_distinct(_named(rows, column)) for column in _NAMED]
    of_group = is_type(rows, events.GROUP_EVENTS)
    return _facts(
        ends=_lasts(rows.select(_ENDS.names)),
        names=pa.concat_tables(names),
        shared=rows.filter(pc.invert(of_group)).select(_EVENT.names),
    )


def is_type(rows: pa.Table, types: Sequence[str]) -> pa.ChunkedArray:
    """By row of cluster_events: it is of one of these types."""
    return pc.is_in(rows["event_type"], value_set=pa.array(types, pa.string()))


def _facts(**tables: pa.Table) -> EventFacts:
    """Facts of these tables; the others are empty."""
    schemas = {"ends": _ENDS, "names": _NAMES, "set_up": _SET_UP, "shared": _EVENT}
    return EventFacts(
        **{
            name: tables[name].cast(schema) if name in tables else schema.empty_table()
            for name, schema in schemas.items()
        }
    )


def _lasts(ends: pa.Table) -> pa.Table:
    lasts = ends.group_by("cluster", use_threads=False).aggregate([("event_ms", "max")])
    return lasts.select(["cluster", "event_ms_max"]).rename_columns(_ENDS.names)


def _named(rows: pa.Table, column: str) -> pa.Table:
    known = rows.select(["cluster", column]).filter(pc.is_valid(rows[column]))
    of = pa.repeat(column, known.num_rows)
    return pa.table({"cluster": known["cluster"], "of": of, "name": known[column]})


def _distinct(table: pa.Table) -> pa.Table:
    return table.group_by(table.column_names, use_threads=False).aggregate([])

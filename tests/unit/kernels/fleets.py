"""Groups as the rows the kernels read, and what the kernels and the replay make of them."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, fields
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.contracts import INPUT_TABLES, LEDGER_TABLES, SIMULATED_TABLES
from rebalance_core.contracts.table import arrow_type
from rebalance_core.kernels import group_kinds
from rebalance_core.kernels.encoded_groups import read_encoded_groups
from rebalance_core.kernels.engine_options import EngineOptions
from rebalance_core.kernels.ledger import ledger_rows
from rebalance_core.kernels.ownership.holdings import CELLS_PER_BLOCK, Holdings
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups, prepare_groups
from rebalance_core.kernels.queue_parts import WHOLE, Part
from rebalance_core.kernels.shared_loads import sharing_of
from rebalance_core.model.events import Event
from rebalance_core.model.group_settings import GroupSettings
from rebalance_core.replay.group_replay import replay_group
from rebalance_core.replay.history import GroupHistory
from rebalance_core.replay.topic_shares import StrategyKey
from rebalance_core.strategies import AllocationStrategy, parse_strategy

Row = dict[str, Any]
Tables = Any
GroupName = tuple[str, str]
"""(cluster, consumer group)"""

TABLE = "_table"
SCHEMA = pa.schema(
    {c.name: arrow_type(c.type) for table in INPUT_TABLES.values() for c in table.columns}
    | {TABLE: pa.string()}
)
DEFAULTS = GroupSettings()
REASONS = tuple(group_kinds.REASONS)
SHOWN = 3
"""Differing rows of a table that a failure prints."""


@cache
def strategy_for(key: StrategyKey) -> AllocationStrategy:
    """The strategy of a (text, client version)."""
    return parse_strategy(key[0], version=key[1])


def name_of(history: GroupHistory) -> GroupName:
    return history.cluster, history.consumer_group


def fleet_table(
    histories: Iterable[GroupHistory], order: int = 0, *, sparse: bool = False
) -> pa.Table:
    """All input rows of the groups.

    Args:
        histories: the groups.
        order: 0 leaves the rows as they come, others mix them.
        sparse: settings that are the default are null, a group with no others has no row.
    """
    rows = [row for history in histories for row in _input_rows(history, sparse)]
    table = pa.Table.from_pylist(rows, SCHEMA)
    if order == 0:
        return table
    mixed = table.take(np.random.default_rng(order).permutation(table.num_rows))
    half = table.num_rows // 2  # in two chunks, as Arrow hands over large groups
    return pa.concat_tables([mixed.slice(0, half), mixed.slice(half)])


def _input_rows(history: GroupHistory, sparse: bool) -> Iterator[Row]:
    own = {"cluster": history.cluster, "consumer_group": history.consumer_group}
    said = [f.name for f in fields(Event) if f.name in SCHEMA.names]
    for event in history.events:
        yield own | {name: getattr(event, name) for name in said} | {TABLE: "cluster_events"}
    settings = asdict(history.settings)
    if sparse:
        settings = {name: v for name, v in settings.items() if v != getattr(DEFAULTS, name)}
    if settings:
        yield own | settings | {TABLE: "consumer_groups"}
    for table, rows in (
        ("queue_offsets", history.queue_offsets),
        ("committed_offsets", history.committed_offsets),
    ):
        for row in rows or ():
            values = {name: getattr(row, name) for name in type(row).__slots__}
            yield own | row.queue._asdict() | values | {TABLE: table}


def build(
    histories: Sequence[GroupHistory],
    *,
    retry: bool = True,
    override: str | None = None,
    rows: pa.Table | None = None,
) -> PreparedGroups:
    """The groups as the kernels see them.

    Offsets are given if the first group's are.

    Args:
        histories: the groups.
        retry: with retry topics.
        override: strategy text that replaces all others.
        rows: `fleet_table` of them, if not the plain one.
    """
    options = EngineOptions(
        queue_offsets_given=histories[0].queue_offsets is not None,
        committed_offsets_given=histories[0].committed_offsets is not None,
        include_retry_topics=retry,
        strategy_override=override,
    )
    table = fleet_table(histories) if rows is None else rows
    by_table = {name: table.filter(pc.equal(table[TABLE], name)) for name in INPUT_TABLES}
    return prepare_groups(read_encoded_groups(by_table, options, strategy_for))


def reasons_of(prepared: PreparedGroups) -> dict[GroupName, str]:
    """By group, the code of `kernels.group_kinds.REASONS`."""
    names = prepared.encoded.names
    groups = zip(names.clusters.to_pylist(), names.groups.to_pylist(), strict=True)
    return dict(zip(groups, (REASONS[code] for code in prepared.reason), strict=True))


def kernel_rows(
    prepared: PreparedGroups,
    tables: Iterable[str] = SIMULATED_TABLES,
    *,
    part: Part = WHOLE,
    cells_per_block: int = CELLS_PER_BLOCK,
) -> Tables:
    """Rows of these ledger tables."""
    holdings, sharing = Holdings(prepared, part, cells_per_block), sharing_of(prepared)
    found: Tables = {}
    for table in tables:
        found[table] = []
        for batch in ledger_rows(table, prepared, holdings, sharing):
            assert batch.schema == LEDGER_TABLES[table].arrow_schema()
            batch.validate(full=True)
            found[table] += batch.to_pylist()
    return found


def kernel_tables(
    histories: Sequence[GroupHistory], *, retry: bool = True, cells_per_block: int = CELLS_PER_BLOCK
) -> tuple[Tables, dict[GroupName, str]]:
    """Rows by table of the groups the kernels take, and why they leave the others."""
    prepared = build(histories, retry=retry)
    return kernel_rows(prepared, cells_per_block=cells_per_block), reasons_of(prepared)


def replay_rows(
    histories: Iterable[GroupHistory], *, retry: bool = True, override: str | None = None
) -> Tables:
    """Rows by table of the plain replay, and its ``rejected``."""
    found: Tables = {table: [] for table in LEDGER_TABLES}
    for history in histories:
        own = replay_group(
            history, strategy_for, include_retry_topics=retry, strategy_override=override
        )
        for table, rows in own.items():
            extra = {"group": name_of(history)} if table == "rejected" else {}
            found[table] += [row | extra for row in rows]
    return found


def unknown_events(prepared: PreparedGroups, events: pa.Table) -> list[tuple[Any, ...]]:
    """(group, moment, sequence) of the events about processes that are not there.

    Args:
        prepared: of these rows.
        events: the rows of all tables, as the prepared read them.
    """
    rows = events.filter(pc.equal(events[TABLE], "cluster_events"))
    unknown = rows.take(prepared.encoded.events.row[prepared.membership.unknown]).to_pylist()
    return sorted(
        ((row["cluster"], row["consumer_group"]), row["event_ms"], row["sequence"])
        for row in unknown
    )


def rejected_events(tables: Tables) -> list[tuple[Any, ...]]:
    """The same, as the replay rejects them."""
    raws = [(row["group"], json.loads(row["raw"])) for row in tables["rejected"]]
    return sorted((group, raw["event_ms"], raw["sequence"]) for group, raw in raws)


def assert_equal(kernels: Tables, replay: Tables) -> None:
    """Every table of the kernels has exactly the rows of the replay, in any order."""
    told = "\n".join(filter(None, (difference(t, kernels[t], replay[t]) for t in kernels)))
    assert not told, f"kernels and replay differ\n{told}"


def difference(table: str, kernels: list[Row], replay: list[Row]) -> str:
    """The first differing rows by their key, only the columns that differ; "" when equal."""
    ours, theirs = Counter(map(_frozen, kernels)), Counter(map(_frozen, replay))
    if ours == theirs:
        return ""
    key = LEDGER_TABLES[table].key
    sides = [
        {tuple(map(dict(row).get, key)): dict(row) for row in sorted(rows, key=repr)}
        for rows in (ours - theirs, theirs - ours)
    ]
    keys = sorted(sides[0].keys() | sides[1].keys(), key=repr)
    lines = [f"{table}: {len(keys)} of {len(kernels)} (kernels) and {len(replay)} (replay) rows"]
    for at in keys[:SHOWN]:
        here, there = (side.get(at) for side in sides)
        lines.append(f"  {dict(zip(key, at, strict=True))}")
        if here is not None and there is not None:
            changed = [name for name in here if here[name] != there[name]]
            lines += [f"    {n}: kernels {here[n]!r}, replay {there[n]!r}" for n in changed]
        else:
            lines.append(f"    only {'replay' if here is None else 'kernels'}: {here or there}")
    return "\n".join(lines)


def _frozen(row: Row) -> tuple[tuple[str, Any], ...]:
    return tuple((n, tuple(v) if isinstance(v, list) else v) for n, v in sorted(row.items()))

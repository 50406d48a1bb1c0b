"""Simulates a group in steps: its epochs, their owners, and start offsets.

The rows of each step are those of a ledger table, with additional columns for the next step: the
events of each epoch, how each holding begins and ends, and the history on which starts depend.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.checks.packed_rows import by_key
from rebalance_core.contracts import INPUT_TABLES, LEDGER_TABLES, Table
from rebalance_core.contracts.table import RAW, SOURCE
from rebalance_core.engine.fan_out import (
    GROUP,
    GroupedRows,
    fan_out,
    joining,
    of_types,
    subscribed,
)
from rebalance_core.engine.ledger_pass import REJECTED, prepare_tables, rows_of
from rebalance_core.engine.options import engine_options
from rebalance_core.kernels.segments import pointers
from rebalance_core.kernels.table_columns import COMMITS, EVENTS, GROUPS, OFFSETS
from rebalance_core.model import events as types
from rebalance_core.model.errors import InputRefused
from rebalance_core.model.queue import RETRY_TOPIC_PREFIX

EPOCHS, OWNERSHIP, DIFFS, PULL_STARTS = "epochs", "ownership", "diffs", "pull_starts"
QUEUE_OF_CLIENT = ("topic", "broker_name", "queue_id", "client_id")
CHANGE = ("earliest_ms", "latest_ms", "other_client_id", "kind", "cause")
"""The columns of ``diffs`` that cannot be derived from an ownership interval."""
HISTORY = ("events", "settings")
"""The last columns of a step's rows: what happened to the group, and its settings."""
EVENT_COLUMNS = INPUT_TABLES[EVENTS].column_names
SETTING_COLUMNS = INPUT_TABLES[GROUPS].column_names


def struct_of(table: Table, names: Sequence[str]) -> pa.StructType:
    """Return the columns of a table as a struct of nullable fields."""
    return pa.struct([(name, table.arrow_schema().field(name).type) for name in names])


_EVENT = struct_of(INPUT_TABLES[EVENTS], EVENT_COLUMNS)
_SETTINGS = struct_of(INPUT_TABLES[GROUPS], SETTING_COLUMNS)
_CHANGE = struct_of(LEDGER_TABLES[DIFFS], CHANGE)
_ADDED = {"begins": _CHANGE, "ends": _CHANGE, "events": pa.list_(_EVENT), "settings": _SETTINGS}


def step_schema(name: str) -> pa.Schema:
    """Return the columns of a step: those of the ledger table, and those for the next step."""
    table = LEDGER_TABLES[name]
    fields = [(column, table.arrow_schema().field(column).type) for column in table.column_names]
    return pa.schema([*fields, *((added, _ADDED[added]) for added in added_columns(name))])


def added_columns(name: str) -> tuple[str, ...]:
    """Return the columns of a step that the ledger table lacks."""
    of_holdings = ("begins", "ends") if name == OWNERSHIP else ()
    return of_holdings + (HISTORY if name != PULL_STARTS else ())


TOPICS = "topics"
"""The table of (cluster, group, topic) that groups read."""
Addressed = Iterator[tuple[str, str | None, str, pa.Table]]
"""Cluster, group, table and rows; the group is None for rows that concern the whole cluster."""


def addressed(name: str, rows: pa.Table) -> Addressed:
    """Yield the rows of an input table or of ``diffs`` with the group or cluster that they concern,
    and the topics that groups read.
    """
    of_cluster: dict[str, pa.Table] = {}
    own, topics = rows, None
    if name == EVENTS:
        own = of_types(rows, types.GROUP_EVENTS)
        of_cluster[EVENTS] = of_types(rows, [*{*types.EVENT_TYPES} - {*types.GROUP_EVENTS}])
        topics = subscribed(of_types(own, (types.CONSUMER_JOIN, types.SUBSCRIBE)))
    elif name == GROUPS:
        topics = subscribed(rows)
    elif name == OFFSETS:
        of_cluster[OFFSETS], own = rows, rows.slice(0, 0)
    elif name == DIFFS:
        topics = rows.select([*GROUP, "topic"])
    for (cluster, group), part in by_key(own, GROUP) if len(own) else ():
        yield cluster, group, name, part
    if topics is not None:
        of_cluster[TOPICS] = _distinct(topics)
    for table, shared in of_cluster.items():
        for (cluster,), part in by_key(shared, ["cluster"]) if len(shared) else ():
            yield cluster, None, table, part


def shared_rows(parts: Mapping[str, pa.Table]) -> Iterator[tuple[str, str, pa.Table]]:
    """Yield the cluster-level rows, with their table, for each group that they may concern.

    A broker's event goes to all groups that read any topic on the broker; `fan_out` makes the final
    decision.

    Args:
        parts: The rows of a cluster that name no group, by table; missing tables have no rows.
    """
    if TOPICS not in parts:
        return
    own = _distinct(parts[TOPICS].select(["consumer_group", "topic"]))
    names = pc.binary_join_element_wise(RETRY_TOPIC_PREFIX, own["consumer_group"], "")
    retry = own.set_column(1, "topic", names)
    read = _distinct(pa.concat_tables([own, retry]))
    if OFFSETS in parts:
        yield from _for_groups(OFFSETS, parts[OFFSETS], [_pairs(parts[OFFSETS], read)])
    if EVENTS not in parts:
        return
    events = _numbered(parts[EVENTS])
    configs = of_types(events, (types.TOPIC_CONFIG,), ["topic", "broker_name"])
    hosts = configs.join(read, "topic", join_type="inner", use_threads=False)
    hosts = _distinct(hosts.select(["consumer_group", "broker_name"]))
    of_topics = of_types(events, types.TOPIC_EVENTS)
    others = of_types(events, [*{*types.EVENT_TYPES} - {*types.TOPIC_EVENTS}])
    pairs = [_pairs(of_topics, read), _pairs(others, hosts)]
    yield from _for_groups(EVENTS, parts[EVENTS], pairs)


def _distinct(rows: pa.Table) -> pa.Table:
    return rows.group_by(rows.column_names, use_threads=False).aggregate([])


def _numbered(rows: pa.Table) -> pa.Table:
    return rows.append_column("_row", pa.array(np.arange(len(rows))))


def _pairs(rows: pa.Table, interested: pa.Table) -> pa.Table:
    """Return (row number, group) pairs for each row and each group with the same topic or broker
    name.
    """
    key = interested.column_names[1]
    numbered = rows if "_row" in rows.column_names else _numbered(rows)
    pairs = numbered.select(["_row", key]).join(
        interested, key, join_type="inner", use_threads=False
    )
    return pairs.select(["_row", "consumer_group"])


def _for_groups(
    name: str, rows: pa.Table, pairs: Sequence[pa.Table]
) -> Iterator[tuple[str, str, pa.Table]]:
    every = pa.concat_tables(pairs)
    for (group,), part in by_key(every, ["consumer_group"]) if len(every) else ():
        yield group, name, rows.take(part["_row"].combine_chunks())


def epochs_of(events: pa.Table, settings: pa.Table) -> pa.Table:
    """Return a group's epochs, each with the events that belong to it.

    Args:
        events: Used rows of ``cluster_events`` that concern the group, possibly among others.
        settings: Its row of ``consumer_groups``, if any.

    Returns:
        Rows with the `step_schema` of ``epochs``, in order. The first epoch also has the events
        before it.
    """
    grouped = _grouped({EVENTS: events, GROUPS: settings})
    epochs = _rows(grouped, (EPOCHS,))[EPOCHS].sort_by("epoch")
    concerned = pa.array(grouped.rows[EVENTS])
    events = grouped.tables[EVENTS].select(EVENT_COLUMNS).take(concerned)
    events = events.sort_by([("event_ms", "ascending"), ("sequence", "ascending")])
    starts, times = epochs["from_ms"].to_numpy(), events["event_ms"].to_numpy()
    number = np.maximum(np.searchsorted(starts, times, side="right") - 1, 0)
    counts = np.bincount(number, minlength=len(epochs))[: len(epochs)]
    if not len(epochs):
        events = events.slice(0, 0)
    lists = pa.ListArray.from_arrays(pa.array(pointers(counts), pa.int32()), _structs(events))
    return _with_columns(
        epochs, EPOCHS, [lists, _one(_structs(settings.select(SETTING_COLUMNS)), len(epochs))]
    )


def ownership_of(epochs: pa.Table) -> pa.Table:
    """Return the owners of a group's queues, and how each holding begins and ends.

    Args:
        epochs: ``cluster``, ``consumer_group``, ``epoch`` and `HISTORY` of `epochs_of` for all
            epochs, starting with the first, in any order.

    Returns:
        Rows with the `step_schema` of ``ownership``. ``begins`` is null unless an ADD begins the
        holding, and ``ends`` unless a DROP ends it. The first holding that an ADD begins carries
        the group's history.

    Raises:
        InputRefused: An epoch is missing or occurs twice.
    """
    epochs = epochs.sort_by("epoch")
    numbers = epochs["epoch"].to_numpy()
    if (numbers != np.arange(len(numbers))).any():
        missing = sorted({*range(int(numbers.max()) + 1)} - {*numbers.tolist()})
        what = f"lacks epoch {missing[0]}" if missing else "has an epoch twice"
        raise InputRefused(
            f"epochs: {_name(epochs)} {what}; the owner of a queue may depend on every earlier "
            "epoch: filter groups or the result, not epochs"
        )
    events = epochs["events"].combine_chunks().flatten()
    settings = epochs["settings"].combine_chunks().slice(0, 1)
    made = _rows(_grouped(_tables(events, settings)), (OWNERSHIP, DIFFS))
    owned, changes = made[OWNERSHIP].combine_chunks(), made[DIFFS].combine_chunks()
    structs = _structs(changes.select(CHANGE))
    begins, ends = (
        structs.take(_matching(owned, at, changes, action))
        for at, action in (("from_epoch", "ADD"), ("to_epoch", "DROP"))
    )
    carrier = np.flatnonzero(begins.is_valid())[:1]
    row = np.full(len(owned), -1)
    row[carrier] = 0
    chosen = pa.array(row, mask=row < 0)
    history = pa.ListArray.from_arrays(pa.array([0, len(events)], pa.int32()), events)
    return _with_columns(
        owned, OWNERSHIP, [begins, ends, history.take(chosen), settings.take(chosen)]
    )


def starts_of(diffs: pa.Table, offsets: pa.Table | None, commits: pa.Table | None) -> pa.Table:
    """Return the start offsets of the new owners in a group's changes.

    Args:
        diffs: Changes with the columns of ``diffs`` and `HISTORY`, as `ownership_of` returns them;
            not all changes are needed.
        offsets: Rows of ``queue_offsets`` for the group's topics; None if there is no such table.
        commits: The group's rows of ``committed_offsets``; None if there is no such table.

    Raises:
        InputRefused: The row that carries the group's history is missing.
    """
    empty = step_schema(PULL_STARTS).empty_table()
    new = diffs.filter((pc.field("action") == "ADD") & (pc.field("kind") != "INITIAL"))
    if not len(new):
        return empty
    carrying = diffs.filter(pc.field("events").is_valid()).slice(0, 1)
    if not len(carrying):
        raise InputRefused(
            f"diffs: {_name(diffs)} has no row with its events, which the first ADD carries; "
            "filter groups or the result, not diffs"
        )
    tables = _tables(
        carrying["events"].combine_chunks().flatten(), carrying["settings"].combine_chunks()
    )
    if offsets is not None:
        tables[OFFSETS] = offsets
    if commits is not None:
        tables[COMMITS] = commits
    starts = _rows(_grouped(tables), (PULL_STARTS,))[PULL_STARTS]
    return joining(starts, new.select(["epoch", *QUEUE_OF_CLIENT])).cast(empty.schema)


def unknown_members_of(events: pa.Table, settings: pa.Table) -> pa.Table:
    """Return the rows of ``rejected`` for a group's events that name no existing member; the
    arguments are those of `epochs_of`.
    """
    return _rows(_grouped({EVENTS: events, GROUPS: settings}), (REJECTED,))[REJECTED]


def _tables(events: pa.StructArray, settings: pa.StructArray) -> dict[str, pa.Table]:
    return {
        EVENTS: pa.Table.from_struct_array(events),
        GROUPS: pa.Table.from_struct_array(settings.drop_null()),
    }


def _grouped(tables: Mapping[str, pa.Table]) -> GroupedRows:
    events = tables[EVENTS]
    for name in (SOURCE, RAW):
        if name not in events.column_names:
            events = events.append_column(name, pa.nulls(len(events), pa.string()))
    return fan_out({**tables, EVENTS: events})


def _rows(grouped: GroupedRows, wanted: Sequence[str]) -> dict[str, pa.Table]:
    """Return the rows of the requested tables, including those of the replay."""
    tables = {name: [LEDGER_TABLES[name].arrow_schema().empty_table()] for name in wanted}
    if len(grouped):
        rows = grouped.tables_of(0, len(grouped))
        prepared = prepare_tables(rows, engine_options(grouped.tables), wanted)
        for name, batch in rows_of(prepared, wanted):
            if name in tables:
                tables[name].append(pa.Table.from_batches([batch]))
    return {name: pa.concat_tables(parts) for name, parts in tables.items()}


def _matching(owned: pa.Table, at: str, changes: pa.Table, action: str) -> pa.Array:
    """Return, for each holding, the row of the change that begins or ends it, or null."""
    rows = np.flatnonzero(pc.equal(changes["action"], action))
    keys = [*QUEUE_OF_CLIENT, "epoch"]
    of_action = changes.select(keys).take(pa.array(rows)).append_column("change", pa.array(rows))
    numbered = owned.select([*QUEUE_OF_CLIENT, at]).append_column(
        "row", pa.array(np.arange(len(owned)))
    )
    joined = numbered.join(
        of_action, [*QUEUE_OF_CLIENT, at], keys, join_type="left outer", use_threads=False
    )
    return joined.sort_by("row")["change"].combine_chunks()


def _structs(rows: pa.Table) -> pa.StructArray:
    """Return the rows as structs with nullable fields."""
    rows = rows.combine_chunks()
    arrays = [
        column.chunk(0) if column.num_chunks else pa.nulls(0, column.type)
        for column in rows.columns
    ]
    fields = [pa.field(field.name, field.type) for field in rows.schema]
    return pa.StructArray.from_arrays(arrays, fields=fields)


def _one(rows: pa.StructArray, count: int) -> pa.StructArray:
    """Return the only row, repeated ``count`` times, or nulls if there is no row."""
    if not len(rows):
        return pa.nulls(count, rows.type)
    return rows.take(pa.array(np.zeros(count, np.int64)))


def _with_columns(rows: pa.Table, name: str, more: Sequence[pa.Array]) -> pa.Table:
    arrays = [*rows.columns, *more]
    schema = step_schema(name)
    return pa.Table.from_arrays(
        [array.cast(field.type) for array, field in zip(arrays, schema, strict=True)],
        schema=schema,
    )


def _name(rows: pa.Table) -> str:
    cluster, group = (rows[name][0].as_py() for name in ("cluster", "consumer_group"))
    return f"group {group!r} of cluster {cluster!r}"

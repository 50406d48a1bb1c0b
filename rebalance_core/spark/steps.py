"""A simulation in steps from frame to frame: events, epochs, owners, changes, starts.

Each step is lazy, takes frames from any source (the previous step, a view, a table) and returns the
rows of the ledger table with its name. The last columns carry the next step's input (`step_ddl`).
Owners are computed group by group, in an Arrow UDF over a group's rows, or a pandas UDF where Spark
lacks these, because the queues that a suspended or frozen member keeps depend on the previous
epoch. The job (`rebalance_core.spark.simulate`) processes many groups at once and makes all tables
in one pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial, reduce
from os import PathLike, fspath

import pandas as pd
import pyarrow as pa
from pyspark.sql import Column, DataFrame, GroupedData, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql import types as st
from pyspark.sql.pandas.types import to_arrow_schema

from rebalance_core.checks.conform import refuse_repeated_columns
from rebalance_core.checks.expected_values import MAX_QUEUE_NUMS
from rebalance_core.checks.packed_rows import arrow_schema_of, bucket_of, one_row, pack, unpack
from rebalance_core.contracts import INPUT_TABLES, LEDGER_TABLES, REJECTED, Table
from rebalance_core.contracts.input_formats import format_of
from rebalance_core.contracts.time_ranges import TIME_RANGES
from rebalance_core.engine import group_steps
from rebalance_core.engine.fan_out import GROUP, with_empty_events_if_missing
from rebalance_core.engine.group_steps import (
    CHANGE,
    DIFFS,
    EPOCHS,
    HISTORY,
    OWNERSHIP,
    PULL_STARTS,
    QUEUE_OF_CLIENT,
)
from rebalance_core.ingest.collection import open_collection
from rebalance_core.kernels.table_columns import COMMITS, EVENTS, GROUPS, OFFSETS
from rebalance_core.model.errors import InputRefused, UsageError
from rebalance_core.spark.checks import KeyTask, checked_chunks
from rebalance_core.spark.framed_lines import FramedLines
from rebalance_core.spark.ingest import collection_at, ingested_tables
from rebalance_core.spark.plugins import in_tasks
from rebalance_core.spark.read_tables import located_inputs, read_table
from rebalance_core.spark.sources import (
    Batches,
    refuse_no_time_zone,
    source_of,
    tasks_of_shuffles,
    unpacked,
)
from rebalance_core.spark.spark_versions import by_number

SETTINGS = "settings"
"""The column of events with rows of ``consumer_groups``; in later steps, with the row used."""


def _struct_ddl(table: Table, names: Sequence[str]) -> str:
    return f"STRUCT<{', '.join(f'{name}: {table.column(name).type}' for name in names)}>"


_EVENT_DDL = _struct_ddl(INPUT_TABLES[EVENTS], group_steps.EVENT_COLUMNS)
_SETTINGS_DDL = _struct_ddl(INPUT_TABLES[GROUPS], group_steps.SETTING_COLUMNS)
_CHANGE_DDL = _struct_ddl(LEDGER_TABLES[DIFFS], CHANGE)
_ADDED = {
    "begins": _CHANGE_DDL,
    "ends": _CHANGE_DDL,
    "events": f"ARRAY<{_EVENT_DDL}>",
    "settings": _SETTINGS_DDL,
}
"""Types of the columns that steps add to those of the ledger."""


def step_ddl(name: str) -> str:
    """Return the columns of a step: those of the ledger's table, then those for the next step.

    Args:
        name: ``epochs``, ``ownership``, ``diffs`` or ``pull_starts``.
    """
    added = group_steps.added_columns(name)
    return ", ".join([LEDGER_TABLES[name].plain_ddl, *(f"{each} {_ADDED[each]}" for each in added)])


def read_events(spark: SparkSession, path: str, *, input_format: str | None = None) -> DataFrame:
    """Return the events of input tables, each with the settings of its group; lazy.

    Args:
        spark: Any session.
        path: The folder with ``cluster_events`` and, if known, ``consumer_groups``, or the file or
            folder of ``cluster_events`` alone, as for `InputTables.read`.
        input_format: json, csv or parquet; None to infer it from the files' names.

    Returns:
        The columns of ``cluster_events``, the source of each row, and ``settings``: rows of
        ``consumer_groups`` for the same cluster and group. Settings of groups without events are
        left out.

    Raises:
        InputRefused: The path does not exist, or a table lacks columns.
        UsageError: The format is unknown.
    """
    alone = format_of(path) is not None
    given = {EVENTS: path if alone else None, GROUPS: None}
    locations = located_inputs(spark, None if alone else path, given)
    tables = {
        n: read_table(spark, INPUT_TABLES[n], p, input_format, by_spark=True).conformed
        for n, p in locations.items()
    }
    return _with_settings(tables[EVENTS], tables.get(GROUPS))


def read_logs(
    spark: SparkSession, collection: str | PathLike[str] | DataFrame, settings: str = ""
) -> DataFrame:
    """Return the events that a collection's files state, as `read_events` does.

    The call reads the files once, because the meaning of a line may depend on other files; each use
    of the frame reads them again (cache or write it to use it several times).

    Args:
        spark: Any session whose tasks can all reach the folder.
        collection: The folder, with ``collection.toml``: a path, or a URL that the session's Hadoop
            or, for S3, this process and its tasks can reach. Or a frame of lines: ``file``, the
            path in the layout, ``number``, which orders the lines of a file, and ``line``.
        settings: For a frame, the text of ``collection.toml``, such as ``cluster = "NAME"``.

    Raises:
        InputRefused: There is no such folder, no cluster name or nothing to read, or lines have no
            order.
        UsageError: Settings are passed with a folder, which has its own.
    """
    if isinstance(collection, str | PathLike):
        if settings:
            raise UsageError(
                "settings belong to a frame of lines; a folder has its own collection.toml"
            )
        opened = collection_at(spark, fspath(collection))
    else:
        opened = open_collection(FramedLines(collection, settings))
    with ingested_tables(spark, opened) as tables:
        return _with_settings(tables[EVENTS], tables[GROUPS])


def _with_settings(events: DataFrame, groups: DataFrame | None) -> DataFrame:
    if groups is None:
        return events
    row = sf.struct(*groups.columns)
    of_group = groups.groupBy(*GROUP).agg(sf.collect_list(row).alias(SETTINGS))
    return events.join(of_group, [*GROUP], "left").select(*events.columns, SETTINGS)


def epochs(events: DataFrame, consumer_groups: DataFrame | None = None) -> DataFrame:
    """Return the epochs of every group; lazy.

    Rows are checked as in `simulate`; bad rows are left out (`rejected` returns them).

    Args:
        events: ``cluster_events``, from `read_events`, `read_logs` or any other source.
        consumer_groups: The settings of groups; None for those in the events' ``settings``, or else
            the defaults.

    Returns:
        The columns of ``epochs``; ``events ARRAY<STRUCT<…>>``, rows of ``cluster_events`` about the
        group from the epoch's beginning to its end (the first epoch also has all earlier ones); and
        ``settings STRUCT<…>``, its row of ``consumer_groups``.

    Raises:
        InputRefused: A column is missing, appears twice, or cannot have the contract's type; a
            time is a TIMESTAMP without time zone.
    """
    return _of_groups(
        _group_rows(_event_inputs(events, consumer_groups)), _epochs, step_ddl(EPOCHS)
    )


def ownership(epochs: DataFrame) -> DataFrame:
    """Return, lazily, the owner of each queue and the epochs in which it holds the queue.

    Args:
        epochs: ``cluster``, ``consumer_group``, ``epoch``, ``events`` and ``settings`` of `epochs`,
            for each group from epoch 0 on.

    Returns:
        The columns of ``ownership``; ``begins`` and ``ends``, each ``STRUCT<earliest_ms, latest_ms,
        other_client_id, kind, cause>``: the ADD that begins the holding and the DROP that ends it,
        or null; and on one row per group, the first with ``begins``, its ``events`` and
        ``settings``.

    Raises:
        InputRefused: A column is missing or has a different type. If an epoch is missing, using the
            frame fails with the name of the group.
    """
    _refuse_other_types(EPOCHS, epochs, (*GROUP, "epoch", *HISTORY))
    rows = epochs.select(*GROUP, "epoch", *HISTORY)
    return _of_groups(rows, group_steps.ownership_of, step_ddl(OWNERSHIP))


def diffs(ownership: DataFrame) -> DataFrame:
    """Return the drops and adds of each epoch, lazily and without Python in Spark's tasks.

    Args:
        ownership: From `ownership`; a subset of the rows gives a subset of the changes.

    Returns:
        The columns of ``diffs`` and, on one ADD per group, its ``events`` and ``settings``.

    Raises:
        InputRefused: A column is missing or has a different type.
    """
    queue = [name for name in QUEUE_OF_CLIENT if name != "client_id"]
    names = (*GROUP, *QUEUE_OF_CLIENT, "from_epoch", "to_epoch", "from_ms", "to_ms")
    _refuse_other_types(OWNERSHIP, ownership, (*names, "begins", "ends", *HISTORY))

    def change(of: str, at: str, action: str, history: Sequence[Column]) -> Column:
        return sf.when(
            sf.col(of).isNotNull(),
            sf.struct(
                sf.col(f"{at}_epoch").alias("epoch"),
                sf.col(f"{at}_ms").alias("change_ms"),
                *(sf.col(of)[name].alias(name) for name in CHANGE),
                sf.lit(action).alias("action"),
                *(column.alias(name) for name, column in zip(HISTORY, history, strict=True)),
            ),
        )

    nothing = [sf.lit(None).cast(ownership.schema[name].dataType) for name in HISTORY]
    changes = sf.array(
        change("begins", "from", "ADD", [sf.col(name) for name in HISTORY]),
        change("ends", "to", "DROP", nothing),
    )
    each = ownership.select(
        *GROUP, *queue, "client_id", sf.explode(sf.filter(changes, sf.isnotnull)).alias("change")
    )
    flat = each.select(*GROUP, *QUEUE_OF_CLIENT, "change.*")
    return flat.select(*LEDGER_TABLES[DIFFS].column_names, *HISTORY)


def pull_starts(
    diffs: DataFrame, offsets: DataFrame | None = None, commits: DataFrame | None = None
) -> DataFrame:
    """Return where each new owner starts to pull, and why; lazy.

    Args:
        diffs: From `diffs`; a subset of the rows gives a subset of the starts, if it includes each
            group's row with ``events``.
        offsets: ``queue_offsets``; None if unknown.
        commits: ``committed_offsets``; None if unknown, which differs from no commits.

    Returns:
        The columns of ``pull_starts``: a row for every ADD that is not INITIAL.

    Raises:
        InputRefused: As for `epochs`. If a group's events are missing, using the frame fails with
            the name of the group.
    """
    names = ("epoch", *QUEUE_OF_CLIENT, "action", "kind", *HISTORY)
    _refuse_other_types(DIFFS, diffs, (*GROUP, *names))
    given = {OFFSETS: offsets, COMMITS: commits}
    tables = {name: frame for name, frame in given.items() if frame is not None}
    rows = _group_rows(tables, {DIFFS: diffs.select(*GROUP, *names)})
    return _of_groups(rows, partial(_starts, given=tuple(tables)), step_ddl(PULL_STARTS))


def rejected(
    events: DataFrame,
    consumer_groups: DataFrame | None = None,
    offsets: DataFrame | None = None,
    commits: DataFrame | None = None,
) -> DataFrame:
    """Return, lazily, the input rows that the steps leave out, each with the reasons.

    Args:
        events: As for `epochs`.
        consumer_groups: As for `epochs`.
        offsets: As for `pull_starts`.
        commits: As for `pull_starts`.

    Returns:
        The columns of ``rejected``, including events without a member.
    """
    inputs = _event_inputs(events, consumer_groups)
    inputs |= {
        name: frame for name, frame in ((OFFSETS, offsets), (COMMITS, commits)) if frame is not None
    }
    bad = _checked(inputs).select("rejected").dropna().mapInArrow(unpacked, REJECTED.plain_ddl)
    unknown = _of_groups(
        _group_rows(_event_inputs(events, consumer_groups)), _unknown_members, REJECTED.plain_ddl
    )
    return bad.unionByName(unknown)


def _refuse_other_types(name: str, frame: DataFrame, needed: Sequence[str]) -> None:
    """Refuse a step's frame that lacks columns or has them with other types."""
    columns = frame.columns
    refuse_repeated_columns(name, columns)
    missing = [column for column in needed if column not in columns]
    if missing:
        raise InputRefused(
            f"{name} lacks the column(s) {', '.join(missing)}; it has {', '.join(columns)}; "
            "rebalance_core.spark writes them with its rows"
        )
    wanted = _types_of(name)
    for column in needed:
        found = frame.schema[column].dataType.simpleString()
        if found != wanted[column]:
            raise InputRefused(f"{name}.{column} is {found}, not {wanted[column]}")


def _types_of(name: str) -> dict[str, str]:
    """Return the types of a step's columns, as in ``simpleString``."""
    ledger = {column.name: column.type for column in LEDGER_TABLES[name].columns}
    types = ledger | _ADDED
    return {
        column: kind.lower().replace(": ", ":").replace(", ", ",") for column, kind in types.items()
    }


def _refuse_wrong_columns(table: Table, frame: DataFrame) -> None:
    """Refuse a frame whose columns cannot have the contract's types, before any row is read."""
    refuse_no_time_zone(table, frame)
    for field in frame.schema:
        column = next((c for c in table.columns if c.name == field.name), None)
        if column is None:
            continue
        kind, is_time = field.dataType, column.name in TIME_RANGES and column.type == "BIGINT"
        where = f"{table.name}.{column.name}"
        if isinstance(kind, st.NullType) and not column.nullable:
            raise InputRefused(f"{where} is null in every row; the column needs {column.type}")
        if not _convertible(kind, column.type, is_time=is_time):
            raise InputRefused(f"{where} is {kind.simpleString()}, not {column.type}")


_WHOLE = (st.IntegralType, st.FractionalType, st.DecimalType, st.StringType)
_VALUES: dict[str, tuple[type[st.DataType], ...]] = {
    "STRING": (st.AtomicType,),
    "INT": _WHOLE,
    "BIGINT": _WHOLE,
    "BOOLEAN": (st.BooleanType, st.StringType),
    "ARRAY<STRING>": (st.StringType,),
}


def _convertible(kind: st.DataType, wanted: str, *, is_time: bool) -> bool:
    """Return whether `conform` may read values of this type; which ones depends on the rows."""
    if isinstance(kind, st.NullType) or (is_time and isinstance(kind, st.TimestampType)):
        return True
    if wanted == "ARRAY<STRING>" and isinstance(kind, st.ArrayType):
        kind, wanted = kind.elementType, "STRING"
    return isinstance(kind, _VALUES[wanted]) and not isinstance(kind, st.BinaryType)


def _event_inputs(events: DataFrame, groups: DataFrame | None) -> dict[str, DataFrame]:
    """Return the tables of `epochs`; settings in events also become rows of a table."""
    refuse_repeated_columns(EVENTS, events.columns)
    if groups is None and SETTINGS in events.columns:
        kind = events.schema[SETTINGS].dataType
        if not (isinstance(kind, st.ArrayType) and isinstance(kind.elementType, st.StructType)):
            raise InputRefused(
                f"{EVENTS}.{SETTINGS} is {kind.simpleString()}, not an array of rows of {GROUPS}"
            )
        row = events.select(sf.explode(SETTINGS).alias("row"))
        groups = row.select("row.*").distinct()
    events = events.drop(SETTINGS)
    return {EVENTS: events} if groups is None else {EVENTS: events, GROUPS: groups}


def _checked(tables: Mapping[str, DataFrame]) -> DataFrame:
    """Return the rows of all tables after the row checks, as `checks.CHECKED_DDL`; lazy."""
    sources = {}
    for name, frame in tables.items():
        refuse_repeated_columns(name, frame.columns)
        _refuse_wrong_columns(INPUT_TABLES[name], frame)
        sources[name] = source_of(INPUT_TABLES[name], frame)
    return checked_chunks(sources, MAX_QUEUE_NUMS, KeyTask(()))


_ADDRESSED_DDL = "bucket INT, cluster STRING, consumer_group STRING, name STRING, chunk BINARY"
_ADDRESSED = arrow_schema_of(_ADDRESSED_DDL)
_OF_GROUP_DDL = "cluster STRING, consumer_group STRING, name STRING, chunk BINARY"


def _group_rows(
    tables: Mapping[str, DataFrame], more: Mapping[str, DataFrame] | None = None
) -> DataFrame:
    """Return the used rows of all tables for each group that they concern, packed; lazy.

    Each input is read once. Rows about a whole cluster go to one task, with the topics that its
    groups read.

    Args:
        tables: Input tables, whose rows are checked.
        more: Frames of steps.
    """
    parts = []
    frames = [*tables.values(), *(more or {}).values()]
    tasks = tasks_of_shuffles(frames[0].sparkSession)
    if tables:
        used = _checked(tables).select("name", "used").dropna()
        parts.append(used.mapInArrow(partial(_addressed_chunks, buckets=tasks), _ADDRESSED_DDL))
    for name, frame in (more or {}).items():
        route = partial(_addressed_rows, name=name, buckets=tasks)
        parts.append(frame.mapInArrow(route, _ADDRESSED_DDL))
    dealt = by_number(reduce(DataFrame.unionAll, parts), tasks, "bucket")
    return dealt.mapInArrow(_of_their_groups, _OF_GROUP_DDL)


def _addressed_chunks(batches: Batches, buckets: int) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for name, used in zip(*batch.columns, strict=True):
            yield from _addressed_table(name.as_py(), unpack(used.as_buffer()), buckets)


def _addressed_rows(batches: Batches, name: str, buckets: int) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if batch.num_rows:
            yield from _addressed_table(name, pa.Table.from_batches([batch]), buckets)


def _addressed_table(name: str, rows: pa.Table, buckets: int) -> Iterator[pa.RecordBatch]:
    for cluster, group, table, part in group_steps.addressed(name, rows):
        bucket = bucket_of((cluster,) if group is None else (cluster, group), buckets)
        yield one_row(_ADDRESSED, bucket, cluster, group, table, pack(part))


def _of_their_groups(batches: Batches) -> Iterator[pa.RecordBatch]:
    """Yield the rows of groups, and the rows of their clusters once per group."""
    shared: dict[str, dict[str, list[pa.Table]]] = {}
    columns = _ADDRESSED.names[1:]
    for batch in batches:
        rows = batch.select(columns)
        yield rows.filter(rows["consumer_group"].is_valid())
        for row in rows.filter(rows["consumer_group"].is_null()).to_pylist():
            parts = shared.setdefault(row["cluster"], {})
            parts.setdefault(row["name"], []).append(unpack(row["chunk"]))
    schema = pa.schema([_ADDRESSED.field(name) for name in columns])
    for cluster, parts in shared.items():
        tables = {name: pa.concat_tables(rows) for name, rows in parts.items()}
        for group, name, rows in group_steps.shared_rows(tables):
            yield one_row(schema, cluster, group, name, pack(rows))


Work = Callable[[pa.Table], pa.Table]
HAS_ARROW_GROUPS = hasattr(GroupedData, "applyInArrow")  # from Spark 4.0 on


def _of_groups(rows: DataFrame, work: Work, ddl: str) -> DataFrame:
    """Return the results of applying work to the rows of each group."""
    grouped = rows.groupBy(*GROUP)
    carried = in_tasks(work)

    def of_arrow(table: pa.Table) -> pa.Table:
        return carried(table)

    if HAS_ARROW_GROUPS:
        return grouped.applyInArrow(of_arrow, ddl)
    columns = to_arrow_schema(rows.schema)

    def of_pandas(frame: pd.DataFrame) -> pd.DataFrame:
        # nullable integers are in structs, where pandas does not round them
        made = carried(pa.Table.from_pandas(frame, columns, preserve_index=False))
        plain: pd.DataFrame = made.to_pandas(integer_object_nulls=True)
        return plain

    return grouped.applyInPandas(of_pandas, ddl)


def _tables_in(rows: pa.Table) -> dict[str, pa.Table]:
    """Return the tables that are packed in the rows of one group."""
    parts: dict[str, list[pa.Table]] = {}
    for name, chunk in zip(rows["name"].to_pylist(), rows["chunk"].to_pylist(), strict=True):
        parts.setdefault(name, []).append(unpack(chunk))
    return {name: pa.concat_tables(tables) for name, tables in parts.items()}


def _events_and_settings(rows: pa.Table) -> tuple[pa.Table, pa.Table]:
    found = _tables_in(rows)
    empty = (
        with_empty_events_if_missing({})[EVENTS],
        INPUT_TABLES[GROUPS].arrow_schema().empty_table(),
    )
    return found.get(EVENTS, empty[0]), found.get(GROUPS, empty[1])


def _epochs(rows: pa.Table) -> pa.Table:
    return group_steps.epochs_of(*_events_and_settings(rows))


def _unknown_members(rows: pa.Table) -> pa.Table:
    return group_steps.unknown_members_of(*_events_and_settings(rows))


def _starts(rows: pa.Table, given: tuple[str, ...]) -> pa.Table:
    found = _tables_in(rows)
    if DIFFS not in found:
        return group_steps.step_schema(PULL_STARTS).empty_table()
    offsets, commits = (
        found.get(name, INPUT_TABLES[name].arrow_schema().empty_table()) if name in given else None
        for name in (OFFSETS, COMMITS)
    )
    return group_steps.starts_of(found[DIFFS], offsets, commits)

"""Checks rows in tasks: every input row is either used, or rejected with the reasons, and is
counted before a simulation.
"""

import json
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import groupby
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from rebalance_core.checks.conform import unknown_columns
from rebalance_core.checks.expected_values import MAX_QUEUE_NUMS
from rebalance_core.checks.key_buckets import key_buckets
from rebalance_core.checks.packed_rows import arrow_schema_of, by_bucket, one_row, pack, unpack
from rebalance_core.checks.rejections import Rejections
from rebalance_core.checks.row_checks import Checked, by_keys, with_issues
from rebalance_core.checks.row_counts import Content, RowCounts
from rebalance_core.checks.row_limits import BadRowLimits, refuse_bad_rows
from rebalance_core.checks.text_rows import ReadRows
from rebalance_core.contracts import ALL_TABLES, REJECTED
from rebalance_core.contracts.table import RAW, SOURCE
from rebalance_core.engine.sharing_groups import INSTANCE, Group, groups_sharing_in
from rebalance_core.kernels.table_columns import EVENTS
from rebalance_core.model.events import CONSUMER_JOIN
from rebalance_core.process.runtime import StatsOf, StatsT, TaskStats
from rebalance_core.process.stage_rows import StageRows
from rebalance_core.spark.plugins import in_tasks
from rebalance_core.spark.sources import Inputs, Source, rows_of, task_count_of, unpacked
from rebalance_core.spark.spark_versions import arrow_of, by_number
from rebalance_core.spark.stages import Stage, described, with_tables

# Tasks first check each row alone, then the rows of each key together.
#
# Between the two steps, rows are packed by the bucket of their keys. After them, the used and the
# rejected rows are packed with their counts. A task's note on all its used rows comes last.
Batches = Iterable[pa.RecordBatch]


KEYED_DDL = "bucket INT, name STRING, row_count INT, unknown STRING, chunk BINARY"
_KEYED = arrow_schema_of(KEYED_DDL)
CHECKED_DDL = (
    "name STRING, row_count BIGINT, bad BIGINT, used_rows BIGINT, unknown STRING, note BINARY, "
    "used BINARY, rejected BINARY"
)
_CHECKED = arrow_schema_of(CHECKED_DDL)
_ROWS_AT_ONCE = 1 << 17
"""Number of rows packed, or compared by their keys, together; more if one bucket has more."""


@dataclass(frozen=True, slots=True)
class RowTask:
    """Checks each row of a table on its own.

    Attributes:
        name: The table's name.
        read: Converts batches to conformed rows.
        max_queue_nums: The maximum number of queues of a topic on a broker.
        buckets: The number of buckets of keys.
    """

    name: str
    read: Callable[[Batches], Iterator[ReadRows]]
    max_queue_nums: int
    buckets: int

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Yield the rows of `KEYED_DDL`."""
        waiting: list[pa.Table] = []
        unknown: set[str] = set()
        for read in self.read(batches):
            table = ALL_TABLES[self.name]
            waiting.append(with_issues(table, read.rows, self.max_queue_nums))
            unknown |= read.unknown
            if sum(map(len, waiting)) >= _ROWS_AT_ONCE:
                yield from self._packed(waiting, unknown)
                waiting, unknown = [], set()
        yield from self._packed(waiting, unknown)

    def _packed(self, waiting: list[pa.Table], unknown: set[str]) -> Iterator[pa.RecordBatch]:
        if not waiting:
            return
        rows = pa.concat_tables(waiting)
        names = json.dumps(sorted(unknown))
        for bucket, part in by_bucket(rows, key_buckets(ALL_TABLES[self.name], rows, self.buckets)):
            yield one_row(_KEYED, bucket, self.name, len(part), names, pack(part))


@dataclass(frozen=True, slots=True)
class KeyTask:
    """Compares the rows of each key; a bucket's rows arrive together.

    Attributes:
        stats_of: Functions of the used rows, each with its own class of stats.
        state_end_ms: See `checks.input_tables.ArrowTables`.
    """

    stats_of: tuple[StatsOf, ...]
    state_end_ms: int | None = None

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Yield the rows of `CHECKED_DDL`."""
        stats: dict[type[TaskStats], TaskStats] = {}
        for name, checked, unknown in _checked(batches, self.state_end_ms):
            yield from _checked_rows(name, checked, unknown)
            for read in self.stats_of:
                counted = read(name, checked.tables[name])
                if counted is not None:
                    kind = type(counted)
                    merged = kind.merged([stats[kind], counted]) if kind in stats else counted
                    stats[kind] = merged
        if stats:
            note = pickle.dumps([*stats.values()])
            yield one_row(_CHECKED, None, 0, 0, 0, "[]", note, None, None)


def _checked(batches: Batches, state_end_ms: int | None) -> Iterator[tuple[str, Checked, str]]:
    """Yield the tables, a few buckets of a table at a time, and their metadata."""
    waiting: list[dict[str, Any]] = []
    for _, chunks in groupby(_chunks(batches), key=lambda chunk: chunk["bucket"]):
        waiting += chunks
        if sum(chunk["row_count"] for chunk in waiting) >= _ROWS_AT_ONCE:
            yield from _checked_together(waiting, state_end_ms)
            waiting = []
    yield from _checked_together(waiting, state_end_ms)


def _checked_together(
    chunks: list[dict[str, Any]], state_end_ms: int | None
) -> Iterator[tuple[str, Checked, str]]:
    by_table: dict[str, list[dict[str, Any]]] = {}
    for chunk in chunks:
        by_table.setdefault(chunk["name"], []).append(chunk)
    for name, of_table in by_table.items():
        rows = pa.concat_tables([unpack(chunk["chunk"]) for chunk in of_table])
        unknown = unknown_names(chunk["unknown"] for chunk in of_table)
        checked = by_keys(ALL_TABLES[name], rows.combine_chunks(), state_end_ms)
        yield name, checked, json.dumps(sorted(unknown))


def _checked_rows(name: str, checked: Checked, unknown: str) -> Iterator[pa.RecordBatch]:
    used, counts = checked.tables[name], checked.counts[name]
    rejected = pack(checked.rejected) if len(checked.rejected) else None
    first = pack(used.slice(0, _ROWS_AT_ONCE)) if len(used) else None
    note = pickle.dumps((counts.content, counts.of_state, checked.rejections))
    numbers = (counts.rows, counts.bad, len(used))
    yield one_row(_CHECKED, name, *numbers, unknown, note, first, rejected)
    for begin in range(_ROWS_AT_ONCE, len(used), _ROWS_AT_ONCE):
        packed = pack(used.slice(begin, _ROWS_AT_ONCE))
        yield one_row(_CHECKED, name, 0, 0, 0, "[]", None, packed, None)


def used_ddl(name: str) -> str:
    """Return the columns of used rows."""
    return f"{ALL_TABLES[name].plain_ddl}, {SOURCE} STRING, {RAW} STRING"


def unknown_names(texts: Iterable[str]) -> set[str]:
    """Return the names that `RowTask` reported as unknown columns."""
    return {name for text in texts for name in json.loads(text)}


def _chunks(batches: Batches) -> Iterator[dict[str, Any]]:
    for batch in batches:
        yield from batch.to_pylist()


_BUCKETS = 64
"""The number of buckets of keys, of which a task compares one or a few at once."""


_COUNTED = ("name", "row_count AS rows_in", "bad", "used_rows AS rows_out", "unknown", "note")


@dataclass(frozen=True, eq=False)
class CheckedFrames:
    """The checked input: frames, kept until closed, and their counts.

    Attributes:
        tables: The used rows by table name (contract columns, ``_source``, ``_raw``; equal repeats
            once).
        rejected: The ledger table ``rejected``.
        chunks: Used and rejected rows, packed (`CHECKED_DDL`).
        counts: The number of rows and of bad rows in each table.
        rejections: What is wrong with the bad rows.
        unknown: Ignored unknown columns by table, sorted.
        task_stats: The tasks' counts of the used rows, unordered.
        state_end_ms: See `checks.input_tables.ArrowTables`.
    """

    tables: Mapping[str, DataFrame]
    rejected: DataFrame
    chunks: DataFrame
    counts: Mapping[str, RowCounts]
    rejections: Rejections
    unknown: Mapping[str, list[str]]
    task_stats: Sequence[TaskStats]
    state_end_ms: int | None

    def stats(self, kind: type[StatsT]) -> StatsT:
        """Return the merged counts of one class over all tasks."""
        return kind.merged(part for part in self.task_stats if isinstance(part, kind))

    def refuse(self, limits: BadRowLimits) -> None:
        """Raise `model.errors.InputRefused` if too many rows are bad."""
        refuse_bad_rows(self.counts, limits, self.rejections.complaints)

    def sharing_groups(self) -> Mapping[Group, tuple[Group, ...]]:
        """Return the groups that share client instances; only these are sent to the driver."""
        joins = self.tables[EVENTS].where(sf.col("event_type") == CONSUMER_JOIN)
        groups = joins.groupBy(*INSTANCE).agg(sf.collect_set("consumer_group").alias("groups"))
        shared = groups.where(sf.size("groups") > 1)
        distinct = shared.select("cluster", sf.sort_array("groups").alias("groups")).distinct()
        return groups_sharing_in((row["cluster"], row["groups"]) for row in rows_of(distinct))

    def rows(self, table: str, most: int | None = None) -> pa.Table:
        """Return the used (or rejected) rows of a small table to the driver."""
        frame = self.rejected if table == REJECTED.name else self.tables[table]
        return arrow_of(frame if most is None else frame.limit(most))

    def close(self) -> None:
        """Release the checked rows."""
        self.chunks.unpersist()


def check_and_count(
    inputs: Inputs,
    max_queue_nums: int = MAX_QUEUE_NUMS,
    stats_of: tuple[StatsOf, ...] = (),
    warn: Callable[[str], object] | None = None,
    stages: list[StageRows] | None = None,
) -> CheckedFrames:
    """Check all tables in one job; every row is either used or rejected.

    It takes one pass and one shuffle by key. Rows with the same key are equal if all columns except
    ``source`` match, because the same event may appear in two logs. Rows with an unreadable field
    have no key. Observed tables have no keys, and any text in them is valid, as it is an
    observation rather than a setting.

    Args:
        inputs: The tables as read.
        max_queue_nums: The maximum number of queues of a topic on a broker.
        stats_of: Functions that count the used rows.
        warn: Receives a message for each table with unknown columns, which are ignored.
        stages: Receives the number of rows and the number used.
    """
    sources = inputs.sources()
    task = KeyTask(stats_of, inputs.state_end_ms)
    chunks = checked_chunks(sources, max_queue_nums, task).persist()
    try:
        stage = Stage(with_tables("check", sources), stages)
        with described(chunks.sparkSession, stage.what):
            checked = _counted(sources, chunks, inputs.state_end_ms, stage)
    except BaseException:
        chunks.unpersist()
        raise
    if warn is not None:
        for name, columns in checked.unknown.items():
            warn(unknown_columns(name, columns))
    return checked


def _counted(
    sources: Mapping[str, Source], chunks: DataFrame, state_end_ms: int | None, stage: Stage
) -> CheckedFrames:
    counts, rejections = dict.fromkeys(sources, RowCounts(0, 0)), Rejections()
    texts: dict[str, list[str]] = {name: [] for name in sources}
    stats: list[TaskStats] = []
    counted = rows_of(stage.observed(chunks.selectExpr(*_COUNTED)))
    stage.count(counted)
    for row in counted:
        name = row["name"]
        note = None if row["note"] is None else pickle.loads(row["note"])
        if name is None:
            stats += note or ()
            continue
        content, of_state, wrong = note or (Content(), 0, Rejections())
        counts[name] += RowCounts(row["rows_in"], row["bad"], content, of_state)
        rejections.merge(wrong)
        texts[name].append(row["unknown"])
    unknown_by_table = {
        name: sources[name].extras or sorted(unknown_names(texts[name])) for name in sources
    }
    of_table = {name: chunks.where(sf.col("name") == name).select("used") for name in sources}
    return CheckedFrames(
        tables={name: _unpacked(rows, used_ddl(name)) for name, rows in of_table.items()},
        rejected=_unpacked(chunks.select("rejected"), REJECTED.plain_ddl),
        chunks=chunks,
        counts=counts,
        rejections=rejections,
        unknown={name: names for name, names in unknown_by_table.items() if names},
        task_stats=stats,
        state_end_ms=state_end_ms,
    )


def _unpacked(chunks: DataFrame, ddl: str) -> DataFrame:
    return chunks.dropna().mapInArrow(unpacked, ddl)


def checked_chunks(sources: Mapping[str, Source], max_queue_nums: int, task: KeyTask) -> DataFrame:
    """Return the rows of all tables as `CHECKED_DDL`."""
    session = next(iter(sources.values())).frame.sparkSession
    keyed = any(source.table.key for source in sources.values())
    tasks = task_count_of(sources.values(), session) if keyed else 1
    buckets = max(_BUCKETS, tasks) if keyed else 1
    by_bucket = [
        source.frame.mapInArrow(
            in_tasks(RowTask(name, source.read, max_queue_nums, buckets)), KEYED_DDL
        )
        for name, source in sources.items()
    ]
    rows = reduce(lambda first, second: first.unionAll(second), by_bucket)
    if keyed:
        rows = by_number(rows, tasks, "bucket").sortWithinPartitions("bucket")
    return rows.mapInArrow(task, CHECKED_DDL)

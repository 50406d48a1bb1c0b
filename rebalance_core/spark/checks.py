"""Row checks in tasks: every input row is used, or rejected with the reasons; counted before a
simulation.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import groupby
from typing import Any, Protocol, Self, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from rebalance_core.checks.conform import unknown_columns
from rebalance_core.checks.packed_rows import by_bucket, pack, unpack
from rebalance_core.checks.row_checks import Checked, by_keys, key_buckets, with_issues
from rebalance_core.checks.row_issues import MAX_QUEUE_NUMS
from rebalance_core.checks.row_limits import Complaint, Content, RowCounts
from rebalance_core.checks.text_rows import ReadRows
from rebalance_core.contracts import ALL_TABLES, REJECTED
from rebalance_core.contracts.table import RAW, SOURCE
from rebalance_core.spark.sources import Inputs, Source, cores_of, rows_of

# What tasks do to check rows: each row alone, then the rows of each key together.
#
# Between the two, rows are packed by bucket of their keys; afterwards the used rows and the
# rejected ones are, with what was counted of them. What a task notes of all its used rows comes
# last.

Batches = Iterable[pa.RecordBatch]


class TaskStats(Protocol):
    """Counts of used rows that a later step wants; pickled."""

    @classmethod
    def merged(cls, parts: Iterable[Self]) -> Self:
        """That of all these rows."""


StatsOf = Callable[[str, pa.Table], TaskStats | None]
"""From used rows of a table to what they say, if that is something."""

KEYED_DDL = "bucket INT, name STRING, row_count INT, unknown STRING, chunk BINARY"
_KEYED = pa.schema(
    [
        ("bucket", pa.int32()),
        ("name", pa.string()),
        ("row_count", pa.int32()),
        ("unknown", pa.string()),
        ("chunk", pa.binary()),
    ]
)
CHECKED_DDL = (
    "name STRING, row_count BIGINT, bad BIGINT, unknown STRING, note BINARY, used BINARY, "
    "rejected BINARY"
)
_CHECKED = pa.schema(
    [
        ("name", pa.string()),
        ("row_count", pa.int64()),
        ("bad", pa.int64()),
        ("unknown", pa.string()),
        ("note", pa.binary()),
        ("used", pa.binary()),
        ("rejected", pa.binary()),
    ]
)
_ROWS_AT_ONCE = 1 << 17
"""So many rows are packed, or compared by their keys, together; more if one bucket has more."""


@dataclass(frozen=True, slots=True)
class RowTask:
    """Checks each row of one table alone.

    Attributes:
        name: Of the table.
        read: From batches to conformed rows.
        max_queue_nums: The most queues that a topic may have on a broker.
        buckets: How many buckets keys are spread over.
    """

    name: str
    read: Callable[[Batches], Iterator[ReadRows]]
    max_queue_nums: int
    buckets: int

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Rows of `KEYED_DDL`."""
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
            yield _row(_KEYED, bucket, self.name, len(part), names, pack(part))


@dataclass(frozen=True, slots=True)
class KeyTask:
    """Compares the rows of each key; the rows of a bucket come together.

    Attributes:
        stats_of: Of the used rows; each gives stats of a class of its own.
    """

    stats_of: tuple[StatsOf, ...]

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Rows of `CHECKED_DDL`."""
        stats: dict[type[TaskStats], TaskStats] = {}
        for name, checked, unknown in _checked(batches):
            yield from _checked_rows(name, checked, unknown)
            for read in self.stats_of:
                counted = read(name, checked.tables[name])
                if counted is not None:
                    kind = type(counted)
                    merged = kind.merged([stats[kind], counted]) if kind in stats else counted
                    stats[kind] = merged
        if stats:
            yield _row(_CHECKED, None, 0, 0, "[]", pickle.dumps([*stats.values()]), None, None)


def _checked(batches: Batches) -> Iterator[tuple[str, Checked, str]]:
    """Tables, some buckets of one at a time, and what in them are no columns."""
    waiting: list[dict[str, Any]] = []
    for _, chunks in groupby(_chunks(batches), key=lambda chunk: chunk["bucket"]):
        waiting += chunks
        if sum(chunk["row_count"] for chunk in waiting) >= _ROWS_AT_ONCE:
            yield from _checked_together(waiting)
            waiting = []
    yield from _checked_together(waiting)


def _checked_together(chunks: list[dict[str, Any]]) -> Iterator[tuple[str, Checked, str]]:
    by_table: dict[str, list[dict[str, Any]]] = {}
    for chunk in chunks:
        by_table.setdefault(chunk["name"], []).append(chunk)
    for name, of_table in by_table.items():
        rows = pa.concat_tables([unpack(chunk["chunk"]) for chunk in of_table])
        unknown = unknown_names(chunk["unknown"] for chunk in of_table)
        checked = by_keys(ALL_TABLES[name], rows.combine_chunks())
        yield name, checked, json.dumps(sorted(unknown))


def _checked_rows(name: str, checked: Checked, unknown: str) -> Iterator[pa.RecordBatch]:
    used, counts = checked.tables[name], checked.counts[name]
    rejected = pack(checked.rejected) if len(checked.rejected) else None
    first = pack(used.slice(0, _ROWS_AT_ONCE)) if len(used) else None
    note = pickle.dumps(counts.content)
    yield _row(_CHECKED, name, counts.rows, counts.bad, unknown, note, first, rejected)
    for begin in range(_ROWS_AT_ONCE, len(used), _ROWS_AT_ONCE):
        packed = pack(used.slice(begin, _ROWS_AT_ONCE))
        yield _row(_CHECKED, name, 0, 0, "[]", None, packed, None)


def used_ddl(name: str) -> str:
    """The columns of used rows."""
    return f"{ALL_TABLES[name].plain_ddl}, {SOURCE} STRING, {RAW} STRING"


def unpacked(batches: Batches) -> Iterator[pa.RecordBatch]:
    """The rows that are packed in the only column."""
    for batch in batches:
        for chunk in batch.column(0):
            yield from unpack(chunk.as_buffer()).to_batches()


def unknown_names(texts: Iterable[str]) -> set[str]:
    """The names that `RowTask` found to be no columns."""
    return {name for text in texts for name in json.loads(text)}


def _chunks(batches: Batches) -> Iterator[dict[str, Any]]:
    for batch in batches:
        yield from batch.to_pylist()


def _row(schema: pa.Schema, *values: Any) -> pa.RecordBatch:
    arrays = [pa.array([v], f.type) for v, f in zip(values, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


# Row checks: every input row is used, or rejected with the reasons.

_BUCKETS = 64
"""Keys are spread over so many buckets: what a task compares at once is a bucket or some."""


@dataclass(frozen=True, eq=False)
class CheckedFrames:
    """The input after the checks; everything lazy.

    ``tables`` has the used rows by table name (contract columns, ``_source``, ``_raw``; equal
    repeats once), ``rejected`` is the ledger table, ``chunks`` has both, packed (`CHECKED_DDL`).
    """

    tables: Mapping[str, DataFrame]
    rejected: DataFrame
    chunks: DataFrame

    def of(self, names: Collection[str]) -> CheckedFrames:
        """Some of the tables; what is kept is released where all are."""
        tables = {name: rows for name, rows in self.tables.items() if name in names}
        return _checked_frames(tables, self.chunks.where(sf.col("name").isin(*names)))

    def close(self) -> None:
        """Release the checked rows, which are kept once computed if `quarantine` made them."""
        self.chunks.unpersist()


def quarantine(
    inputs: Inputs, *, max_queue_nums: int = MAX_QUEUE_NUMS, stats_of: tuple[StatsOf, ...] = ()
) -> CheckedFrames:
    """Check every table there is, and keep the rows once computed; see `check`.

    Args:
        inputs: The tables as read.
        max_queue_nums: The most queues that a topic may have on a broker.
        stats_of: Of the used rows.
    """
    # Counted, used and rejected from here.
    sources = inputs.sources()
    chunks = _checked_chunks(sources, max_queue_nums, stats_of).persist()
    return _checked_frames(sources, chunks)


def check(sources: Mapping[str, Source], *, max_queue_nums: int = MAX_QUEUE_NUMS) -> CheckedFrames:
    """Every row of some tables, used or rejected.

    One pass and one shuffle by key. Rows of one key are equal if all columns but ``source`` are:
    the same event may stand in two logs. Rows with a field that did not read have no key. Observed
    tables have no keys, and their texts are what was seen, not settings: any is good.
    """
    return _checked_frames(sources, _checked_chunks(sources, max_queue_nums, ()))


def _checked_frames(names: Iterable[str], chunks: DataFrame) -> CheckedFrames:
    of_table = {name: chunks.where(sf.col("name") == name).select("used") for name in names}
    return CheckedFrames(
        tables={name: _unpacked(rows, used_ddl(name)) for name, rows in of_table.items()},
        rejected=_unpacked(chunks.select("rejected"), REJECTED.plain_ddl),
        chunks=chunks,
    )


def _unpacked(chunks: DataFrame, ddl: str) -> DataFrame:
    return chunks.dropna().mapInArrow(unpacked, ddl)


def _checked_chunks(
    sources: Mapping[str, Source], max_queue_nums: int, stats_of: tuple[StatsOf, ...]
) -> DataFrame:
    """Rows of `CHECKED_DDL` of all tables."""
    session = next(iter(sources.values())).frame.sparkSession
    keyed = any(source.table.key for source in sources.values())
    tasks = cores_of(session) if keyed else 1
    buckets = max(_BUCKETS, tasks) if keyed else 1
    by_bucket = [
        source.frame.mapInArrow(
            _plain(RowTask(name, source.read, max_queue_nums, buckets)), KEYED_DDL
        )
        for name, source in sources.items()
    ]
    rows = reduce(DataFrame.unionAll, by_bucket)
    if keyed:
        number = sf.pmod(sf.col("bucket"), sf.lit(tasks))
        rows = rows.repartitionById(tasks, number).sortWithinPartitions("bucket")
    return rows.mapInArrow(_plain(KeyTask(stats_of)), CHECKED_DDL)


def _plain(task: RowTask | KeyTask) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow`: Spark wants a plain one."""

    def run(batches: Batches) -> Iterator[pa.RecordBatch]:
        yield from task(batches)

    return run


# How many rows were read, how many are bad and why, counted before anything is simulated.

StatsT = TypeVar("StatsT", bound=TaskStats)

_COUNTED = ("name", "row_count", "bad", "unknown", "note")


@dataclass(frozen=True, eq=False)
class CheckCounts:
    """What was counted of checked tables.

    Attributes:
        rows: Rows and bad rows of each table.
        unknown: Columns, sorted, that were read past, by table.
        task_stats: What tasks counted of the used rows, in no order.
    """

    rows: Mapping[str, RowCounts]
    unknown: Mapping[str, list[str]]
    task_stats: Sequence[TaskStats]

    def stats(self, kind: type[StatsT]) -> StatsT:
        """Merge what all tasks counted, of one class."""
        return kind.merged(part for part in self.task_stats if isinstance(part, kind))


def check_and_count(
    inputs: Inputs,
    max_queue_nums: int,
    stats_of: tuple[StatsOf, ...],
    warn: Callable[[str], object] | None = None,
) -> tuple[CheckedFrames, CheckCounts]:
    """The checked tables, kept until closed, and what was counted of them; one job.

    Args:
        inputs: The tables as read.
        max_queue_nums: As of `quarantine`.
        stats_of: Each counts something of the used rows.
        warn: Gets a text for each table with unknown columns, which are not read.
    """
    checked = quarantine(inputs, max_queue_nums=max_queue_nums, stats_of=stats_of)
    try:
        told = {n: s.extras for n, s in inputs.sources().items() if s.extras is not None}
        counted = _counted(checked, told)
    except BaseException:
        checked.close()
        raise
    if warn is not None:
        for name, columns in counted.unknown.items():
            warn(unknown_columns(name, columns))
    return checked, counted


def _counted(checked: CheckedFrames, told: Mapping[str, list[str]]) -> CheckCounts:
    """Args: the tables, and the unknown columns that are known before rows are read."""
    rows = dict.fromkeys(checked.tables, RowCounts(0, 0))
    texts: dict[str, list[str]] = {name: [] for name in checked.tables}
    stats: list[TaskStats] = []
    for row in rows_of(checked.chunks.select(*_COUNTED)):
        name = row["name"]
        note = None if row["note"] is None else pickle.loads(row["note"])
        if name is None:
            stats += note or ()
            continue
        rows[name] += RowCounts(row["row_count"], row["bad"], note or Content())
        texts[name].append(row["unknown"])
    found = {name: told.get(name) or sorted(unknown_names(texts[name])) for name in rows}
    return CheckCounts(rows, {name: names for name, names in found.items() if names}, stats)


def complaints(rejected: DataFrame) -> list[Complaint]:
    """The issues of rows of ``rejected``, by table and code, the most frequent first; one job."""
    issue = sf.explode("issues").alias("issue")
    line = sf.regexp_extract("source", r"[:@](\d+)$", 1).try_cast("BIGINT")
    file = sf.regexp_replace("source", r"[:@]\d+$", "")
    rows = rejected.select("table_name", file.alias("file"), line.alias("line"), "source", issue)
    first = sf.min(sf.struct("file", "line", "source", "issue.message")).alias("first")
    counted = rows.groupBy("table_name", sf.col("issue.code").alias("code")).agg(
        sf.count(sf.lit(1)).alias("times"), first
    )
    return [
        Complaint(
            row["table_name"],
            row["code"],
            row["times"],
            row["first"]["source"] or "",
            row["first"]["message"],
        )
        for row in rows_of(counted.orderBy("table_name", sf.desc("times"), "code"))
    ]

"""Row checks: every input row is used, or rejected with the reasons."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from rebalance_core.checks.rules import MAX_QUEUE_NUMS
from rebalance_core.contracts import REJECTED
from rebalance_core.spark.tables.check_tasks import (
    CHECKED_DDL,
    KEYED_DDL,
    KeyTask,
    Noting,
    RowTask,
    unpacked,
    used_ddl,
)
from rebalance_core.spark.tables.sources import Inputs, Source
from rebalance_core.spark.task_count import cores_of

_BUCKETS = 64
"""Keys are spread over so many buckets: what a task compares at once is a bucket or some."""

Batches = Iterable[pa.RecordBatch]


@dataclass(frozen=True, eq=False)
class Quarantined:
    """The input after the checks; everything lazy.

    ``tables`` has the used rows by table name (contract columns, ``_source``, ``_raw``; equal
    repeats once), ``rejected`` is the ledger table, ``chunks`` has both, packed (`CHECKED_DDL`).
    """

    tables: Mapping[str, DataFrame]
    rejected: DataFrame
    chunks: DataFrame

    def of(self, names: Collection[str]) -> Quarantined:
        """Some of the tables; what is kept is released where all are."""
        tables = {name: rows for name, rows in self.tables.items() if name in names}
        return _quarantined(tables, self.chunks.where(sf.col("name").isin(*names)))

    def close(self) -> None:
        """Release the checked rows, which are kept once computed if `quarantine` made them."""
        self.chunks.unpersist()


def quarantine(
    inputs: Inputs, *, max_queue_nums: int = MAX_QUEUE_NUMS, notings: tuple[Noting, ...] = ()
) -> Quarantined:
    """Check every table there is, and keep the rows once computed; see `check`.

    Args:
        inputs: The tables as read.
        max_queue_nums: The most queues that a topic may have on a broker.
        notings: Of the used rows.
    """
    # Counted, used and rejected from here.
    sources = inputs.sources()
    chunks = _checked_chunks(sources, max_queue_nums, notings).persist()
    return _quarantined(sources, chunks)


def check(sources: Mapping[str, Source], *, max_queue_nums: int = MAX_QUEUE_NUMS) -> Quarantined:
    """Every row of some tables, used or rejected.

    One pass and one shuffle by key. Rows of one key are equal if all columns but ``source`` are:
    the same event may stand in two logs. Rows with a field that did not read have no key. Observed
    tables have no keys, and their texts are what was seen, not settings: any is good.
    """
    return _quarantined(sources, _checked_chunks(sources, max_queue_nums, ()))


def _quarantined(names: Iterable[str], chunks: DataFrame) -> Quarantined:
    of_table = {name: chunks.where(sf.col("name") == name).select("used") for name in names}
    return Quarantined(
        tables={name: _unpacked(rows, used_ddl(name)) for name, rows in of_table.items()},
        rejected=_unpacked(chunks.select("rejected"), REJECTED.plain_ddl),
        chunks=chunks,
    )


def _unpacked(chunks: DataFrame, ddl: str) -> DataFrame:
    return chunks.dropna().mapInArrow(unpacked, ddl)


def _checked_chunks(
    sources: Mapping[str, Source], max_queue_nums: int, notings: tuple[Noting, ...]
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
    return rows.mapInArrow(_plain(KeyTask(notings)), CHECKED_DDL)


def _plain(task: RowTask | KeyTask) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow`: Spark wants a plain one."""

    def run(batches: Batches) -> Iterator[pa.RecordBatch]:
        yield from task(batches)

    return run

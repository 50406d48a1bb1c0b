"""The runtime on Spark, in which each task receives the rows of whole buckets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import ClassVar, Generic, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from rebalance_core.checks.digest import TableWritten
from rebalance_core.checks.expected_values import MAX_QUEUE_NUMS
from rebalance_core.checks.packed_rows import bucket_of, pack
from rebalance_core.contracts import ALL_TABLES
from rebalance_core.engine.table_writer import ReadWritten
from rebalance_core.ingest.assumptions import Assumptions
from rebalance_core.ingest.collection import Collection
from rebalance_core.model.nouns import counted
from rebalance_core.process.pool import PieceT, Progress
from rebalance_core.process.runtime import (
    FactsT,
    Made,
    Part,
    ReadFiles,
    RowRouting,
    Sent,
    StatsOf,
    TableRows,
    Work,
)
from rebalance_core.process.stage_rows import StageRows
from rebalance_core.spark import task_tables
from rebalance_core.spark.assembled_rows import completing
from rebalance_core.spark.checks import CheckedFrames, check_and_count
from rebalance_core.spark.evidence_chunks import chunk_parts
from rebalance_core.spark.ingest import ingest
from rebalance_core.spark.plugins import in_tasks
from rebalance_core.spark.read_tables import read_table
from rebalance_core.spark.routed_rows import ROUTED_DDL, routed_batch, routed_rows, routed_tables
from rebalance_core.spark.sources import GivenTables, Inputs, reader_of, task_count
from rebalance_core.spark.spark_versions import by_number
from rebalance_core.spark.stages import Stage
from rebalance_core.spark.task_tables import KeptTables, TaskTables, kept_tables, make_unwritten
from rebalance_core.storage.place import Location

Batches = Iterable[pa.RecordBatch]
MadeT = TypeVar("MadeT")


@dataclass(frozen=True, eq=False)
class TaskRows:
    """Parts on their way to tasks.

    Attributes:
        frame: The input of the tasks.
        parts: Reads it in a task.
        units: The number of work units, for a description; empty for rows in any order.
    """

    frame: DataFrame
    parts: Callable[[Batches], Iterator[Part]]
    units: str = ""

    def work(self, work: Work[FactsT]) -> task_tables.Work[FactsT]:
        """Return the work applied to the tasks' input, counting its rows."""
        parts = self.parts
        return lambda batches, facts, seen: work(seen.taken(parts(batches)), facts)

    def stage(self, work: Work[FactsT], done: list[StageRows] | None) -> Stage:
        """Return the stage that does the work, such as ``simulate 412 work units``."""
        of = getattr(work, "__self__", work)  # for a method of a task
        return Stage(f"{getattr(of, 'VERB', 'make tables')} {self.units}".rstrip(), done)


@dataclass(frozen=True, eq=False)
class TablesOfTasks:
    """`Tables` written by the tasks into files, or through Spark's writer.

    Attributes:
        tables: Writes them.
        stages: As in `SparkRuntime`.
    """

    tables: TaskTables
    stages: list[StageRows]

    def write(
        self, rows: TaskRows, work: Work[FactsT], kind: Callable[[], FactsT], names: Iterable[str]
    ) -> FactsT:
        """Write the tasks' results in one pass."""
        stage = rows.stage(work, self.stages)
        return self.tables.make(rows.frame, rows.work(work), kind, tuple(names), stage)

    def add(self, table: str, rows: pa.Table) -> None:
        """Write a table from the driver."""
        self.tables.add(table, rows)

    def finish(self) -> Mapping[str, TableWritten]:
        """Return the number of rows and the digest of every table."""
        return self.tables.finish()


@dataclass(frozen=True, eq=False)
class KeptByTasks(Generic[FactsT]):
    """`Kept` in the memory and on the disks of the executors."""

    kept: KeptTables[FactsT]

    def facts(self) -> FactsT:
        """Return the facts of all tasks."""
        return self.kept.facts()

    def write(self, into: TablesOfTasks, names: Iterable[str]) -> None:
        """Write the named tables."""
        self.kept.write(into.tables, tuple(names))


@dataclass(frozen=True, slots=True)
class _EachPiece(Generic[PieceT, MadeT]):
    """`Work` that plays pieces by number."""

    VERB: ClassVar[str] = "play"
    pieces: Sequence[PieceT]
    play: Callable[[PieceT], MadeT]

    def __call__(self, parts: Iterable[Part], facts: Made[tuple[int, MadeT]]) -> TableRows:
        """Return no rows."""
        facts.made += [(number, self.play(self.pieces[number])) for number, _ in parts]
        return ()


@dataclass(frozen=True)
class SparkRuntime:
    """`Runtime` on Spark.

    Attributes:
        session: Any session, whose default parallelism decides the number of tasks.
        stages: The row counts of each finished stage, in order.
    """

    session: SparkSession
    stages: list[StageRows] = field(default_factory=list)

    def read(self, places: Mapping[str, str], input_format: str | None = None) -> GivenTables:
        """Return the tables by name, lazily."""
        read = {
            name: read_table(self.session, ALL_TABLES[name], place, input_format)
            for name, place in places.items()
        }
        return GivenTables(read)

    def reader(self, folder: str) -> ReadWritten:
        """Return a reader, for the driver, of the tables that a run wrote into a folder."""
        return reader_of(self.session, folder)

    @contextmanager
    def read_files(
        self,
        collection: Collection,
        assumed: Assumptions,
        progress: Callable[[int, int], object] | None = None,
    ) -> Iterator[ReadFiles]:
        """Read files in tasks, large logs in splits, and keep their facts until the block ends."""
        with ingest(self.session, collection, assumed) as read:
            rows, evidence = (
                TaskRows(read.rows, routed_tables),
                TaskRows(read.evidence, chunk_parts),
            )
            self.stages.append(
                StageRows(
                    f"read {counted(len(collection.own_files), 'file')}",
                    sum(file.lines for file in read.stats),
                    sum(file.facts for file in read.stats),
                )
            )
            yield ReadFiles(rows, completing, read.stats, evidence, read.end_ms, read.left_out)

    @contextmanager
    def check(
        self,
        inputs: Inputs,
        stats_of: tuple[StatsOf, ...] = (),
        *,
        max_queue_nums: int = MAX_QUEUE_NUMS,
        warn: Callable[[str], object] | None = None,
    ) -> Iterator[CheckedFrames]:
        """Check every row in one job, keeping the rows until the block ends."""
        checked = check_and_count(inputs, max_queue_nums, stats_of, warn, self.stages)
        try:
            yield checked
        finally:
            checked.close()

    def task_count(
        self,
        amount: int,
        per_task: int | None = None,
        *,
        per_core: int = 1,
        wanted: int | None = None,
    ) -> int:
        """Return the number of tasks, at least ``per_core`` per core."""
        return wanted or task_count(amount, self.session, per_task, per_core)

    def numbers(self, count: int, tasks: int | None = None) -> TaskRows:
        """Return ranges of numbers; if ``tasks`` is None, Spark divides the range."""
        return TaskRows(self.session.range(0, count, 1, tasks), _numbered, counted(count, "piece"))

    def each(
        self,
        pieces: Sequence[PieceT],
        play: Callable[[PieceT], MadeT],
        progress: Progress | None = None,
    ) -> Iterator[MadeT]:
        """Play each piece in a task of its own."""
        if not pieces:
            return iter(())
        task = _EachPiece(pieces, play)
        played = self.run(self.numbers(len(pieces), len(pieces)), task, Made[tuple[int, MadeT]])
        made = dict(played.made)
        return (made[number] for number in range(len(pieces)))

    def deal(
        self,
        checked: CheckedFrames,
        routing: RowRouting,
        copies: int = 1,
        more_rejected: DataFrame | None = None,
    ) -> TaskRows:
        """Return the packed rows after one shuffle."""
        rows = routed_rows(checked, routing, copies, more_rejected)
        units = counted(routing.units, "work unit") if routing.units else ""
        return TaskRows(rows, routed_tables, units)

    def exchange(
        self,
        rows: TaskRows,
        pieces: Callable[[Iterable[Part]], Iterable[PieceT]],
        play: Callable[[PieceT], Sent],
        tasks: int,
        *,
        count: int,
        progress: Progress | None = None,
    ) -> TaskRows:
        """Create the pieces and return their packed results after one shuffle."""
        parts = rows.parts

        def run(batches: Batches) -> Iterator[pa.RecordBatch]:
            for piece in pieces(parts(batches)):
                for turn, (key, name, made) in enumerate(play(piece)):
                    bucket = bucket_of(key or (piece.name, f"{turn}"), tasks)
                    yield routed_batch(bucket, name, pack(made))

        sent = rows.frame.mapInArrow(in_tasks(run), ROUTED_DDL)
        return TaskRows(by_number(sent, tasks, "bucket"), routed_tables)

    def run(self, rows: TaskRows, work: Work[FactsT], kind: Callable[[], FactsT]) -> FactsT:
        """Return only the facts, in one job."""
        return make_unwritten(rows.frame, rows.work(work), kind, rows.stage(work, self.stages))

    @contextmanager
    def keep(
        self, rows: TaskRows, work: Work[FactsT], kind: Callable[[], FactsT]
    ) -> Iterator[KeptByTasks[FactsT]]:
        """Keep the tasks' results until the block ends."""
        stage = rows.stage(work, self.stages)
        kept = kept_tables(rows.frame, rows.work(work), kind, stage=stage)
        try:
            yield KeptByTasks(kept)
        finally:
            kept.close()

    @contextmanager
    def tables(self, output: Location, names: Iterable[str]) -> Iterator[TablesOfTasks]:
        """Open a folder, given by path or URI, for writing tables."""
        with task_tables.task_tables(self.session, str(output), tuple(names)) as tables:
            yield TablesOfTasks(tables, self.stages)


def _numbered(batches: Batches) -> Iterator[Part]:
    for batch in batches:
        yield from ((number, {}) for number in batch.column(0).to_pylist())

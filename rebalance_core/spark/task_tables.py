"""Several tables made in one pass, in files that tasks write or through Spark's writer."""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Protocol, Self

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from rebalance_core.checks.digest import TableDigest, TableWritten
from rebalance_core.checks.packed_rows import arrow_schema_of, one_row, pack, unpack
from rebalance_core.contracts import ALL_TABLES, Table
from rebalance_core.contracts.paths import SHARE_IT
from rebalance_core.contracts.run_names import ATTEMPTS
from rebalance_core.engine.table_writer import FILE_NAME, TableWriters
from rebalance_core.model.errors import OutputExists, UsageError
from rebalance_core.process.runtime import FactsT, TableRows, TaskFacts
from rebalance_core.process.stage_rows import RowsSeen
from rebalance_core.spark.plugins import in_tasks
from rebalance_core.spark.sources import frame_of, rows_of, unpacked
from rebalance_core.spark.spark_versions import is_condition
from rebalance_core.spark.stages import UNNAMED, Stage, described
from rebalance_core.storage.place import Location, Place, is_direct, place_of

# Tables that tasks write themselves: only files of successful attempts become part of a table.
#
# A task writes its own files into a hidden folder and reports them to the driver, which moves those
# of successful attempts to their tables. Files of an attempt that was killed or superseded
# therefore never reach a table. Moving is a rename, or a server-side copy in an object store. The
# driver and the executors must share the folder.
Batches = Iterable[pa.RecordBatch]
Work = Callable[[Batches, FactsT, RowsSeen], TableRows]
"""Turns a task's rows into rows of tables; the facts and the number of rows read are complete once
these are made.
"""


def merged(kind: Callable[[], FactsT], parts: Iterable[FactsT]) -> FactsT:
    """Return the facts of all tasks."""
    whole = kind()
    for part in parts:
        whole.merge(part)
    return whole


_MOVES_AT_ONCE = 8

_OF_TABLES = "ARRAY<STRUCT<name: STRING, rows: BIGINT, hashes: STRING>>"
"""The digests of an attempt's tables; sums of hashes exceed 64 bits."""
_FILES_DDL = f"attempt STRING, rows_in BIGINT, rows_out BIGINT, tables {_OF_TABLES}, facts BINARY"
_DIGEST = pa.struct([("name", pa.string()), ("rows", pa.int64()), ("hashes", pa.string())])
_FILES_SCHEMA = (
    arrow_schema_of("attempt STRING, rows_in BIGINT, rows_out BIGINT")
    .append(pa.field("tables", pa.list_(_DIGEST)))
    .append(pa.field("facts", pa.binary()))
)
# Facts are pickled, as the values of an accumulator would be. Spark Connect has no accumulators,
# and a task that runs twice adds to them twice.


def one_attempt(
    folder: Place,
    tables: Sequence[str],
    rows: Iterable[tuple[str, pa.RecordBatch]],
    facts: object = None,
    seen: RowsSeen | None = None,
) -> Iterator[pa.RecordBatch]:
    """Write the rows, each with the name of its table, and return one row about the written files.

    Args:
        folder: For the files of attempts.
        tables: Those that may occur.
        rows: The rows to write.
        facts: For the driver; pickled after all rows are written.
        seen: Counts the rows.
    """
    attempt, seen = uuid.uuid4().hex, seen or RowsSeen()
    with TableWriters(folder / attempt, tuple(tables)) as writers:
        for name, batch in seen.made(rows):
            writers.write(name, batch)
    digests = [
        {"name": name, "rows": digest.rows, "hashes": str(digest.total)}
        for name, digest in writers.digests().items()
    ]
    counts = (seen.rows_in, seen.rows_out)
    yield one_row(_FILES_SCHEMA, attempt, *counts, digests, pickle.dumps(facts))


class TaskFiles:
    """The folder in which tasks write tables; a context manager, which leaves no stray files.

    Args:
        folder: The same for every executor.
        tables: Their names.

    Raises:
        OutputExists: One of the tables already exists.
    """

    def __init__(self, folder: Location, tables: Sequence[str]) -> None:
        self._folder = place_of(folder)
        existing = [name for name in self._folder.names() if name in tables]
        if existing:
            taken = self._folder / existing[0]
            raise OutputExists(f"{taken} exists already; write to a new folder")
        self._digests = {name: TableDigest(ALL_TABLES[name]) for name in tables}
        self._files = dict.fromkeys(tables, 0)

    @property
    def attempts(self) -> Place:
        """The folder for the files of tasks."""
        return self._folder / ATTEMPTS

    def make(
        self,
        rows: DataFrame,
        work: Work[FactsT],
        kind: Callable[[], FactsT],
        tables: Sequence[str],
        stage: Stage = UNNAMED,
    ) -> FactsT:
        """Make the tables in files of the tasks, as in `TaskTables`."""
        folder, names = self.attempts, tuple(tables)

        def attempt(batches: Batches) -> Iterator[pa.RecordBatch]:
            facts, seen = kind(), RowsSeen()
            yield from one_attempt(folder, names, work(batches, facts, seen), facts, seen)

        stage = stage.writing(names)
        with described(rows.sparkSession, stage.what):
            return merged(kind, self.write(rows, attempt, stage))

    def write(
        self,
        rows: DataFrame,
        attempt: Callable[[Batches], Iterator[pa.RecordBatch]],
        stage: Stage = UNNAMED,
    ) -> list[Any]:
        """Collect the files of attempts (`one_attempt`) in one Spark job, and return each task's
        facts.

        Raises:
            UsageError: The executors do not share the folder with the driver.
        """
        attempts = rows_of(stage.observed(rows.mapInArrow(in_tasks(attempt), _FILES_DDL)))
        stage.count(attempts)
        return self._took(attempts)

    def add(self, table: str, rows: pa.Table) -> None:
        """Write rows of a table from the driver."""
        batches = ((table, batch) for batch in rows.to_batches())
        for attempt in one_attempt(self.attempts, [table], batches):
            self._took(attempt.to_pylist())

    def finish(self) -> dict[str, TableWritten]:
        """Write a file for every table without rows; return the row count and digest of each."""
        empty = self.attempts / "empty"
        without = tuple(name for name, files in self._files.items() if not files)
        with TableWriters(empty, without):
            pass
        self._take([(empty / name / FILE_NAME, name) for name in without])
        return {name: digest.result for name, digest in self._digests.items()}

    def _took(self, attempts: Iterable[Mapping[str, Any]]) -> list[Any]:
        """Accept the files of attempts, and return the facts of each."""
        facts, written = [], []
        for row in attempts:
            facts.append(pickle.loads(row["facts"]))
            for made in row["tables"]:
                name, count, hashes = made["name"], made["rows"], int(made["hashes"])
                if count:
                    written.append((self.attempts / row["attempt"] / name / FILE_NAME, name))
                self._digests[name].merge(TableDigest(ALL_TABLES[name], count, hashes))
        self._take(written)
        return facts

    def _take(self, written: Iterable[tuple[Place, str]]) -> None:
        """Move files to their tables, several in parallel, because a store takes a moment for
        each.
        """
        moves = []
        for file, table in written:
            target = self._folder / table
            if not self._files[table]:
                target.make_folder()
            moves.append((file, target / _numbered(self._files[table])))
            self._files[table] += 1
        try:
            with ThreadPoolExecutor(_MOVES_AT_ONCE) as pool:
                list(pool.map(lambda move: move[0].move_to(move[1]), moves))
        except FileNotFoundError as error:
            raise UsageError(
                f"the executors wrote to {self._folder} on their own hosts: {SHARE_IT}"
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        with suppress(OSError):  # readers skip it, and the next run removes it
            self.attempts.delete()


def _numbered(file: int) -> str:
    return FILE_NAME.replace("00000", f"{file:05}")


# Several tables made in one pass, in files of the tasks or through Spark's writer.
#
# Tasks write files if they and the driver can reach the folder without Spark. Otherwise their rows
# are kept in packed form, and Spark's writer writes each table.
_FACTS = "_note"
_DDL = "name STRING, rows_in BIGINT, rows_out BIGINT, chunk BINARY"
_SCHEMA = arrow_schema_of(_DDL)


class TaskTables(Protocol):
    """A folder that receives tables, each from one pass or from the driver."""

    def make(
        self,
        rows: DataFrame,
        work: Work[FactsT],
        kind: Callable[[], FactsT],
        tables: Sequence[str],
        stage: Stage = UNNAMED,
    ) -> FactsT:
        """Write some of the tables that the work makes from the rows; return the facts of all
        tasks.

        Args:
            rows: The tasks' input.
            work: Makes the tables from it.
            kind: Makes empty facts.
            tables: The tables to write.
            stage: Its name, and the receiver of its row counts.
        """

    def add(self, table: str, rows: pa.Table) -> None:
        """Write one table from the driver."""

    def finish(self) -> dict[str, TableWritten]:
        """Return the row count and digest of every table, once all are in the folder."""


@contextmanager
def task_tables(session: SparkSession, folder: str, tables: Sequence[str]) -> Iterator[TaskTables]:
    """Yield the tables of a folder.

    Args:
        session: Any session.
        folder: Path or URI.
        tables: Their names; none may exist yet.

    Raises:
        OutputExists: One of the tables already exists.
    """
    if not is_direct(folder):
        yield _ThroughSpark(session, folder, tables)
        return
    with TaskFiles(folder, tables) as files:
        yield files


def make_unwritten(
    rows: DataFrame, work: Work[FactsT], kind: Callable[[], FactsT], stage: Stage = UNNAMED
) -> FactsT:
    """Return the facts of all tasks, without writing their rows anywhere."""

    def run(batches: Batches) -> Iterator[pa.RecordBatch]:
        facts, seen = kind(), RowsSeen()
        for _ in seen.made(work(batches, facts, seen)):
            pass
        yield _facts_row(facts, seen)

    with described(rows.sparkSession, stage.what):
        return merged(kind, _facts_of(rows.mapInArrow(in_tasks(run), _DDL), stage))


def _facts_row(facts: object, seen: RowsSeen) -> pa.RecordBatch:
    return one_row(_SCHEMA, _FACTS, seen.rows_in, seen.rows_out, pickle.dumps(facts))


def _facts_of(chunks: DataFrame, stage: Stage) -> list[Any]:
    found = rows_of(stage.observed(chunks.where(sf.col("name") == _FACTS)))
    stage.count(found)
    return [pickle.loads(row["chunk"]) for row in found]


@dataclass(frozen=True, eq=False)
class KeptTables(Generic[FactsT]):
    """Tables that tasks make but do not write; lazy, and kept once made. See `kept_tables`.

    Attributes:
        chunks: Each row has some rows of a table in packed form, or the facts of a task.
        kind: Makes empty facts.
        tables: Those that may occur.
        stage: Its name, and the receiver of its row counts.
    """

    chunks: DataFrame
    kind: Callable[[], FactsT]
    tables: Mapping[str, Table]
    stage: Stage = UNNAMED

    def facts(self) -> FactsT:
        """Return the facts of all tasks."""
        with described(self.chunks.sparkSession, self.stage.what):
            return merged(self.kind, _facts_of(self.chunks, self.stage))

    def rows(self, table: str) -> DataFrame:
        """Return the rows of one table."""
        chunks = self.chunks.where(sf.col("name") == table).select("chunk")
        return chunks.mapInArrow(unpacked, self.tables[table].plain_ddl)

    def write(self, into: TaskTables, tables: Sequence[str]) -> None:
        """Write some of the tables."""
        into.make(self.chunks, _again, _Digests, tables, Stage("kept rows", self.stage.done))

    def close(self) -> None:
        """Release the rows."""
        self.chunks.unpersist()


def kept_tables(
    rows: DataFrame,
    work: Work[FactsT],
    kind: Callable[[], FactsT],
    tables: Mapping[str, Table] = ALL_TABLES,
    stage: Stage = UNNAMED,
) -> KeptTables[FactsT]:
    """Return the tables that tasks make from rows, kept until closed; ``kind`` makes empty
    facts.
    """

    def run(batches: Batches) -> Iterator[pa.RecordBatch]:
        facts, seen = kind(), RowsSeen()
        for table, batch in seen.made(work(batches, facts, seen)):
            # the file writer takes encoded names, but Spark takes plain ones
            plain = pa.Table.from_batches([batch]).cast(tables[table].arrow_schema())
            yield one_row(_SCHEMA, table, None, None, pack(plain))
        yield _facts_row(facts, seen)

    return KeptTables(rows.mapInArrow(in_tasks(run), _DDL).persist(), kind, tables, stage)


class _Digests:
    """The facts of a task, and the digests of the tables that it made."""

    def __init__(self, facts: Any = None, tables: Iterable[str] = ()) -> None:
        self.facts = facts
        self.tables = {name: TableDigest(ALL_TABLES[name]) for name in tables}

    @classmethod
    def of(cls, kind: Callable[[], Any], tables: Iterable[str]) -> Self:
        """Return empty facts of a kind, and empty digests."""
        return cls(kind(), tables)

    def merge(self, other: _Digests) -> None:
        """Add the facts and digests of another task."""
        if self.facts is not None:
            self.facts.merge(other.facts)
        for name, digest in other.tables.items():
            self.tables[name].merge(digest)


class _ThroughSpark:
    """`TaskTables` through Spark's writer."""

    def __init__(self, session: SparkSession, folder: str, tables: Sequence[str]) -> None:
        self._session = session
        self._folder = folder.rstrip("/")
        self._digests = {name: TableDigest(ALL_TABLES[name]) for name in tables}
        self._written: set[str] = set()

    def make(
        self,
        rows: DataFrame,
        work: Work[FactsT],
        kind: Callable[[], FactsT],
        tables: Sequence[str],
        stage: Stage = UNNAMED,
    ) -> FactsT:
        names = tuple(tables)

        def digested(batches: Batches, digests: _Digests, seen: RowsSeen) -> TableRows:
            for name, batch in work(batches, digests.facts, seen):
                digests.tables[name].add(batch)
                yield name, batch

        new = partial(_Digests.of, kind, names)
        with closing(kept_tables(rows, digested, new, stage=stage)) as kept:
            made = kept.facts()
            for table in tables:
                self._write(table, kept.rows(table))
        for table in tables:
            self._digests[table].merge(made.tables[table])
        facts: FactsT = made.facts
        return facts

    def add(self, table: str, rows: pa.Table) -> None:
        self._write(table, frame_of(self._session, rows, ALL_TABLES[table].plain_ddl))
        self._digests[table].add(rows)

    def finish(self) -> dict[str, TableWritten]:
        for name in self._digests.keys() - self._written:
            self.add(name, ALL_TABLES[name].arrow_schema().empty_table())
        return {name: digest.result for name, digest in self._digests.items()}

    def _write(self, table: str, rows: DataFrame) -> None:
        self._written.add(table)
        target = f"{self._folder}/{table}"
        try:
            with described(self._session, "write", [table]):
                rows.write.mode("errorifexists").parquet(target)
        except AnalysisException as error:
            if is_condition(error, "PATH_ALREADY_EXISTS"):
                raise OutputExists(f"{target} exists already; write to a new folder") from error
            raise


def _again(batches: Batches, facts: TaskFacts, seen: RowsSeen) -> TableRows:
    """Yield the rows of `KeptTables` again, as `Work`."""
    for row in (row for batch in batches for row in batch.to_pylist()):
        if row["name"] != _FACTS:
            rows = unpack(row["chunk"])
            seen.rows_in += len(rows)
            yield from ((row["name"], made) for made in rows.to_batches())

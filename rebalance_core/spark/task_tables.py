"""Several tables made in one pass: in files that tasks write themselves, or through Spark's
writer.
"""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Protocol, Self

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from rebalance_core.checks.digest import TableDigest, TableWritten
from rebalance_core.checks.packed_rows import pack, unpack
from rebalance_core.contracts import ALL_TABLES, Table
from rebalance_core.contracts.paths import ATTEMPTS
from rebalance_core.engine.table_writer import FILE_NAME, TableWriters, batches_of_file
from rebalance_core.model.errors import OutputExists, UsageError
from rebalance_core.spark.sources import read_written, rows_of
from rebalance_core.storage.place import Location, Place, is_here, place_of

# Tables that tasks write themselves: only files of attempts that succeeded become a table's.
#
# A task writes files of its own into a hidden folder and names them to the driver, which moves
# those of the attempts that succeeded to their tables: what an attempt leaves behind that was
# killed, or lost to another one, never is in a table. Moving is a rename, and in an object store
# a copy on its side. The folder must be one that driver and executors share.

Batches = Iterable[pa.RecordBatch]
Task = Callable[[Batches], Iterator[pa.RecordBatch]]
"""What writes its rows and yields the one row of `one_attempt`."""

_MOVES_AT_ONCE = 8

_FILES_SCHEMA = pa.schema(
    [("attempt", pa.string()), ("digests", pa.binary()), ("note", pa.binary())]
)
_FILES_DDL = "attempt STRING, digests BINARY, note BINARY"


def one_attempt(
    folder: Place,
    tables: Sequence[str],
    rows: Iterable[tuple[str, pa.RecordBatch]],
    note: object = None,
) -> Iterator[pa.RecordBatch]:
    """Write the rows, each with the name of its table; one row that says what was written.

    Args:
        folder: For the files of attempts.
        tables: Which may occur.
        rows: What is written.
        note: For the driver; pickled when all is written.
    """
    attempt = uuid.uuid4().hex
    with TableWriters(folder / attempt, tuple(tables)) as writers:
        for name, batch in rows:
            writers.write(name, batch)
    row = [attempt], [pickle.dumps(writers.digests())], [pickle.dumps(note)]
    yield pa.RecordBatch.from_arrays(list(map(pa.array, row)), schema=_FILES_SCHEMA)


class TaskFiles:
    """The folder in which tasks write tables; a context manager, which leaves no stray file.

    Args:
        folder: The same to every executor.
        tables: Their names.

    Raises:
        OutputExists: One of the tables is there already.
    """

    def __init__(self, folder: Location, tables: Sequence[str]) -> None:
        self._folder = place_of(folder)
        there = [name for name in self._folder.names() if name in tables]
        if there:
            taken = self._folder / there[0]
            raise OutputExists(f"{taken} exists already; write into a fresh folder")
        self._digests = {name: TableDigest(ALL_TABLES[name]) for name in tables}
        self._files = dict.fromkeys(tables, 0)

    @property
    def attempts(self) -> Place:
        """The folder for the files of tasks."""
        return self._folder / ATTEMPTS

    def write(self, rows: DataFrame, task: Task) -> list[Any]:
        """Run a task over the rows, and take what it wrote; one Spark job. The notes of all tasks.

        Raises:
            UsageError: The executors do not share the folder with the driver.
        """

        def body(batches: Batches) -> Iterator[pa.RecordBatch]:
            yield from task(batches)

        return self._took(rows_of(rows.mapInArrow(body, _FILES_DDL)))

    def add(self, table: str, rows: pa.Table) -> None:
        """Write rows of a table from here."""
        batches = ((table, batch) for batch in rows.to_batches())
        for attempt in one_attempt(self.attempts, [table], batches):
            self._took(attempt.to_pylist())

    def files_of(self, table: str) -> list[Place]:
        """The files of a table that are in its place."""
        return [self._folder / table / _numbered(n) for n in range(self._files[table])]

    def close(self) -> dict[str, TableWritten]:
        """Give every table that has no row a file; rows and digest of each."""
        empty = self.attempts / "empty"
        without = tuple(name for name, files in self._files.items() if not files)
        with TableWriters(empty, without):
            pass
        self._take([(empty / name / FILE_NAME, name) for name in without])
        return {name: digest.result for name, digest in self._digests.items()}

    def _took(self, attempts: Iterable[Mapping[str, Any]]) -> list[Any]:
        """Take what attempts wrote; their notes."""
        notes, written = [], []
        for row in attempts:
            notes.append(pickle.loads(row["note"]))
            for name, digest in pickle.loads(row["digests"]).items():
                if digest.rows:
                    written.append((self.attempts / row["attempt"] / name / FILE_NAME, name))
                self._digests[name].merge(digest)
        self._take(written)
        return notes

    def _take(self, written: Iterable[tuple[Place, str]]) -> None:
        """Move files to their tables, several at once: a store needs a moment for each."""
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
                f"the executors wrote to {self._folder} on hosts of their own; name an --output "
                "that all of them and the driver share"
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        with suppress(OSError):  # no reader looks there, and the next run clears it
            self.attempts.delete()


def _numbered(file: int) -> str:
    return FILE_NAME.replace("00000", f"{file:05}")


# Several tables made in one pass: in files of the tasks, or through Spark's writer.
#
# Tasks write files where they and the driver reach the folder without Spark. Elsewhere their rows
# are kept, packed, and each table goes through Spark's writer.

TableRows = Iterable[tuple[str, pa.RecordBatch]]
"""Rows of tables, each with the table's name."""
Work = Callable[[Batches], tuple[TableRows, object]]
"""From a task's rows to those of tables, and a note that is complete once these are made."""

_NOTE = "_note"
_DDL = "name STRING, chunk BINARY"
_SCHEMA = pa.schema([("name", pa.string()), ("chunk", pa.binary())])


class TaskTables(Protocol):
    """A folder that gets tables, each from one pass or from the driver."""

    def make(self, rows: DataFrame, work: Work, tables: Sequence[str]) -> list[Any]:
        """Write some of the tables; the notes of all tasks."""

    def add(self, table: str, rows: pa.Table) -> None:
        """Write one table from here."""

    def rows_of(self, table: str) -> pa.Table:
        """A table that was written, its rows in any order."""

    def finish(self) -> dict[str, TableWritten]:
        """Rows and digest of every table; all are in the folder then."""


@contextmanager
def task_tables(session: SparkSession, folder: str, tables: Sequence[str]) -> Iterator[TaskTables]:
    """The tables of a folder.

    Args:
        session: Any session.
        folder: Path or URI.
        tables: Their names; none may be there.

    Raises:
        OutputExists: One of the tables is there already.
    """
    if not is_here(folder):
        yield _ThroughSpark(session, folder, tables)
        return
    with TaskFiles(folder, tables) as files:
        yield _FilesOfTasks(files)


def make_unwritten(rows: DataFrame, work: Work) -> list[Any]:
    """The notes of all tasks; the rows that they make are written nowhere."""

    def run(batches: Batches) -> Iterator[pa.RecordBatch]:
        made, note = work(batches)
        for _ in made:
            pass
        yield _chunk(_NOTE, pickle.dumps(note))

    return [pickle.loads(row["chunk"]) for row in rows_of(rows.mapInArrow(run, _DDL))]


@dataclass(frozen=True, eq=False)
class KeptTables:
    """Tables that tasks make and do not write; lazy, and kept once made. See `kept_tables`.

    Attributes:
        chunks: A row for some rows of a table each, packed, and one for each note.
        tables: Those that may occur.
    """

    chunks: DataFrame
    tables: Mapping[str, Table]

    def notes(self) -> list[Any]:
        """The notes of all tasks."""
        return [
            pickle.loads(row["chunk"])
            for row in rows_of(self.chunks.where(sf.col("name") == _NOTE))
        ]

    def rows(self, table: str) -> DataFrame:
        """The rows of one table."""
        chunks = self.chunks.where(sf.col("name") == table)
        return chunks.mapInArrow(_unpacked, self.tables[table].plain_ddl)

    def write(self, into: TaskTables, tables: Sequence[str]) -> None:
        """Write some of the tables."""
        into.make(self.chunks, _again, tables)

    def close(self) -> None:
        """Release the rows."""
        self.chunks.unpersist()


def kept_tables(
    rows: DataFrame, work: Work, tables: Mapping[str, Table] = ALL_TABLES
) -> KeptTables:
    """The tables that tasks make of rows, kept until closed."""
    return KeptTables(rows.mapInArrow(_packed(work, tables), _DDL).persist(), tables)


class _FilesOfTasks:
    """`TaskTables` in files of the tasks."""

    def __init__(self, files: TaskFiles) -> None:
        self._files = files

    def make(self, rows: DataFrame, work: Work, tables: Sequence[str]) -> list[Any]:
        folder, names = self._files.attempts, tuple(tables)

        def attempt(batches: Batches) -> Iterator[pa.RecordBatch]:
            return one_attempt(folder, names, *work(batches))

        return self._files.write(rows, attempt)

    def add(self, table: str, rows: pa.Table) -> None:
        self._files.add(table, rows)

    def rows_of(self, table: str) -> pa.Table:
        schema = ALL_TABLES[table].arrow_schema()
        files = self._files.files_of(table)
        batches = [batch for file in files for batch in batches_of_file(file, schema)]
        return pa.Table.from_batches(batches, schema)

    def finish(self) -> dict[str, TableWritten]:
        return self._files.close()


class _ThroughSpark:
    """`TaskTables` by Spark's writer."""

    def __init__(self, session: SparkSession, folder: str, tables: Sequence[str]) -> None:
        self._session = session
        self._folder = folder.rstrip("/")
        self._digests = {name: TableDigest(ALL_TABLES[name]) for name in tables}

    def make(self, rows: DataFrame, work: Work, tables: Sequence[str]) -> list[Any]:
        with closing(kept_tables(rows, _digested(work, tuple(tables)))) as kept:
            for table in tables:
                self._write(table, kept.rows(table))
            notes = kept.notes()
        for _, digests in notes:
            for table in tables:
                self._digests[table].merge(digests[table])
        return [note for note, _ in notes]

    def add(self, table: str, rows: pa.Table) -> None:
        self._write(table, self._session.createDataFrame(rows, ALL_TABLES[table].plain_ddl))
        self._digests[table].add(rows)

    def rows_of(self, table: str) -> pa.Table:
        rows = read_written(self._session, self._folder, table).toArrow()
        return rows.cast(ALL_TABLES[table].arrow_schema())

    def finish(self) -> dict[str, TableWritten]:
        return {name: digest.result for name, digest in self._digests.items()}

    def _write(self, table: str, rows: DataFrame) -> None:
        target = f"{self._folder}/{table}"
        try:
            rows.write.mode("errorifexists").parquet(target)
        except AnalysisException as error:
            if error.getCondition() == "PATH_ALREADY_EXISTS":
                raise OutputExists(f"{target} exists already; write into a fresh folder") from error
            raise


def _digested(work: Work, tables: Sequence[str]) -> Work:
    """The same work; its note comes with the digest of each table."""

    def run(batches: Batches) -> tuple[TableRows, tuple[object, dict[str, TableDigest]]]:
        rows, note = work(batches)
        digests = {name: TableDigest(ALL_TABLES[name]) for name in tables}

        def added() -> Iterator[tuple[str, pa.RecordBatch]]:
            for name, batch in rows:
                digests[name].add(batch)
                yield name, batch

        return added(), (note, digests)

    return run


def _packed(
    work: Work, tables: Mapping[str, Table]
) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    def run(batches: Batches) -> Iterator[pa.RecordBatch]:
        rows, note = work(batches)
        for table, batch in rows:
            # the writer of files takes coded names, Spark plain ones
            plain = pa.Table.from_batches([batch]).cast(tables[table].arrow_schema())
            yield _chunk(table, pack(plain))
        yield _chunk(_NOTE, pickle.dumps(note))

    return run


def _unpacked(batches: Batches) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for chunk in batch["chunk"]:
            yield from unpack(chunk.as_buffer()).to_batches()


def _again(batches: Batches) -> tuple[TableRows, None]:
    """`Work` over the rows of `KeptTables`."""
    chunks = (row for batch in batches for row in batch.to_pylist() if row["name"] != _NOTE)
    return (
        (row["name"], made) for row in chunks for made in unpack(row["chunk"]).to_batches()
    ), None


def _chunk(name: str, chunk: bytes) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([name]), pa.array([chunk])], schema=_SCHEMA)

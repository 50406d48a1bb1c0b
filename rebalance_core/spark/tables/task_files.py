"""Tables that tasks write themselves: only files of attempts that succeeded become a table's.

A task writes files of its own into a hidden folder and names them to the driver, which moves those
of the attempts that succeeded to their tables: what an attempt leaves behind that was killed, or
lost to another one, never is in a table. Moving is a rename, and in an object store a copy on its
side. The folder must be one that driver and executors share.
"""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Self

import pyarrow as pa
from pyspark.sql import DataFrame

from rebalance_core.checks.digest import TableDigest, TableWritten
from rebalance_core.contracts import ALL_TABLES
from rebalance_core.contracts.run_record import ATTEMPTS
from rebalance_core.engine.table_writer import FILE_NAME, TableWriters
from rebalance_core.model.errors import OutputExists, UsageError
from rebalance_core.spark.driver_rows import rows_of
from rebalance_core.storage.place import Location, Place, place_of

Batches = Iterable[pa.RecordBatch]
Task = Callable[[Batches], Iterator[pa.RecordBatch]]
"""What writes its rows and yields the one row of `one_attempt`."""

_MOVES_AT_ONCE = 8

_SCHEMA = pa.schema([("attempt", pa.string()), ("digests", pa.binary()), ("note", pa.binary())])
_DDL = "attempt STRING, digests BINARY, note BINARY"


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
    yield pa.RecordBatch.from_arrays(list(map(pa.array, row)), schema=_SCHEMA)


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

        return self._took(rows_of(rows.mapInArrow(body, _DDL)))

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

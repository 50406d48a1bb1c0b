"""One pass that writes every table of the ledger from the tasks.

A task writes files of its own into a hidden folder and names them to the driver, which moves those
of the attempts that succeeded to their tables: what an attempt leaves behind that was killed, or
lost to another one, never is in a table. Moving is a rename, and in an object store a copy on its
side. The folder must be one that driver and executors share.
"""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame

from rebalance_core.checks.digest import TableDigest, TableWritten
from rebalance_core.contracts import ALL_TABLES, LEDGER_TABLES
from rebalance_core.contracts.run_record import ATTEMPTS
from rebalance_core.engine.bucket_pass import Giants, bucket_pass
from rebalance_core.engine.facts import LedgerFacts
from rebalance_core.engine.ledger_pass import Rows
from rebalance_core.engine.options import SimulationOptions
from rebalance_core.engine.prepared import REJECTED
from rebalance_core.engine.table_writer import FILE_NAME, TableWriters
from rebalance_core.kernels.codes.coded_groups import EngineOptions
from rebalance_core.model.errors import OutputExists, UsageError
from rebalance_core.spark.engine.routed_rows import routed_tables
from rebalance_core.storage.locations import Location, place_of
from rebalance_core.storage.place import Place

_SCHEMA = pa.schema([("attempt", pa.string()), ("digests", pa.binary()), ("facts", pa.binary())])
_NO_ROWS = LEDGER_TABLES[REJECTED].arrow_schema().empty_table()
_DDL = "attempt STRING, digests BINARY, facts BINARY"


@dataclass(frozen=True, slots=True)
class LedgerTask:
    """Writes the ledger of one bucket.

    Attributes:
        folder: For the files of attempts.
        giants: The parts of divided groups, by bucket.
        engine: See `EngineOptions`.
        options: Of the simulation.
    """

    folder: Place
    giants: Mapping[int, Giants]
    engine: EngineOptions
    options: SimulationOptions

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One row: name of the attempt's folder, what was written, and its facts."""
        yield from _written(self.folder, self._rows(batches))

    def _rows(self, batches: Iterable[pa.RecordBatch]) -> Rows:
        for bucket, tables in routed_tables(batches):
            for rejected in tables.pop(REJECTED, _NO_ROWS).to_batches():
                yield REJECTED, rejected
            if tables:
                giants = self.giants.get(bucket, {})
                yield from bucket_pass(tables, giants, self.engine, self.options)


@dataclass(frozen=True, slots=True)
class RejectedTask:
    """Writes rows of ``rejected``, as they come."""

    folder: Place

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """As `LedgerTask`."""
        schema = LEDGER_TABLES["rejected"].arrow_schema()
        yield from _written(self.folder, (("rejected", rows.cast(schema)) for rows in batches))


class LedgerFolder:
    """Where the tables of a ledger are written; a context manager, which leaves no stray file.

    Args:
        folder: The same to every executor.

    Raises:
        OutputExists: A table of the ledger is there already.
    """

    def __init__(self, folder: Location) -> None:
        self._folder = place_of(folder)
        there = [name for name in self._folder.names() if name in LEDGER_TABLES]
        if there:
            taken = self._folder / there[0]
            raise OutputExists(f"{taken} exists already; write into a fresh folder")
        self._digests = {name: TableDigest(table) for name, table in LEDGER_TABLES.items()}
        self._files = dict.fromkeys(LEDGER_TABLES, 0)
        self.facts = LedgerFacts()

    @property
    def attempts(self) -> Place:
        """The folder for the files of tasks."""
        return self._folder / ATTEMPTS

    def write(self, rows: DataFrame, task: LedgerTask | RejectedTask) -> None:
        """Run a task over the rows, and take what it wrote; one Spark job.

        Raises:
            UsageError: The executors do not share the folder with the driver.
        """

        def body(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            yield from task(batches)

        for row in rows.mapInArrow(body, _DDL).collect():
            self.facts.merge(pickle.loads(row["facts"]))
            for name, digest in pickle.loads(row["digests"]).items():
                if digest.rows:
                    self._take(self.attempts / row["attempt"] / name / FILE_NAME, name)
                self._digests[name].merge(digest)

    def close(self) -> dict[str, TableWritten]:
        """Give every table that has no row a file; rows and digest of each."""
        empty = self.attempts / "empty"
        without = tuple(name for name, files in self._files.items() if not files)
        with TableWriters(empty, without):
            pass
        for name in without:
            self._take(empty / name / FILE_NAME, name)
        return {name: digest.result for name, digest in self._digests.items()}

    def _take(self, file: Place, table: str) -> None:
        target = self._folder / table
        number = self._files[table]
        if not number:
            target.make_folder()
        try:
            file.move_to(target / FILE_NAME.replace("00000", f"{number:05}"))
        except FileNotFoundError as error:
            raise UsageError(
                f"the executors wrote to {self._folder} on hosts of their own; name an --output "
                "that all of them and the driver share"
            ) from error
        self._files[table] += 1

    def __enter__(self) -> LedgerFolder:
        return self

    def __exit__(self, *error: object) -> None:
        with suppress(OSError):  # no reader looks there, and the next run clears it
            self.attempts.delete()


def _written(folder: Place, rows: Rows) -> Iterator[pa.RecordBatch]:
    attempt = uuid.uuid4().hex
    facts = LedgerFacts()
    with TableWriters(folder / attempt, tuple(LEDGER_TABLES), empty=False) as writers:
        for name, batch in rows:
            facts.add(name, batch)
            if name in ALL_TABLES:
                writers.write(name, batch)
    row = [attempt], [pickle.dumps(writers.digests())], [pickle.dumps(facts)]
    yield pa.RecordBatch.from_arrays(list(map(pa.array, row)), schema=_SCHEMA)

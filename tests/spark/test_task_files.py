"""What tasks write: only files of attempts that succeeded become a table's."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from rebalance_core.contracts import LEDGER_TABLES
from rebalance_core.contracts.run_names import ATTEMPTS
from rebalance_core.engine.table_writer import TableWriters
from rebalance_core.model.errors import OutputExists, UsageError
from rebalance_core.spark.sources import read_written
from rebalance_core.spark.task_tables import TaskFiles, one_attempt
from rebalance_core.storage.place import Place, place_of

TABLES = tuple(LEDGER_TABLES)
REJECTED = LEDGER_TABLES["rejected"]
ROWS = [
    {"table_name": "t", "source": f"f:{n}", "raw": "x", "issues": [{"code": "C", "message": "m"}]}
    for n in range(7)
]


@dataclass(frozen=True)
class RowsTask:
    """Writes the rows of one table, as they come."""

    folder: Place
    table: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """As `one_attempt`."""
        schema = LEDGER_TABLES[self.table].arrow_schema()
        rows = ((self.table, batch.cast(schema)) for batch in batches)
        return one_attempt(self.folder, [self.table], rows)


@pytest.fixture(params=["local", "bucket"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A fresh folder of this machine, or in an object store."""
    above = tmp_path if request.param == "local" else request.getfixturevalue("bucket")
    return place_of(above) / "ledger"


def rows_in(folder: Place, table: str) -> pa.Table:
    place = folder / table
    return ds.dataset(place.path, filesystem=place.file_system, format="parquet").to_table()


def test_every_table_has_a_file_and_the_rows_of_all_tasks(
    spark: SparkSession, folder: Place
) -> None:
    rows = spark.createDataFrame(ROWS, REJECTED.plain_ddl).repartition(3)
    with TaskFiles(folder, TABLES) as ledger:
        ledger.write(rows, RowsTask(ledger.attempts, "rejected"))
        # what an attempt leaves that was killed, or lost to another one
        killed = TableWriters(ledger.attempts / "killed", ("rejected",))
        killed.write("rejected", pa.RecordBatch.from_pylist(ROWS, REJECTED.arrow_schema()))
        written = ledger.finish()
    assert written["rejected"].rows == len(ROWS)
    assert folder.names() == sorted(LEDGER_TABLES)
    for name, table in LEDGER_TABLES.items():
        found = rows_in(folder, name)
        assert found.schema.equals(table.arrow_schema())
        assert found.num_rows == (len(ROWS) if name == "rejected" else 0)
    assert read_written(spark, folder.url, "rejected").count() == len(ROWS)


@dataclass(frozen=True)
class Twice(RowsTask):
    """Two attempts write the same rows, as speculation has it; the first is not heard of."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = list(batches)
        lost = list(RowsTask.__call__(self, rows))
        assert len(lost) == 1
        yield from RowsTask.__call__(self, rows)


def test_attempts_that_are_lost_or_late_leave_no_row(spark: SparkSession, folder: Place) -> None:
    rows = spark.createDataFrame(ROWS, REJECTED.plain_ddl).repartition(2)
    with TaskFiles(folder, TABLES) as ledger:
        ledger.write(rows, Twice(ledger.attempts, "rejected"))
        assert len(ledger.attempts.names()) == 4
        written = ledger.finish()
    late = pa.RecordBatch.from_pylist(ROWS, REJECTED.arrow_schema())
    assert len(list(RowsTask(ledger.attempts, "rejected")([late]))) == 1
    assert written["rejected"].rows == len(ROWS)
    assert rows_in(folder, "rejected").num_rows == len(ROWS)
    assert folder.names() == sorted([ATTEMPTS, *LEDGER_TABLES])


@dataclass(frozen=True)
class Failing(RowsTask):
    """Fails when its rows are written."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        assert len(list(RowsTask.__call__(self, batches))) == 1
        yield from ()
        raise OSError("the disk is full")


def test_a_task_that_fails_leaves_no_file(spark: SparkSession, folder: Place) -> None:
    rows = spark.createDataFrame(ROWS, REJECTED.plain_ddl).repartition(2)
    with (
        pytest.raises(PySparkException, match="the disk is full"),
        TaskFiles(folder, TABLES) as ledger,
    ):
        ledger.write(rows, Failing(ledger.attempts, "rejected"))
    assert [place.url for place in folder.files() if ATTEMPTS not in place.url] == []


def test_a_table_that_is_there_is_not_written_over(folder: Place) -> None:
    (folder / "epochs").make_folder()
    (folder / "epochs" / "part").write_text("")
    with pytest.raises(OutputExists, match="epochs exists already"):
        TaskFiles(folder, TABLES)


def test_executors_with_disks_of_their_own_are_reported(spark: SparkSession, folder: Place) -> None:
    task = RowsTask(folder / ATTEMPTS, "rejected")

    class Elsewhere(RowsTask):
        """Its files are not where the driver looks."""

        def __call__(self, batches: object) -> Iterator[pa.RecordBatch]:
            yield from task(batches)  # type: ignore[arg-type]
            task.folder.delete()

    rows = spark.createDataFrame(ROWS[:1], REJECTED.plain_ddl).coalesce(1)
    with (
        TaskFiles(folder, TABLES) as ledger,
        pytest.raises(UsageError, match="their own hosts"),
    ):
        ledger.write(rows, Elsewhere(task.folder, "rejected"))

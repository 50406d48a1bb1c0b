"""What tasks write: only files of attempts that succeeded become a table's."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from pyspark.sql import SparkSession

from rebalance_core.checks.input_tables import read_input_tables
from rebalance_core.contracts import LEDGER_TABLES
from rebalance_core.contracts.run_record import ATTEMPTS
from rebalance_core.engine.facts import COUNTED, LedgerFacts
from rebalance_core.engine.table_writer import TableWriters
from rebalance_core.model.errors import OutputExists, UsageError
from rebalance_core.process.simulate import simulate
from rebalance_core.spark.engine.summary import facts_of
from rebalance_core.spark.engine.write_pass import LedgerFolder, RejectedTask
from rebalance_core.storage.locations import place_of
from tests.recordings.tables import DATA

REJECTED = LEDGER_TABLES["rejected"]
ROWS = [
    {"table_name": "t", "source": f"f:{n}", "raw": "x", "issues": [{"code": "C", "message": "m"}]}
    for n in range(7)
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "ledger"


def test_every_table_has_a_file_and_the_rows_of_all_tasks(
    spark: SparkSession, folder: Path
) -> None:
    rows = spark.createDataFrame(ROWS, REJECTED.plain_ddl).repartition(3)
    with LedgerFolder(folder) as ledger:
        ledger.write(rows, RejectedTask(ledger.attempts))
        # what an attempt leaves that was killed, or lost to another one
        killed = TableWriters(ledger.attempts / "killed", ("rejected",))
        killed.write("rejected", pa.RecordBatch.from_pylist(ROWS, REJECTED.arrow_schema()))
        written = ledger.close()
    assert written["rejected"].rows == len(ROWS)
    assert ledger.facts.rejected == {"C": len(ROWS)}
    assert sorted(path.name for path in folder.iterdir()) == sorted(LEDGER_TABLES)
    for name, table in LEDGER_TABLES.items():
        found = ds.dataset(folder / name).to_table()
        assert found.schema.equals(table.arrow_schema())
        assert found.num_rows == (len(ROWS) if name == "rejected" else 0)
    assert spark.read.parquet(str(folder / "rejected")).count() == len(ROWS)


def test_a_table_that_is_there_is_not_written_over(folder: Path) -> None:
    (folder / "epochs").mkdir(parents=True)
    with pytest.raises(OutputExists, match="epochs exists already"):
        LedgerFolder(folder)


def test_executors_with_disks_of_their_own_are_told(spark: SparkSession, folder: Path) -> None:
    task = RejectedTask(place_of(folder / ATTEMPTS))

    class Elsewhere(RejectedTask):
        """Its files are not where the driver looks."""

        def __call__(self, batches: object) -> Iterator[pa.RecordBatch]:
            yield from task(batches)  # type: ignore[arg-type]
            task.folder.delete()

    with LedgerFolder(folder) as ledger, pytest.raises(UsageError, match="hosts of their own"):
        ledger.write(spark.createDataFrame(ROWS[:1], REJECTED.plain_ddl), Elsewhere(task.folder))


def test_what_spark_wrote_is_summed_up_as_what_tasks_write(spark: SparkSession) -> None:
    """Epochs of a group lie in several partitions; the last one counts."""
    inputs = read_input_tables(str(DATA / "pathologies" / "tables"))
    ledger = simulate(inputs).tables()
    expected = LedgerFacts()
    for name in COUNTED:
        for batch in ledger[name].combine_chunks().to_batches():
            expected.add(name, batch)
    frames = {
        name: spark.createDataFrame(ledger[name].to_pylist(), LEDGER_TABLES[name].plain_ddl)
        for name in COUNTED
    }
    found = facts_of(frames | {"epochs": frames["epochs"].repartition(3)})
    assert found.totals(20) == expected.totals(20)
    assert found.totals(20)["groups"] > 3
    assert found.rejected == expected.rejected

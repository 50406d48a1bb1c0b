"""Records and torn tables as Spark's readers see them, and through Hadoop."""

import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from rebalance_core.cli.main import main
from rebalance_core.cli.options import JobOptions
from rebalance_core.cli.run.output_run import OutputRun
from rebalance_core.model.errors import InputRefused, OutputExists
from rebalance_core.spark import InputTables
from rebalance_core.spark.hadoop_folder import HadoopPlace
from rebalance_core.storage.run_folder import refuse_changed

TABLES = ("cluster_events", "queue_offsets")


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fleet") / "tables"
    words = ["generate", "--groups", "2", "--output", str(folder), "--run-on", "process"]
    assert main(None, words) == 0
    return folder


@pytest.fixture
def tables(generated: Path, tmp_path: Path) -> Path:
    return shutil.copytree(generated, tmp_path / "tables")


def part(folder: Path) -> Path:
    (file,) = (folder / "queue_offsets").glob("*.parquet")
    return file


def halve(folder: Path) -> None:
    rows = pq.read_table(part(folder))
    pq.write_table(rows.slice(0, len(rows) // 2), part(folder))


def test_a_torn_table_is_refused(spark: SparkSession, tables: Path) -> None:
    assert InputTables.read(spark, str(tables)).queue_offsets is not None
    halve(tables)
    one = str(tables / "queue_offsets")
    for read in (
        lambda: InputTables.read(spark, str(tables)),
        lambda: InputTables.read(spark, tables.as_uri()),
        lambda: InputTables.read(
            spark, cluster_events=str(tables / "cluster_events"), queue_offsets=one
        ),
    ):
        with pytest.raises(InputRefused, match=r"queue_offsets has [\d,]+ rows; [\d,]+ are"):
            read()
    (tables / "_run.json").rename(tables / "_lock.json")
    with pytest.raises(InputRefused, match="a run is writing here or died here"):
        InputTables.read(spark, str(tables))
    (tables / "_lock.json").unlink()
    assert InputTables.read(spark, str(tables)).queue_offsets is not None


def test_rows_are_counted_through_hadoop(spark: SparkSession, tables: Path) -> None:
    folder = HadoopPlace(tables.as_uri(), spark)
    record = json.loads((tables / "_run.json").read_text())
    rows = record["outputs"]["queue_offsets"]["rows"]
    assert (folder / "queue_offsets").parquet_rows() == rows
    assert (folder / "nowhere").parquet_rows() is None
    refuse_changed(folder, TABLES)
    shutil.copy(part(tables), tables / "queue_offsets" / "part-00001.zstd.parquet")
    with pytest.raises(InputRefused, match=f"queue_offsets has {2 * rows:,} rows; {rows:,} are"):
        refuse_changed(folder, TABLES)
    (tables / "queue_offsets" / "part-00001.zstd.parquet").write_text("notes")
    with pytest.raises(InputRefused, match=r"queue_offsets cannot be read: .*part-00001"):
        refuse_changed(folder, TABLES)
    for file in (tables / "queue_offsets").iterdir():
        file.unlink()
    assert (folder / "queue_offsets").parquet_rows() == 0


@pytest.mark.parametrize("name", ["..", "", "a/b"])
def test_a_record_removes_nothing_through_hadoop(
    spark: SparkSession, tables: Path, name: str
) -> None:
    record = json.loads((tables / "_run.json").read_text())
    outputs = {name: {"rows": 0, "digest": "d"}}
    (tables / "_run.json").write_text(json.dumps(record | {"outputs": outputs}))
    before = sorted(tables.parent.rglob("*"))
    folder = HadoopPlace(tables.as_uri(), spark)
    run = OutputRun(folder, "generate", JobOptions(overwrite=True), {}, TABLES, "spark")
    with pytest.raises(OutputExists, match="never overwrites"):
        run.__enter__()
    assert [path for path in sorted(tables.parent.rglob("*")) if path.suffix != ".crc"] == before
    (tables / "_run.json").write_text(json.dumps(record))
    with OutputRun(folder, "generate", JobOptions(overwrite=True), {}, TABLES[:1], "spark") as run:
        run.clear()
        left = {path.name for path in tables.iterdir() if not path.name.startswith(".")}
        assert left == {"_lock.json"}

"""How fast logs are parsed: MB/s per core and kind, against Spark reading the same lines alone."""

import gzip
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from rebalance_core.ingest.collection.assumptions import Assumptions
from rebalance_core.ingest.collection.collected_file import LOGS
from rebalance_core.ingest.collection.collection import open_collection
from rebalance_core.ingest.in_process import reader_of
from rebalance_core.spark.ingest.collection_evidence import (
    Readers,
    collection_evidence,
    read_splits,
)
from tests.recordings.tables import DATA

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MEGABYTES = 64
BATCH_ROWS = 10_000
PLACES = {
    "namesrv_log": "namesrv/namesrv.log",
    "broker_log": "brokers/broker-a/broker.log",
    "lock_log": "brokers/broker-a/filter.log",
    "client_log": "clients/c/rocketmq_client.log",
}
RECORDED = {
    "namesrv_log": "*/collection/namesrv/namesrv.log*",
    "broker_log": "*/collection/brokers/*/broker.log*",
    "lock_log": "*/collection/brokers/*/filter.log*",
    "client_log": "*/collection/clients/*/rocketmq_client.log*",
}


def recorded_lines(kind: str) -> bytes:
    """All lines of that kind that the recordings have."""
    found = b""
    for path in sorted(DATA.glob(RECORDED[kind])):
        data = path.read_bytes()
        found += gzip.decompress(data) if path.suffix == ".gz" else data
    return found


def batches(path: Path) -> Iterator[pa.RecordBatch]:
    """The file as Spark hands it over: line, path, start."""
    lines = path.read_text("utf-8", "replace").split("\n")
    for at in range(0, len(lines), BATCH_ROWS):
        some = lines[at : at + BATCH_ROWS]
        columns = [pa.array(some), pa.array([f"file://{path}"] * len(some)),
                   pa.array([0] * len(some))]  # fmt: skip
        yield pa.RecordBatch.from_arrays(columns, names=["line", "path", "start"])


def seconds(run: Callable[[], object]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


@pytest.mark.parametrize("kind", LOGS)
def test_speed_of_parsing(
    spark: "SparkSession", tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = recorded_lines(kind)
    path = tmp_path / PLACES[kind]
    path.parent.mkdir(parents=True)
    path.write_bytes(lines * (MEGABYTES * 1_000_000 // len(lines) + 1))
    (tmp_path / "collection.toml").write_text('cluster = "C"')
    collection = open_collection(tmp_path)
    (file,) = collection.files
    megabytes = file.size / 1e6
    readers = Readers({str(path): reader_of(collection, file, Assumptions())})
    ready = list(batches(path))
    parsed = 0

    def parse() -> None:
        nonlocal parsed
        parsed = sum(1 for _ in read_splits(iter(ready), readers))

    alone = seconds(parse)
    reading = min(
        seconds(
            lambda: spark.read.text(f"file://{path}").selectExpr("sum(length(value))").collect()
        )
        for _ in range(2)
    )
    job = seconds(lambda: collection_evidence(spark, collection, Assumptions()).count())
    with capsys.disabled():
        print(
            f"\n{kind:<12} {megabytes:5.0f} MB, {parsed:9,} facts: parser {megabytes / alone:6.0f} "
            f"MB/s per core; Spark reads {megabytes / reading:6.0f} MB/s, reads and parses "
            f"{megabytes / job:6.0f} MB/s ({reading / job:.2f} of reading alone)"
        )
    assert parsed > 1_000

"""`python -m tests.bench.passes.log_lines`: how fast each kind of log is parsed, MB/s a core."""

import gzip
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from rebalance_core.cli.run.session import open_session
from rebalance_core.ingest.assumptions import Assumptions
from rebalance_core.ingest.collection import LOGS, open_collection
from rebalance_core.ingest.in_process import reader_of
from rebalance_core.spark.collection_files import FileReaders, collection_evidence, read_splits
from tests.bench.report import Figure, Report, Table, bench_main, say, tidy
from tests.recordings.tables import DATA

ABOUT = """\
The bench repeats the lines of each kind of log in the recordings. They contain far more facts
than the lines of a quiet day."""
BATCH_ROWS = 10_000
PLACES = {
    "namesrv_log": "namesrv/namesrv.log",
    "broker_log": "brokers/broker-a/broker.log",
    "lock_log": "brokers/broker-a/filter.log",
    "pop_log": "brokers/broker-a/pop.log",
    "client_log": "clients/c/rocketmq_client.log",
    "proxy_log": "proxy/p/proxy.log",
}
RECORDED = {
    "namesrv_log": "*/collection/namesrv/namesrv.log*",
    "broker_log": "*/collection/brokers/*/broker.log*",
    "lock_log": "*/collection/brokers/*/filter.log*",
    "pop_log": "*/collection/brokers/*/pop.log*",
    "client_log": "*/collection/clients/*/rocketmq_client.log*",
    "proxy_log": "*/collection/proxy/*/*.log*",
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
        columns = [
            pa.array(some),
            pa.array([f"file://{path}"] * len(some)),
            pa.array([0] * len(some)),
        ]
        yield pa.RecordBatch.from_arrays(columns, names=["line", "path", "start"])


def seconds(run: Callable[[], object]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def log_lines(megabytes: int = 64) -> Report:
    """Measure every kind of log.

    Args:
        megabytes: Of each kind.
    """
    settings = {"spark.ui.enabled": "false"}
    spark = open_session("rebalance bench", master="local[2]", settings=settings)
    rows, figures = [], []
    for kind in LOGS:
        with tempfile.TemporaryDirectory() as folder:
            row, ratio = measured(spark, Path(folder), kind, megabytes)
        say(f"  {kind}: {row}")
        rows.append(row)
        figures.append(Figure(f"{kind}: reading and parsing on Spark / reading alone", ratio))
    spark.stop()
    columns = ("log", "MB", "facts", "parser alone, MB/s", "Spark reads, MB/s",
               "Spark reads and parses, MB/s")  # fmt: skip
    return Report("Lines of logs", ABOUT, tuple(figures), (Table(columns, tuple(rows)),))


def measured(
    spark: SparkSession, folder: Path, kind: str, megabytes: int
) -> tuple[tuple[str | float | int | None, ...], float]:
    """The row of one kind of log, and how much longer reading with parsing takes."""
    lines = recorded_lines(kind)
    path = folder / PLACES[kind]
    path.parent.mkdir(parents=True)
    path.write_bytes(lines * (megabytes * 1_000_000 // len(lines) + 1))
    (folder / "collection.toml").write_text('cluster = "C"')
    collection = open_collection(folder)
    (file,) = collection.files
    size = file.size / 1e6
    readers = FileReaders({str(path): reader_of(collection, file, Assumptions())})
    ready = list(batches(path))
    parsed = 0

    def parse() -> None:
        nonlocal parsed
        parsed = sum(1 for _ in read_splits(iter(ready), readers))

    def read() -> None:
        spark.read.text(f"file://{path}").selectExpr("sum(length(value))").collect()

    alone = seconds(parse)
    assert parsed > len(ready), "next to nothing was parsed"
    reading = min(seconds(read) for _ in range(2))
    job = seconds(lambda: collection_evidence(spark, collection, Assumptions(), 2).count())
    speeds = (tidy(size / taken) for taken in (alone, reading, job))
    return (kind, round(size), parsed, *speeds), tidy(job / reading)


if __name__ == "__main__":
    bench_main(log_lines, __doc__, megabytes=64)

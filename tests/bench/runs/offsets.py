"""`python -m tests.bench.runs.offsets`: groups that are heavy by rows of offsets and commits."""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rebalance_core.contracts import INPUT_TABLES
from tests.bench.histories import CLUSTER, START_MS, STEP_MS, Shape, history, named
from tests.bench.report import Figure, Report, Table, bench_main, say, tidy
from tests.bench.runs.fleets import write_events
from tests.bench.runs.jobs import run_job

ONE = Shape(groups=1, members=20, topics=1, brokers=4, queues=50, epochs=100)
MANY = Shape(groups=500, members=8, topics=1, brokers=4, queues=16, epochs=20)
COMPUTE = Shape(groups=1, members=1_000, topics=1, brokers=10, queues=1_000, epochs=100)
OBSERVED = 1_000
"""How often the ends of each queue of `MANY` are observed."""
WORKER_LIMIT_MIB = 600
ABOUT = """\
One group with many commits; 500 groups on one topic, whose ends were observed 1,000 times; and a
group that is skewed by its cells alone. Asserted: both carriers wrote the same; none rejected."""


def offsets(commits: int = 4_000_000, spark: int = 1) -> Report:
    """Run all three.

    Args:
        commits: Rows of committed_offsets of the first group.
        spark: 0: in a process alone.
    """
    rows, most_of_worker, copied = [], 0.0, 0.0
    carriers = ("process", "spark") if spark else ("process",)
    for name, shape, table, times in (
        ("commits of one group", ONE, "committed_offsets", -(-commits // 200)),
        ("observations of 500 groups' topic", MANY, "queue_offsets", OBSERVED),
        ("cells alone", COMPUTE, None, 0),
    ):
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "input"
            write_events(history(shape), source)
            read = 0
            if table is not None:
                made = rows_of(table, shape, times)
                read = len(made)
                pq.write_table(made, source / f"{table}.parquet", compression="zstd")
            digests = None
            for carrier in carriers:
                output = Path(folder) / carrier
                run = run_job("simulate", output, "--input", str(source), "--run-on", carrier)
                assert run.record["outputs"]["rejected"]["rows"] == 0, "rows were rejected"
                assert digests in (None, run.digests), "the carriers wrote other rows"
                digests, peaks = run.digests, run.cost.peak_mib
                most = max(peaks.get("python", 0), peaks.get("worker", 0))
                say(f"  {name} {carrier}: {run.cost.seconds:.1f} s, {most:.0f} MiB")
                seconds = run.cost.processor_seconds
                if carrier == "spark" and table is not None:
                    most_of_worker = max(most_of_worker, peaks["worker"])
                if carrier == "process" and shape is MANY:
                    copied = seconds
                rows.append((name, carrier, read, run.rows, tidy(seconds), round(most)))
    figures = [Figure("500 groups on one topic in a process", tidy(copied), "s")]
    if spark:
        worker = round(most_of_worker)
        text = "most memory of a Python worker, heavy offsets"
        figures.append(Figure(text, worker, "MiB", target=WORKER_LIMIT_MIB))
    columns = (
        "heavy by",
        "carrier",
        "rows of offsets",
        "rows written",
        "processor s",
        "worker or process, MiB",
    )
    return Report("Heavy offsets", ABOUT, tuple(figures), (Table(columns, tuple(rows)),))


def rows_of(table: str, shape: Shape, times: int) -> pa.Table:
    """Return every queue of a shape's only topic ``times`` times over its history; offsets grow."""
    places = shape.brokers * shape.queues
    turn = np.repeat(np.arange(times), places)
    place = np.tile(np.arange(places), times)
    step = max(1, shape.epochs * STEP_MS // times)
    zeros = np.zeros(len(turn), np.int64)
    columns = {
        "cluster": pa.array([CLUSTER]).take(pa.array(zeros)),
        "consumer_group": named("group", zeros),
        "topic": named("topic", zeros),
        "broker_name": named("broker", place // shape.queues),
        "queue_id": pa.array((place % shape.queues).astype(np.int32)),
        "observed_ms": pa.array(START_MS + 1 + turn * step),
        "committed_offset": pa.array(100 * turn),
        "min_offset": pa.array(zeros),
        "max_offset": pa.array(100 * turn + 50),
    }
    schema = INPUT_TABLES[table].arrow_schema()
    arrays = [columns.get(field.name, pa.nulls(len(turn), field.type)) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


if __name__ == "__main__":
    bench_main(offsets, __doc__, commits=4_000_000, spark=1)

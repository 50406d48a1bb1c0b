"""`python -m tests.bench.runs.fleets`: fleets of many sizes, end to end."""

import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import rebalance_core
from rebalance_core.contracts import SIMULATED_TABLES
from rebalance_core.engine.options import REFERENCE, SimulationOptions
from tests.bench.histories import Shape, history, names
from tests.bench.report import Report, Table, bench_main, say, tidy
from tests.bench.runs.jobs import JobRun, in_order, rows_of_group, run_job

MEMBERS, TOPICS, BROKERS, QUEUES = 8, 2, 2, 4
RETRY_QUEUES = BROKERS
SIZES = ((1, 1), (1, 100), (100, 10), (1_000, 1), (1_000, 10), (1_000, 100), (10_000, 1),
         (10_000, 10), (10_000, 100), (100_000, 1), (100_000, 10), (100_000, 100))  # fmt: skip
ABOUT = """\
Each group has 8 members and 16 queues in 2 topics under AVG, and one member leaves and comes
back. The bench asserts the number of epochs, that `ownership` covers every queue in every epoch
once, that the rows of one group are those of the replay, and that both runtimes write the same
rows."""


def fleets(
    most_rows: int = 4_000_000, spark_from: int = 300_000, spark_to: int = 500_000
) -> Report:
    """Run the sizes that give so many rows, about.

    Args:
        most_rows: In a process.
        spark_from: On Spark, at least.
        spark_to: On Spark, at most.
    """
    rows = []
    for groups, epochs in SIZES:
        shape = Shape(groups, MEMBERS, TOPICS, BROKERS, QUEUES, epochs)
        carriers = ["process"] if _expected_rows(shape) <= most_rows else []
        if spark_from <= _expected_rows(shape) <= spark_to:
            carriers.append("spark")
        if carriers:
            rows += _run(shape, carriers)
    columns = ("groups", "epochs each", "carrier", "rows written", "processor s", "s",
               "µs of processor time a row", "worker or process, MiB", "JVM, MiB")  # fmt: skip
    return Report("Fleets, end to end", ABOUT, tables=(Table(columns, tuple(rows)),))


def _run(shape: Shape, carriers: list[str]) -> list[tuple[str | float | int | None, ...]]:
    rows: list[tuple[str | float | int | None, ...]] = []
    runs: list[JobRun] = []
    with tempfile.TemporaryDirectory() as folder:
        events = history(shape)
        source = Path(folder) / "input"
        write_events(events, source)
        for carrier in carriers:
            output = Path(folder) / carrier
            run = run_job("simulate", output, "--input", str(source), "--run-on", carrier)
            assert run.digests == (runs or [run])[0].digests, "the carriers wrote other rows"
            hold_expected(shape, output, run)
            if not runs:
                hold_replayed(events, output, shape.groups // 2)
            runs.append(run)
            say(f"  {shape.groups:,} x {shape.epochs} {carrier}: {run.cost.seconds:.1f} s")
            peaks = run.cost.peak_mib
            rows.append(
                (
                    shape.groups,
                    shape.epochs,
                    carrier,
                    run.rows,
                    tidy(run.cost.processor_seconds),
                    tidy(run.cost.seconds),
                    tidy(1e6 * run.cost.processor_seconds / run.rows),
                    round(max(peaks.get("python", 0), peaks.get("worker", 0))),
                    round(peaks["jvm"]) if "jvm" in peaks else None,
                )
            )
    return rows


def write_events(events: pa.Table, folder: Path) -> None:
    """As an input folder of ``simulate``."""
    folder.mkdir()
    pq.write_table(events, folder / "cluster_events.parquet", compression="zstd")


def hold_expected(shape: Shape, output: Path, run: JobRun) -> None:
    """Assert what is known of a shape's ledger without computing it.

    Args:
        shape: What was run.
        output: Where the ledger is.
        run: Its record.
    """
    assert run.record["outputs"]["rejected"]["rows"] == 0, "rows were rejected"
    assert run.record["outputs"]["epochs"]["rows"] == shape.groups * shape.epochs
    cells = shape.cells + shape.groups * shape.brokers * shape.epochs  # of retry queues
    covered = 0
    for batch in pq.ParquetDataset(output / "ownership").fragments:
        for rows in batch.to_batches(columns=["from_epoch", "to_epoch", "holders"]):
            to_epoch = pc.fill_null(rows["to_epoch"], shape.epochs)
            covered += pc.sum(pc.subtract(to_epoch, rows["from_epoch"])).as_py() or 0
            assert pc.all(pc.equal(rows["holders"], 1)).as_py() in (True, None)
    assert covered == cells, f"{covered:,} cells are owned, not {cells:,}"


def hold_replayed(events: pa.Table, output: Path, group: int) -> None:
    """Assert that one group's rows are those of the plain replay."""
    (name,) = names("group", [group])
    mine = pc.fill_null(pc.equal(events["consumer_group"], name), True)
    options = SimulationOptions(engine=REFERENCE)
    ledger = rebalance_core.simulate({"cluster_events": events.filter(mine)}, options)
    for table in SIMULATED_TABLES:
        expected = in_order(ledger[table].to_pylist())
        assert rows_of_group(output, table, name) == expected, f"{name} differs in {table}"


def _expected_rows(shape: Shape) -> int:
    """About half of the queues move in every epoch, each with a row of ownership and two diffs."""
    return shape.groups * (TOPICS * BROKERS * QUEUES + RETRY_QUEUES) * (shape.epochs + 1) * 2


if __name__ == "__main__":
    bench_main(fleets, __doc__, most_rows=4_000_000, spark_from=300_000, spark_to=500_000)

"""`python -m tests.bench.passes.steps`: the steps from frame to frame beside the job, in one run.

Both read the same Parquet files and write `epochs`, `ownership`, `diffs` and `pull_starts`; each
step reads what the one before wrote. Processor time of the JVM and its Python workers.
"""

import statistics
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

from rebalance_core.cli.run.session import open_session
from rebalance_core.contracts import LEDGER_TABLES
from rebalance_core.engine.options import SimulationOptions
from rebalance_core.process.generate import generate_and_write
from rebalance_core.process.simulate import simulate_and_write
from rebalance_core.spark import (
    InputTables,
    diffs,
    epochs,
    ownership,
    pull_starts,
    read_events,
)
from rebalance_core.spark.runtime import SparkRuntime
from rebalance_core.synthetic.fleet import FleetPlan
from tests.bench.process_tree import processor_seconds_of_descendants
from tests.bench.report import LESS, Figure, Report, Table, bench_main, say, tidy

STEPS = ("epochs", "ownership", "diffs", "pull_starts")
JOB, OF_STEPS = "simulate, these tables", "the steps, each table written and read"
ABOUT = """\
A generated day to `epochs`, `ownership`, `diffs` and `pull_starts`, in a session that is there.
Asserted: as many rows of each."""


def job(spark: SparkSession, folder: str, output: Path) -> dict[str, int]:
    """Rows by table."""
    options = SimulationOptions(tables=STEPS)
    inputs = InputTables.read(spark, folder)
    written = simulate_and_write(inputs, str(output), options, runtime=SparkRuntime(spark))
    return {name: written.tables[name].rows for name in STEPS}


def steps(spark: SparkSession, folder: str, output: Path) -> dict[str, int]:
    """Rows by table."""
    tables = InputTables.read(spark, folder)
    frame = read_events(spark, folder)
    rows = {}
    for name, step in zip(STEPS, (epochs, ownership, diffs, None), strict=True):
        if step is None:
            made = pull_starts(frame, tables.queue_offsets, tables.committed_offsets)
        else:
            made = step(frame)
        made.write.parquet(str(output / name))
        frame = spark.read.parquet(str(output / name))
        rows[name] = frame.count()
        assert set(LEDGER_TABLES[name].column_names) <= {*frame.columns}
    return rows


def compare(groups: int = 30, rounds: int = 3, seed: int = 1) -> Report:
    """Run both on a generated day.

    Args:
        groups: Of the day.
        rounds: Of both, one after the other, after one that does not count.
        seed: Of the day.
    """
    spark = open_session(
        "rebalance bench",
        master="local[2]",
        settings={"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "8"},
    )
    seconds: dict[str, list[float]] = {JOB: [], OF_STEPS: []}
    with tempfile.TemporaryDirectory() as folder:
        generate_and_write(FleetPlan(groups=groups, days=1, seed=seed), Path(folder) / "day")
        for number in range(-1, rounds):
            found = []
            for name, run in ((JOB, job), (OF_STEPS, steps)):
                begin = processor_seconds_of_descendants()
                output = Path(folder) / f"{name} {number}"
                found.append(run(spark, f"{folder}/day", output))
                taken = processor_seconds_of_descendants() - begin
                say(f"  {name:<40} {taken:8.2f} s")
                if number >= 0:
                    seconds[name].append(taken)
            assert found[0] == found[1]
    spark.stop()
    ratios = [b / a for a, b in zip(seconds[JOB], seconds[OF_STEPS], strict=True)]
    rows = sum(found[0].values())
    return Report(
        "The steps",
        ABOUT,
        (Figure(f"{OF_STEPS} / {JOB}", tidy(statistics.median(ratios)), better=LESS),),
        (
            Table(
                ("contestant", "processor seconds"),
                tuple((name, tidy(statistics.median(taken))) for name, taken in seconds.items()),
                f"{groups:,} groups, {rows:,} rows, {rounds} rounds.",
            ),
        ),
    )


if __name__ == "__main__":
    bench_main(compare, __doc__, groups=30, rounds=3, seed=1)

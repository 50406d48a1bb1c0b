"""`python -m tests.bench.engine`: the engine against what it replaces, in one run.

Ratios hold, seconds do not: every round runs all contestants one after the other, and what is
printed is the median and the range of the ratios of the rounds. All start from the same rows,
fanned out, assigned to tasks and kept in memory (the engine's packed), and end in Spark's noop
sink, which takes a row without looking at it; engine and memory also end as the job does, in
Parquet with count and digest.
"""

import statistics
import tempfile
import time
from dataclasses import dataclass, field
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from rebalance_core.cli.run.session import open_session
from rebalance_core.contracts import LEDGER_TABLES, SIMULATED_TABLES
from rebalance_core.contracts.technical_columns import RAW, SOURCE, TABLE
from rebalance_core.kernels.codes.columns import EVENTS, GROUPS
from rebalance_core.spark.engine.prepared_frames import prepared_rows
from rebalance_core.spark.engine.reference import replayed_tables
from rebalance_core.spark.engine.table_pass import ROWS_PER_BATCH, replayed_groups, table_of
from rebalance_core.spark.engine.work_units import AssignedRows, assign_to_tasks, task_count
from rebalance_core.spark.generate import generate
from rebalance_core.spark.tables.write import row_hash, write_table
from rebalance_core.synthetic.fleet import FleetPlan
from tests.bench.result import arguments_of, say, show
from tests.bench.worker_memory import WorkerMemory
from tests.bench.workloads import OPTIONS, from_memory, per_group, share_of_groups

CONTESTANTS = (
    VECTORIZED,
    FROM_MEMORY,
    WRITTEN,
    FROM_MEMORY_WRITTEN,
    PER_GROUP,
    REFERENCE,
) = (
    "engine",
    "from memory",
    "engine, written",
    "from memory, written",
    "applyInPandas per group",
    "reference (share)",
)
REFERENCE_SHARE = 100
"""The reference replays one group in so many a round; its time is scaled by the rows it gives."""


@dataclass
class Bench:
    """The rows to work on, and the seconds of every contestant in every round."""

    spark: SparkSession
    assigned: AssignedRows
    members: DataFrame
    """The rows of members, not packed."""
    tasks: int
    seconds: dict[str, list[float]] = field(default_factory=dict)

    def run(self, name: str, frame: DataFrame, *, written: bool = False) -> float:
        """Compute every row and throw it away, or write it as the job does."""
        with tempfile.TemporaryDirectory() as folder:
            begin = time.perf_counter()
            if written:
                write_table(frame, folder, "ownership")
            else:
                frame.write.format("noop").mode("overwrite").save()
            taken = time.perf_counter() - begin
        self.seconds.setdefault(name, []).append(taken)
        say(f"  {name:<24} {taken:8.2f} s")
        return taken


def prepare(spark: SparkSession, groups: int, seed: int) -> Bench:
    """A generated day, fanned out and assigned to tasks."""
    day = generate(spark, FleetPlan(groups=groups, days=1, seed=seed)).tables()
    tables = {
        name: frame.withColumn(SOURCE, sf.lit("bench")).withColumn(RAW, sf.lit(""))
        .persist(StorageLevel.MEMORY_AND_DISK)
        for name, frame in day.items()
    }  # fmt: skip
    rows = {name: frame.count() for name, frame in tables.items()}
    tasks = task_count(sum(rows.values()), spark.sparkContext.defaultParallelism)
    assigned = assign_to_tasks(tables, None, tasks, pack=kept_rows)
    everything = assigned.everything.persist(StorageLevel.MEMORY_AND_DISK)
    assigned = AssignedRows(assigned.members, everything)
    fanned = assigned.everything.groupBy(TABLE).count().collect()
    rows_of_members = assigned.everything.where(sf.col(TABLE).isin(EVENTS, GROUPS)).persist()
    rows_of_members.count()
    begin = time.perf_counter()
    assigned.members.count()
    say(f"fanned out, assigned and packed in {time.perf_counter() - begin:.1f} s")
    say(f"input rows {rows}, fanned out {dict(sorted(map(tuple, fanned)))}, {tasks} tasks")
    return Bench(spark, assigned, rows_of_members, tasks)


def kept_rows(rows: DataFrame) -> DataFrame:
    """Members as the engine keeps them."""
    return prepared_rows(rows, OPTIONS)


def fingerprint(frame: DataFrame, table: str = "ownership") -> tuple[int, int]:
    """Rows and the order-free sum of their hashes."""
    total = sf.sum(row_hash(LEDGER_TABLES[table]).cast("DECIMAL(20, 0)"))
    row = frame.agg(sf.count(sf.lit(1)), total).first()
    assert row is not None
    return row[0], int(row[1] or 0)


def compare(bench: Bench, rounds: int) -> dict[str, Any]:
    """Time the contestants and check, in the first round, that they give the same rows."""
    ours = table_of("ownership", bench.assigned, OPTIONS)
    expected = fingerprint(ours)
    sample = ours.limit(ROWS_PER_BATCH).toArrow().combine_chunks().to_batches()[0]
    memory = from_memory(bench.spark, sample, expected[0], bench.tasks)
    assert memory.count() == expected[0]
    alone = per_group(bench.members)
    say("not counted: the first run of a plan, which the JVM has yet to compile")
    yields = (
        (VECTORIZED, ours, False),
        (FROM_MEMORY, memory, False),
        (WRITTEN, ours, True),
        (FROM_MEMORY_WRITTEN, memory, True),
    )
    for name, frame, written in yields:
        bench.run(name, frame, written=written)
    bench.seconds.clear()
    rows_of_shares = []
    for number in range(rounds):
        say(f"round {number + 1} of {rounds}: {expected[0]:,} rows of ownership")
        for name, frame, written in yields:
            bench.run(name, frame, written=written)
        bench.run(PER_GROUP, alone)
        rows_of_shares.append(run_reference(bench, number))
        if number == 0:
            assert fingerprint(alone) == expected, "applyInPandas gives other rows"
    return {"rows": expected[0], "digest": str(expected[1]), "rows of the shares": rows_of_shares}


def run_reference(bench: Bench, number: int) -> int:
    """Time the replay of one share of the groups, and check its rows; gives how many.

    Every round has a share of its own, as the replay keeps what it has computed.
    """
    share = share_of_groups(bench.assigned.everything, REFERENCE_SHARE, number)
    members = kept_rows(share_of_groups(bench.members, REFERENCE_SHARE, number))
    replayed = replayed_tables(share, OPTIONS)[1]["ownership"]
    bench.run(REFERENCE, replayed)
    found = fingerprint(replayed)
    ours = fingerprint(table_of("ownership", AssignedRows(members, share), OPTIONS))
    assert found == ours, "the reference gives other rows"
    return found[0]


def all_tables(bench: Bench) -> dict[str, dict[str, float]]:
    """Rows and seconds of one pass for each table."""
    result = {}
    for table in SIMULATED_TABLES:
        frame = table_of(table, bench.assigned, OPTIONS)
        seconds = bench.run(table, frame)
        result[table] = {"rows": frame.count(), "seconds": round(seconds, 2)}
    return result


def ratios(bench: Bench, facts: dict[str, Any]) -> dict[str, list[float]]:
    """Minimum, median and maximum over the rounds; above 1 the engine is the faster one."""
    seconds, shares = bench.seconds, facts["rows of the shares"]
    pairs = {
        "applyInPandas per group / engine": (seconds[PER_GROUP], seconds[VECTORIZED]),
        "reference, scaled / engine": (
            [s * facts["rows"] / n for s, n in zip(seconds[REFERENCE], shares, strict=True)],
            seconds[VECTORIZED],
        ),
        "from memory / engine": (seconds[FROM_MEMORY], seconds[VECTORIZED]),
        "from memory / engine, written": (seconds[FROM_MEMORY_WRITTEN], seconds[WRITTEN]),
    }
    return {
        name: [round(f([a / b for a, b in zip(theirs, ours, strict=True)]), 2)
               for f in (min, statistics.median, max)]
        for name, (theirs, ours) in pairs.items()
    }  # fmt: skip


def main() -> None:
    """Run the benchmark; JSON on stdout, and into a file if one is named."""
    arguments = arguments_of(__doc__, groups=10_000, rounds=3, seed=1)
    settings = {"spark.ui.enabled": "false", "spark.driver.memory": "6g"}
    spark = open_session("rebalance bench", master="local[2]", settings=settings)
    bench = prepare(spark, arguments.groups, arguments.seed)
    with WorkerMemory() as workers:
        tables = all_tables(bench)
    facts = compare(bench, arguments.rounds)
    left = {r["reason"]: r["count"] for r in replayed_groups(bench.assigned, OPTIONS)
            .groupBy("reason").count().collect()}  # fmt: skip
    result = {
        "groups": arguments.groups, "seed": arguments.seed, "tasks": bench.tasks,
        **facts, "ratios [min, median, max]": ratios(bench, facts), "tables": tables,
        "peak MiB of a Python worker": round(workers.peak_mib),
        "groups on the replay path": left,
        "seconds": {n: [round(s, 2) for s in bench.seconds[n]] for n in CONTESTANTS},
    }  # fmt: skip
    show(result, arguments.out)


if __name__ == "__main__":
    main()

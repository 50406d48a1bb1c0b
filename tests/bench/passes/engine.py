"""`python -m tests.bench.passes.engine`: the engine against what it replaces, in one run.

Ratios hold, seconds do not: every round runs all contestants one after the other, and what is
printed is the median and the range of the ratios of the rounds. All start from the same rows,
fanned out, assigned to tasks and kept in memory (the engine's packed), and end in Spark's noop
sink, which takes a row without looking at it; engine and memory also end in Parquet with count and
digest: the engine's tasks write it themselves, as those of the job do, the others' rows go through
Spark's writer.
"""

import statistics
import tempfile
import time
from collections.abc import Sequence
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
from rebalance_core.spark.tables.task_tables import Work, task_tables
from rebalance_core.spark.tables.write import row_hash, write_table
from rebalance_core.synthetic.fleet import FleetPlan
from tests.bench.passes.workloads import OPTIONS, from_memory, owned, per_group, share_of_groups
from tests.bench.process_tree import peaks_of_descendants
from tests.bench.report import LESS, MORE, Figure, Report, Table, bench_main, say, tidy

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
ABOUT = """\
Rows of `ownership` of a generated day, by the engine and by what it replaces; all start from the
same rows, fanned out, assigned to tasks and kept in memory, and end in Spark's noop sink, or as
Parquet with count and digest. The first run of each plan, which the JVM has yet to compile, is not
counted. Asserted: applyInPandas and the replay (one group in a hundred, scaled by rows) give the
same rows."""
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

    def run(self, name: str, made: DataFrame | Work, *, written: bool = False) -> float:
        """Compute every row and throw it away, or write it; work writes in its tasks."""
        with tempfile.TemporaryDirectory() as folder:
            begin = time.perf_counter()
            if not isinstance(made, DataFrame):
                with task_tables(self.spark, f"{folder}/ledger", ["ownership"]) as tables:
                    tables.make(self.assigned.members, made, ["ownership"])
                    tables.finish()
            elif written:
                write_table(made, folder, "ownership")
            else:
                made.write.format("noop").mode("overwrite").save()
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
        (WRITTEN, owned, True),
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


def figures(bench: Bench, facts: dict[str, Any]) -> list[Figure]:
    """Medians of the ratios of the rounds; above 1 the engine is the faster one."""
    seconds, shares = bench.seconds, facts["rows of the shares"]
    ours, written = seconds[VECTORIZED], seconds[WRITTEN]
    # A share of a small day may have no group.
    scaled = [s * facts["rows"] / n if n else None
              for s, n in zip(seconds[REFERENCE], shares, strict=True)]  # fmt: skip
    yields = "a mapInArrow that yields as many rows from memory / engine"
    return [
        _figure("applyInPandas per group / engine", seconds[PER_GROUP], ours, 15),
        _figure("the plain replay, scaled / engine", scaled, ours),
        _figure(yields, seconds[FROM_MEMORY], ours, 1),
        _figure(f"{yields}, both written", seconds[FROM_MEMORY_WRITTEN], written),
    ]


def _figure(
    name: str, theirs: Sequence[float | None], ours: list[float], target: float | None = None
) -> Figure:
    ratios = [a / b for a, b in zip(theirs, ours, strict=True) if a is not None]
    value = tidy(statistics.median(ratios)) if ratios else None
    return Figure(name, value, better=MORE, target=target)


def engine(groups: int = 1_000, rounds: int = 3, seed: int = 1) -> Report:
    """Run all contestants on a generated day.

    Args:
        groups: Of the day.
        rounds: Of all contestants, one after the other.
        seed: Of the day.
    """
    settings = {"spark.ui.enabled": "false", "spark.driver.memory": "6g"}
    spark = open_session("rebalance bench", master="local[2]", settings=settings)
    bench = prepare(spark, groups, seed)
    tables = all_tables(bench)
    worker = peaks_of_descendants().get("worker")
    facts = compare(bench, rounds)
    left = replayed_groups(bench.assigned, OPTIONS).count()
    spark.stop()
    contestants = Table(
        ("rows of `ownership` by", "seconds, fastest round", "slowest"),
        tuple((n, tidy(min(s)), tidy(max(s))) for n in CONTESTANTS for s in [bench.seconds[n]]),
        f"{groups:,} groups, {facts['rows']:,} rows, {bench.tasks} tasks, {rounds} rounds; "
        f"{left} groups were left to the replay.",
    )
    passes = Table(
        ("a pass for one table", "rows", "seconds"),
        tuple((name, one["rows"], one["seconds"]) for name, one in tables.items()),
    )
    memory = Figure("most memory of a Python worker, passes", worker and round(worker), "MiB",
                    better=LESS, target=1024)  # fmt: skip
    return Report("Single passes on Spark", ABOUT, (*figures(bench, facts), memory),
                  (contestants, passes))  # fmt: skip


if __name__ == "__main__":
    bench_main(engine, __doc__, groups=1_000, rounds=3, seed=1)

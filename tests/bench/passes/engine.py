"""`python -m tests.bench.passes.engine`: the engine against what it replaces, in one run.

Ratios hold, seconds do not: every round runs all contestants one after the other, and what is
printed is the median and the range of the ratios of the rounds. All start from rows that are kept
in memory: the engine, as the tasks of a job do, from checked rows, packed and routed to the tasks
of their groups; applyInPandas from the same rows fanned out, one for each group.
"""

import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from rebalance_core.checks.digest import TableDigest, TableWritten
from rebalance_core.cli.run.session import open_session
from rebalance_core.contracts import LEDGER_TABLES
from rebalance_core.contracts import Table as Contract
from rebalance_core.engine.options import REFERENCE as REPLAY
from rebalance_core.engine.options import SimulationOptions
from rebalance_core.engine.routing import interests_of
from rebalance_core.engine.table_writer import LedgerFacts
from rebalance_core.process.runtime import FactsT
from rebalance_core.process.simulate import ledger_tasks
from rebalance_core.spark.checks import check_and_count
from rebalance_core.spark.generate import generate
from rebalance_core.spark.runtime import SparkRuntime
from rebalance_core.spark.sources import rows_of
from rebalance_core.spark.task_tables import Work, make_unwritten, task_tables
from rebalance_core.synthetic.fleet import FleetPlan
from tests.bench.passes.workloads import (
    OWNERSHIP,
    ROWS_PER_BATCH,
    Owned,
    fanned_out,
    from_memory,
    per_group,
)
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
The engine and the methods that it replaces compute the rows of `ownership` for a generated day
from the same rows in memory. The bench asserts that applyInPandas and the replay (one group in a
hundred, scaled) give the same rows."""
REFERENCE_SHARE = 100
"""The reference replays one group in so many a round; its time is scaled by the rows it gives."""


@dataclass
class Bench:
    """The rows to work on, and the seconds of every contestant in every round.

    Attributes:
        spark: The session.
        routed: Rows of `spark.routed_rows`.
        work: What a job does with them.
        fanned: The same as plain rows of groups (`fanned_out`).
        tasks: How many there are.
        seconds: By contestant.
    """

    spark: SparkSession
    routed: DataFrame
    work: Work[LedgerFacts]
    fanned: DataFrame
    tasks: int
    seconds: dict[str, list[float]] = field(default_factory=dict)

    def run(self, name: str, made: DataFrame | Owned, *, written: bool = False) -> TableDigest:
        """Make every row and throw it away, or write it; the note of work."""
        note = owned_digest()
        with tempfile.TemporaryDirectory() as folder:
            begin = time.perf_counter()
            if isinstance(made, DataFrame):
                writer = made.write.mode("overwrite")
                writer.parquet(f"{folder}/rows") if written else writer.format("noop").save()
            elif written:
                self.write(f"{folder}/ledger", made, owned_digest, (OWNERSHIP.name,))
            else:
                note = make_unwritten(self.routed, made, owned_digest)
            taken = time.perf_counter() - begin
        self.seconds.setdefault(name, []).append(taken)
        say(f"  {name:<24} {taken:8.2f} s")
        return note

    def write(
        self, folder: str, work: Work[FactsT], kind: Callable[[], FactsT], names: Sequence[str]
    ) -> tuple[FactsT, dict[str, TableWritten]]:
        """Note and tables of work whose tasks write."""
        with task_tables(self.spark, folder, names) as tables:
            return tables.make(self.routed, work, kind, names), tables.finish()


def owned_digest() -> TableDigest:
    """An empty digest of ``ownership``."""
    return TableDigest(OWNERSHIP)


def prepare(spark: SparkSession, groups: int, seed: int) -> Bench:
    """A generated day, checked and routed."""
    options = SimulationOptions()
    inputs = generate(spark, FleetPlan(groups=groups, days=1, seed=seed))
    checked = check_and_count(inputs, options.max_queue_nums, (interests_of,))
    with closing(checked):
        dealt, work = ledger_tasks(SparkRuntime(spark), checked, options)
        routed = dealt.frame
        routed.persist(StorageLevel.MEMORY_AND_DISK)
        begin = time.perf_counter()
        routed.count()
    say(f"routed in {time.perf_counter() - begin:.1f} s")
    fanned = fanned_out(routed).persist(StorageLevel.MEMORY_AND_DISK)
    rows = {name: count.rows for name, count in checked.counts.items()}
    say(f"input rows {rows}, {fanned.count()} events and settings of groups")
    return Bench(spark, routed, dealt.work(work), fanned, routed.rdd.getNumPartitions())


def digest_of(frame: DataFrame, table: Contract) -> TableWritten:
    """Rows and digest of a frame, taken by its tasks."""

    def run(batches: Any) -> Any:
        digest = TableDigest(table)
        for batch in batches:
            digest.add(batch)
        yield pa.RecordBatch.from_pydict({"rows": [digest.rows], "total": [str(digest.total)]})

    total = TableDigest(table)
    for part in rows_of(frame.mapInArrow(run, "rows BIGINT, total STRING")):
        total.merge(TableDigest(table, part["rows"], int(part["total"])))
    return total.result


def compare(bench: Bench, rounds: int) -> dict[str, Any]:
    """Time the contestants and check, in the first round, that they give the same rows."""
    with tempfile.TemporaryDirectory() as folder:
        _, tables = bench.write(folder, Owned(), owned_digest, (OWNERSHIP.name,))
        sample = ds.dataset(f"{folder}/{OWNERSHIP.name}").head(ROWS_PER_BATCH)
    expected = tables[OWNERSHIP.name]
    (batch,) = sample.cast(OWNERSHIP.arrow_schema()).combine_chunks().to_batches()
    memory = from_memory(bench.spark, batch, expected.rows, bench.tasks)
    assert memory.count() == expected.rows
    alone = per_group(bench.fanned)
    say("not counted: the first run of a plan, which the JVM has yet to compile")
    yields = (
        (VECTORIZED, Owned(), False),
        (FROM_MEMORY, memory, False),
        (WRITTEN, Owned(), True),
        (FROM_MEMORY_WRITTEN, memory, True),
    )
    for name, made, written in yields:
        bench.run(name, made, written=written)
    bench.seconds.clear()
    rows_of_shares = []
    for number in range(rounds):
        say(f"round {number + 1} of {rounds}: {expected.rows:,} rows of ownership")
        for name, made, written in yields:
            bench.run(name, made, written=written)
        bench.run(PER_GROUP, alone)
        rows_of_shares.append(run_reference(bench, number))
        if number == 0:
            assert digest_of(alone, OWNERSHIP) == expected, "applyInPandas gives other rows"
    return {"rows": expected.rows, "rows of the shares": rows_of_shares}


def run_reference(bench: Bench, number: int) -> int:
    """Time the replay of one share of the groups, and check its rows; gives how many."""
    found = bench.run(REFERENCE, Owned(REPLAY, REFERENCE_SHARE, number, digested=True))
    share = Owned(one_in=REFERENCE_SHARE, number=number, digested=True)
    ours = make_unwritten(bench.routed, share, owned_digest)
    assert found == ours, "the reference gives other rows"
    return found.rows


def whole_ledger(bench: Bench) -> tuple[float, dict[str, int], int]:
    """Seconds and rows of the pass that writes every table, and how many groups were replayed."""
    names = tuple(LEDGER_TABLES)
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        facts, written = bench.write(f"{folder}/ledger", bench.work, LedgerFacts, names)
        taken = time.perf_counter() - begin
    replayed = sum(facts.replay_reasons.values())
    return taken, {name: table.rows for name, table in written.items()}, replayed


def figures(bench: Bench, facts: dict[str, Any]) -> list[Figure]:
    """Medians of the ratios of the rounds; above 1 the engine is the faster one."""
    seconds, shares = bench.seconds, facts["rows of the shares"]
    ours, written = seconds[VECTORIZED], seconds[WRITTEN]
    # A share of a small day may have no group.
    scaled = [
        s * facts["rows"] / n if n else None
        for s, n in zip(seconds[REFERENCE], shares, strict=True)
    ]
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
    seconds, tables, left = whole_ledger(bench)
    worker = peaks_of_descendants().get("worker")
    facts = compare(bench, rounds)
    spark.stop()
    contestants = Table(
        ("rows of `ownership` by", "seconds, fastest round", "slowest"),
        tuple((n, tidy(min(s)), tidy(max(s))) for n in CONTESTANTS for s in [bench.seconds[n]]),
        f"{groups:,} groups, {facts['rows']:,} rows, {bench.tasks} tasks, {rounds} rounds; "
        f"{left} groups were left to the replay.",
    )
    whole = Table(
        ("table", "rows"),
        tuple(tables.items()),
        f"The pass that makes and writes every table, the first of the session: {tidy(seconds)} s.",
    )
    memory = Figure(
        "most memory of a Python worker, passes",
        worker and round(worker),
        "MiB",
        better=LESS,
        target=1024,
    )
    return Report(
        "Single passes on Spark", ABOUT, (*figures(bench, facts), memory), (contestants, whole)
    )


if __name__ == "__main__":
    bench_main(engine, __doc__, groups=1_000, rounds=3, seed=1)

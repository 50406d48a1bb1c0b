"""`python -m tests.bench.passes.sweep`: many variants of a day against one simulation.

Both in one session, through the same steps as the jobs: check, assign to tasks, write every
table. What is printed is the cost of one (variant, event) of the sweep over the cost of one event
of `simulate`; below 1 a variant is cheaper than a simulation of its own.
"""

import tempfile
import time
from collections.abc import Iterator

from pyspark.sql import SparkSession

from rebalance_core.cli.run.session import open_session
from rebalance_core.engine.options import SimulationOptions
from rebalance_core.planning.scenario.file import parse_scenario
from rebalance_core.planning.scenario.scenario import Scenario
from rebalance_core.planning.sweep.plan_options import SweepOptions
from rebalance_core.planning.variants import LEAGUE_STRATEGIES, read_strategies, variants_of
from rebalance_core.spark import InputTables
from rebalance_core.spark.engine.simulate import simulate_checked
from rebalance_core.spark.engine.work_units import task_count
from rebalance_core.spark.generate import generate
from rebalance_core.spark.plan.league import plan_league
from rebalance_core.spark.plan.plan_frames import plan_summary
from rebalance_core.spark.plan.prepare import prepare_sweep
from rebalance_core.spark.tables.check_rows import count_rows
from rebalance_core.spark.tables.quarantine import quarantine
from rebalance_core.spark.tables.write import write_table
from rebalance_core.synthetic.fleet import FleetPlan
from tests.bench.report import Figure, Report, Table, bench_main, say, tidy

ABOUT = """\
A plan of scenarios and strategies against one simulation of the same day, in one session and
through the same steps as the jobs: check, assign to tasks, write every table."""
EDITS = (
    'kind = "add_consumers"\ngroup = "*"\ncount = {n}',
    'kind = "remove_consumers"\ngroup = "*"\ncount = {n}',
    'kind = "rolling_restart"\ngroup = "*"\npercent = {n}0',
    'kind = "lose_broker"\nbroker = "*-{n}"\nback_after = "10m"',
    'kind = "scale_queues"\ntopic = "*"\nfactor = {n}',
)


def scenarios(count: int) -> list[Scenario]:
    """So many scenarios, all different."""
    made: list[Scenario] = []
    mistakes: list[str] = []
    for number in range(count):
        edit = EDITS[number % len(EDITS)].format(n=number // len(EDITS) + 1)
        text = f'name = "s{number}"\ndescription = "d"\n[[edit]]\nat = "+10m"\n{edit}\n'
        made.append(parse_scenario(text, f"s{number}.toml", mistakes))
    assert mistakes == []
    return made


def simulated(spark: SparkSession, day: str, folder: str) -> tuple[float, int, int]:
    """Seconds, events and rows of one simulation, as the job does it."""
    begin = time.perf_counter()
    checked = quarantine(InputTables.read(spark, day))
    counts = count_rows(checked)
    tasks = task_count(sum(c.rows for c in counts.values()), 2)
    ledger = simulate_checked(checked, SimulationOptions(partitions=tasks))
    rows = sum(write_table(frame, folder, name).rows for name, frame in ledger.frames().items())
    return time.perf_counter() - begin, counts["cluster_events"].rows, rows


def planned(
    spark: SparkSession, day: str, folder: str, count: int, strategies: int
) -> Iterator[tuple[str, float, int]]:
    """Name, seconds and rows of every part of the sweep."""
    begin = time.perf_counter()
    mistakes: list[str] = []
    swept = read_strategies(LEAGUE_STRATEGIES[:strategies], mistakes)
    variants = variants_of(scenarios(count), swept, (0,))
    checked = quarantine(InputTables.read(spark, day))
    rows = sum(c.rows for c in count_rows(checked).values()) * len(variants.histories)
    options = SweepOptions(partitions=task_count(rows, 2))
    sweep = prepare_sweep(checked.tables, variants, options)
    yield "prepare", time.perf_counter() - begin, len(variants)

    for name in ("plan_steps", "plan_summary", "plan_league", "plan_ownership"):
        start = time.perf_counter()
        back = {n: f"{folder}/{n}" for n in ("plan_steps", "plan_summary")}
        if name == "plan_steps":
            frame = sweep.steps()
        elif name == "plan_summary":
            frame = plan_summary(spark.read.parquet(back["plan_steps"]), sweep.starts(), None)
        elif name == "plan_league":
            frame = plan_league(*(spark.read.parquet(path) for path in back.values()))
        else:
            frame = sweep.ownership()
        written = write_table(frame, folder, name).rows
        yield name, time.perf_counter() - start, written


def sweep(groups: int = 100, count: int = 20, seed: int = 1) -> Report:
    """Simulate a day, and plan it with all strategies of the league.

    Args:
        groups: Of the day.
        count: Scenarios.
        seed: Of the day.
    """
    settings = {"spark.ui.enabled": "false", "spark.driver.memory": "6g"}
    spark = open_session("rebalance bench", master="local[2]", settings=settings)
    with tempfile.TemporaryDirectory() as folder:
        day = f"{folder}/day"
        for name, frame in generate(spark, FleetPlan(groups, 1, seed)).tables().items():
            write_table(frame, day, name)
        simulated(spark, day, f"{folder}/warm")
        spark.catalog.clearCache()
        seconds, events, rows = simulated(spark, day, f"{folder}/ledger")
        spark.catalog.clearCache()
        parts = list(planned(spark, day, f"{folder}/plan", count, len(LEAGUE_STRATEGIES)))
    spark.stop()
    assert all(made > 0 for _, _, made in parts), f"a part gave no rows: {parts}"
    variants = parts[0][2]
    total = sum(taken for _, taken, _ in parts)
    say(f"  {variants} variants of {events:,} events: {total:.1f} s; simulate {seconds:.1f} s")
    return Report(
        "Plans of many variants",
        ABOUT,
        (
            Figure("plan per (variant, event) / simulate per event",
                   tidy(total / variants / seconds)),
        ),
        (
            Table(
                ("part", "seconds", "rows"),
                (("simulate", tidy(seconds), rows), *((n, tidy(t), m) for n, t, m in parts)),
                f"{groups:,} groups, {events:,} events, {count} scenarios x "
                f"{len(LEAGUE_STRATEGIES)} strategies and the baseline: {variants} variants.",
            ),
        ),
    )  # fmt: skip


if __name__ == "__main__":
    bench_main(sweep, __doc__, groups=100, count=20, seed=1)

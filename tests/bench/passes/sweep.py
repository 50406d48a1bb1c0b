"""`python -m tests.bench.passes.sweep`: many variants of a day against one simulation.

Both in one session, as the jobs do it. What is printed is the cost of one (variant, event) of the
plan over the cost of one event of `simulate`; below 1 a variant is cheaper than a simulation of its
own.
"""

import tempfile
import time
from collections.abc import Mapping

from pyspark.sql import SparkSession

from rebalance_core.checks.digest import TableWritten
from rebalance_core.cli.run.session import open_session
from rebalance_core.planning.known_strategies import LEAGUE_STRATEGIES
from rebalance_core.planning.scenario.file import parse_scenario
from rebalance_core.planning.scenario.scenario import Scenario
from rebalance_core.planning.sweep.plan_options import PlanConfig
from rebalance_core.planning.variants import (
    Variants,
    read_strategies,
    variants_of,
)
from rebalance_core.process.generate import generate_and_write
from rebalance_core.process.simulate import simulate_and_write
from rebalance_core.spark import InputTables
from rebalance_core.spark.plan import run_plan
from rebalance_core.spark.runtime import SparkRuntime
from rebalance_core.synthetic.fleet import FleetPlan
from tests.bench.report import Figure, Report, Table, bench_main, say, tidy

ABOUT = """\
A plan of scenarios and strategies, without futures, is compared with one simulation of the same
day in the same session."""
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
    """Seconds, events and rows of one simulation."""
    begin = time.perf_counter()
    written = simulate_and_write(InputTables.read(spark, day), folder, runtime=SparkRuntime(spark))
    taken = time.perf_counter() - begin
    rows = sum(table.rows for table in written.tables.values())
    return taken, written.inputs["cluster_events"].rows, rows


def planned(
    spark: SparkSession, day: str, folder: str, variants: Variants
) -> tuple[float, Mapping[str, TableWritten]]:
    """Seconds and tables of a plan."""
    begin = time.perf_counter()
    inputs, config = InputTables.read(spark, day), PlanConfig(futures=0)
    result = run_plan(spark, inputs, variants, folder, config)
    return time.perf_counter() - begin, result.tables


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
        generate_and_write(FleetPlan(groups, 1, seed), day, runtime=SparkRuntime(spark))
        simulated(spark, day, f"{folder}/warm")
        seconds, events, rows = simulated(spark, day, f"{folder}/ledger")
        variants = variants_of(scenarios(count), read_strategies(LEAGUE_STRATEGIES, []), (0,))
        total, tables = planned(spark, day, f"{folder}/plan", variants)
    spark.stop()
    assert all(table.rows > 0 for name, table in tables.items() if name != "rejected")
    say(f"  {len(variants)} variants of {events:,} events: {total:.1f} s; simulate {seconds:.1f} s")
    return Report(
        "Plans of many variants",
        ABOUT,
        (
            Figure(
                "plan per (variant, event) / simulate per event",
                tidy(total / len(variants) / seconds),
            ),
        ),
        (
            Table(
                ("run", "seconds", "rows"),
                (
                    ("simulate", tidy(seconds), rows),
                    ("plan", tidy(total), sum(table.rows for table in tables.values())),
                ),
                f"{groups:,} groups, {events:,} events, {count} scenarios x "
                f"{len(LEAGUE_STRATEGIES)} strategies and the baseline: {len(variants)} variants.",
            ),
        ),
    )


if __name__ == "__main__":
    bench_main(sweep, __doc__, groups=100, count=20, seed=1)

"""`python -m tests.bench.passes.functions`: the SQL functions in their forms.

Every round runs all contestants one after the other over the same rows, which are kept in memory;
what is printed is the median of the ratios of the rounds. Processor time of the JVM and its Python
workers: other work on the machine says little.
"""

import statistics
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from rebalance_core.cli.run.session import open_session
from rebalance_core.kernels.function_columns import ALLOCATION
from rebalance_core.spark import functions, series
from rebalance_core.spark.functions import ALLOCATION_TYPE
from tests.bench.process_tree import processor_seconds_of_descendants
from tests.bench.report import LESS, MORE, Figure, Report, Table, bench_main, say, tidy

BROKERS = 2
LEAST_TIMES, MOST_TIMES = 8.0, 1.3
FASTEST, PASSES_ON = "Arrow form, AVG", "only passes Arrow on"
READS = "only reads the rows"
BATCH = 10_000  # spark.sql.execution.arrow.maxRecordsPerBatch
WARM_UP = 10
ABOUT = """\
`rmq_allocate` runs on rows in memory and writes to Spark's noop sink. *Only converts* and *only
passes Arrow on* are Spark's own cost. The bench asserts that both forms give the same rows."""


def groups(spark: SparkSession, rows: int, queues: int, members: int) -> DataFrame:
    """Rows with ``queues`` and ``client_ids``, sorted as no client sorts them, kept in memory."""
    each = queues // BROKERS
    listed = sf.array(
        *(
            sf.struct(
                sf.lit("OrderTopic").alias("topic"),
                sf.lit(f"broker-{at // each}").alias("broker_name"),
                sf.lit(at % each).alias("queue_id"),
            )
            for at in range(queues)
        )
    )
    ids = sf.array(
        *(sf.concat(sf.lit(f"10.0.0.{at}@"), sf.col("id").cast("string")) for at in range(members))
    )
    made = spark.range(rows).repartition(2)
    frame = made.select(listed.alias("queues"), ids.alias("client_ids")).cache()
    assert frame.count() == rows
    return frame


def only_converts(queues: int, members: int) -> Any:
    """The pandas UDF that computes nothing."""
    row = [("OrderTopic", f"broker-{at % BROKERS}", at // BROKERS) for at in range(queues)]
    columns = [["AVG"], [row], [[f"10.0.0.{at}@1" for at in range(members)]]]
    (answer,) = series.rmq_allocate(*map(pd.Series, columns))

    def constant(strategy: pd.Series, queues: pd.Series, client_ids: pd.Series) -> pd.Series:
        return pd.Series([answer] * len(queues))

    return sf.pandas_udf(constant, ALLOCATION_TYPE)  # type: ignore[attr-defined]


def passes_on(rows: int, queues: int) -> Any:
    """The Arrow UDF that computes nothing."""
    answer = [
        ("OrderTopic", f"broker-{at % BROKERS}", at // BROKERS, ["10.0.0.1@1"])
        for at in range(queues)
    ]
    made = pa.array([answer], ALLOCATION).take(pa.array(np.zeros(rows, np.int64)))

    def constant(strategy: pa.Array, queues: pa.Array, client_ids: pa.Array) -> pa.Array:
        return made[: len(queues)]

    return sf.arrow_udf(constant, ALLOCATION_TYPE)  # type: ignore[attr-defined]


def compare(rows: int = 20_000, queues: int = 16, members: int = 5, rounds: int = 5) -> Report:
    """Run all contestants.

    Args:
        rows: Groups.
        queues: Of a group.
        members: Of a group.
        rounds: That count.
    """
    spark = open_session(
        "rebalance bench", master="local[2]", settings={"spark.ui.enabled": "false"}
    )
    frame = groups(spark, rows, queues, members)
    pandas_form = sf.pandas_udf(series.rmq_allocate, ALLOCATION_TYPE)  # type: ignore[attr-defined]
    columns = "queues", "client_ids"
    passed_on = passes_on(BATCH, queues)
    contestants: dict[str, Callable[[], Any]] = {
        READS: lambda: sf.struct(*columns),
        FASTEST: lambda: functions.rmq_allocate("AVG", *columns),
        "Arrow form, AVG_BY_CIRCLE": lambda: functions.rmq_allocate("AVG_BY_CIRCLE", *columns),
        "Arrow form, CONSISTENT_HASH": lambda: functions.rmq_allocate("CONSISTENT_HASH", *columns),
        "pandas form, AVG": lambda: pandas_form(sf.lit("AVG"), *columns),
        PASSES_ON: lambda: passed_on(sf.lit("AVG"), *columns),
        "only converts": lambda: only_converts(queues, members)(sf.lit("AVG"), *columns),
    }
    arrow, pandas = (
        frame.select(contestants[name]().alias("owners")) for name in (FASTEST, "pandas form, AVG")
    )
    assert arrow.exceptAll(pandas).isEmpty()
    assert arrow.count() == rows
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for number in range(-WARM_UP, rounds):
        for name, column in contestants.items():
            if number < -1 and name not in (READS, FASTEST, PASSES_ON):
                continue  # the JVM compiles what that one runs most of, and others run little of
            begin = processor_seconds_of_descendants()
            frame.select(column().alias("owners")).write.format("noop").mode("overwrite").save()
            taken = processor_seconds_of_descendants() - begin
            say(f"  {name:<28} {taken:8.2f} s")
            if number >= 0:
                seconds[name].append(taken)
    spark.stop()
    return _report(rows, queues, members, seconds)


def _report(rows: int, queues: int, members: int, seconds: dict[str, list[float]]) -> Report:
    pandas, reading = seconds["pandas form, AVG"], statistics.median(seconds[READS])

    def ratio(others: list[float], ones: list[float], apart: float = 0.0) -> float:
        pairs = zip(others, ones, strict=True)
        return tidy(statistics.median((a - apart) / (b - apart) for a, b in pairs))

    table = tuple(
        (name, tidy(statistics.median(taken)), round(rows / statistics.median(taken)))
        for name, taken in seconds.items()
    )
    return Report(
        "The SQL functions",
        ABOUT,
        (
            Figure(
                "Arrow form of AVG, times the pandas form, reading the rows apart",
                ratio(pandas, seconds[FASTEST], reading),
                better=MORE,
                target=LEAST_TIMES,
            ),
            Figure(
                "Arrow form of AVG, times the pandas form, the whole query",
                ratio(pandas, seconds[FASTEST]),
                better=MORE,
            ),
            Figure(
                "pandas form of AVG / one that only converts",
                ratio(pandas, seconds["only converts"]),
                better=LESS,
                target=MOST_TIMES,
            ),
            Figure(
                "Arrow form of AVG / one that only passes Arrow on",
                ratio(seconds[FASTEST], seconds[PASSES_ON]),
            ),
        ),
        (
            Table(
                ("contestant", "processor seconds", "groups a processor second"),
                table,
                f"{rows:,} groups of {queues} queues and {members} members.",
            ),
        ),
    )


if __name__ == "__main__":
    bench_main(compare, __doc__, rows=20_000, queues=16, members=5, rounds=5)

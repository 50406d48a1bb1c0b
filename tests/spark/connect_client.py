"""The client process of the Connect test: has no JVM, ships the package, prints a ledger."""

import json
import sys

from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from rebalance_core.model.errors import UsageError
from rebalance_core.model.queue import MessageQueue
from rebalance_core.spark import (
    InputTables,
    Ledger,
    diffs,
    epochs,
    functions,
    ownership,
    pull_starts,
    read_events,
    simulate,
)
from rebalance_core.spark.sources import cores_of


def main(address: str, package: str, folder: str) -> None:
    """One JSON object on stdout: the rows of every ledger table."""
    spark = SparkSession.builder.remote(address).getOrCreate()
    spark.addArtifacts(package, pyfile=True)
    assert cores_of(spark) == 2, "the server's local[2]"
    ledger = simulate(InputTables.read(spark, folder))
    assert ledger.replayed is not None
    assert ledger.replayed.collect() == []
    tables = {
        name: [row.asDict(recursive=True) for row in frame.collect()]
        for name, frame in ledger.frames().items()
    }
    check_steps(spark, folder, ledger)
    ledger.close()
    check_functions(spark)
    assert SparkContext._gateway is None, "something started a JVM in the client"
    json.dump(tables, sys.stdout)
    spark.stop()


def check_steps(spark: SparkSession, folder: str, ledger: Ledger) -> None:
    """The steps run there too, also on a view, and give the ledger's rows."""
    inputs = InputTables.read(spark, folder)
    epochs(read_events(spark, folder)).createOrReplaceTempView("begun")
    changed = diffs(ownership(spark.table("begun")))
    starts = pull_starts(changed, inputs.queue_offsets, inputs.committed_offsets)
    for made, theirs in ((changed, ledger.diffs), (starts, ledger.pull_starts)):
        ours = made.select(*theirs.columns)
        assert sorted(map(repr, ours.collect())) == sorted(map(repr, theirs.collect()))


def check_functions(spark: SparkSession) -> None:
    """The functions run where the package was sent; a wrong constant is told from a column."""
    owners = [("T", "a", 0, ["10.0.0.10@1"]), ("T", "a", 1, ["10.0.0.1@1"])]
    arguments = [MessageQueue("T", "a", n) for n in (1, 0)], ["10.0.0.1@1", "10.0.0.10@1"]
    (row,) = spark.range(1).select(functions.rmq_allocate(sf.lit("AVG"), *arguments)).collect()
    assert [tuple(queue) for queue in row[0]] == owners
    functions.register(spark)
    start = "rmq_pull_from_where('PULL', 'CONSUME_FROM_LAST_OFFSET', 'T', -1, null, null, '5.3')"
    assert spark.sql(f"SELECT {start} AS start").collect()[0].start.rule == "PULL_ALWAYS_ZERO"
    try:
        functions.rmq_allocate(sf.lit("AVERAGE"), *arguments)
    except UsageError:
        return
    raise AssertionError("an unknown strategy is not refused")


if __name__ == "__main__":
    main(*sys.argv[1:])

"""The client process of the Connect test: has no JVM, ships the package, prints a ledger."""

import json
import sys

from pyspark import SparkContext
from pyspark.sql import SparkSession

from rebalance_core.spark import InputTables, simulate
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
    ledger.close()
    assert SparkContext._gateway is None, "something started a JVM in the client"
    json.dump(tables, sys.stdout)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])

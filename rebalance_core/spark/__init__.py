"""The jobs on Spark: reads and checks tables, distributes them to tasks and writes tables; also
RocketMQ's rules as `functions` of columns.

May import every package but `cli`, and pyspark, which is imported nowhere else. The jobs are those
of `process`, run by `runtime.SparkRuntime`, for which `ingest` reads collections; `steps` transform
frames. Begin with `runtime`, then `ledger.simulate`.
"""

from rebalance_core.spark.spark_versions import refuse_too_old

refuse_too_old()  # comes first, because importing a Spark that is too old may fail

from pyspark.sql import DataFrame, SparkSession  # noqa: E402

from rebalance_core.engine.options import SimulationOptions  # noqa: E402
from rebalance_core.spark.catalogs import Published, publish  # noqa: E402
from rebalance_core.spark.ledger import Ledger, simulate  # noqa: E402
from rebalance_core.spark.read_tables import InputTables  # noqa: E402
from rebalance_core.spark.steps import (  # noqa: E402
    diffs,
    epochs,
    ownership,
    pull_starts,
    read_events,
    read_logs,
    rejected,
    step_ddl,
)

__all__ = [
    "DataFrame",
    "InputTables",
    "Ledger",
    "Published",
    "SimulationOptions",
    "SparkSession",
    "diffs",
    "epochs",
    "ownership",
    "publish",
    "pull_starts",
    "read_events",
    "read_logs",
    "rejected",
    "simulate",
    "step_ddl",
]

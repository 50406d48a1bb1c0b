"""Plans for callers with a Spark session."""

from typing import Any

from pyspark.sql import SparkSession

from rebalance_core.planning.sweep.plan_options import PlanConfig, PlanResult
from rebalance_core.planning.variants import Variants
from rebalance_core.process import plan
from rebalance_core.spark.read_tables import InputTables
from rebalance_core.spark.runtime import SparkRuntime


def run_plan(
    session: SparkSession,
    inputs: InputTables,
    variants: Variants,
    output: str,
    options: PlanConfig | None = None,
    **keywords: Any,
) -> PlanResult:
    """Compute and write a plan; the keywords are those of `process.plan.run_plan`."""
    runtime = SparkRuntime(session)
    return plan.run_plan(inputs, variants, output, options, runtime=runtime, **keywords)

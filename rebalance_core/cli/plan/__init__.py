"""`rebalance plan`: reads its options, calls `spark.plan.run.run_plan`, renders the result.

May import every package but those of other jobs; not pyspark itself.
Begin with `job`.
"""

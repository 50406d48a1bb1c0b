"""The command `plan`: reads its options, calls `spark.plan.run.run_plan`, renders the result.

May import: `cli`, `contracts`, `model` and `planning`; what needs Spark, when the job runs.
Begin with `job`.
"""

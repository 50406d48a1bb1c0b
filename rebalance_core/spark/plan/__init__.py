"""Plans on Spark: scenarios and strategies over a recorded history, every variant in one run.

`run.run_plan` does it all: the rows of whole groups go to tasks, which make of them what
`process.plan` makes of all (``plan_tasks``).

May import: `process.plan`, `planning` and everything below it, `spark.engine`, `spark.tables`;
pyspark and pyarrow. Begin with `run`.
"""

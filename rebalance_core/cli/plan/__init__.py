"""The command `plan`: reads its options, decides where to run, calls `run_plan` there, renders.

`run_plan` is that of `process.plan.run` or of `spark.plan.run`. May import every package but those
of other jobs; pyspark not by name. Begin with `job`.
"""

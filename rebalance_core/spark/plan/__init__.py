"""Plans on Spark: scenarios and strategies over a recorded history, every variant in one run.

`run.run_plan` does it all: ``prepare`` edits the histories (``histories``, ``edit_task``) and
distributes them, ``sweep`` runs every strategy over them, ``plan_tables`` and ``league`` make the
tables, ``summary`` counts what was written.

May import: `planning` and everything below it, `spark.engine`, `spark.tables`; pyspark, pyarrow and
numpy. Begin with `run`.
"""

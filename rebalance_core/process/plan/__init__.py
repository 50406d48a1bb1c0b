"""Plans in one process: scenarios and strategies over a recorded history.

`run.run_plan` does it all: ``histories`` edits the input, one history at a time, ``sweep`` runs
every strategy over its groups, ``plan_pass`` makes the rows of the tables; tasks of `spark.plan`
call it, too.

May import: `planning` and everything below it, `process`; numpy, pyarrow. Begin with `run`.
"""

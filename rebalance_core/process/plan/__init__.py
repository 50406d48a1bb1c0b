"""Plans in one process: scenarios and strategies over a recorded history.

`run.run_plan` does it all: ``histories`` edits the input, one history at a time, ``sweep`` runs
every strategy over its groups, ``plan_tables`` makes the tables while their rows come in.

May import: `planning` and everything below it, `process`; numpy, pyarrow. Begin with `run`.
"""

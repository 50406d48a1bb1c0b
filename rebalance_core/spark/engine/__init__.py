"""The engine: from checked input tables to the ledger, group by group, on every core there is.

May import what `spark` may, but not `spark.ingest`, `spark.audit` and `spark.plan`, which build on
it. Begin with `simulate`: `fan_out` gives each group its rows, `work_units` assigns them to tasks,
`prepared` replays their events, `table_pass` makes each table. `write_ledger` is the whole job.
"""

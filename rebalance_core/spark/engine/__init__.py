"""The engine: from checked input tables to the ledger, group by group, on every core there is.

May import what `spark` may, but not `spark.ingest`, `spark.audit` and `spark.plan`, which build on
it. Begin with `write_ledger`, the whole job: `routed_rows` brings the rows of groups together,
`ledger_work` makes every table of them. `simulate` gives lazy frames instead: `group_frames` gives
each group its rows, `work_units` assigns them to tasks, `prepared_frames` keeps the groups,
`table_pass` makes each table.
"""

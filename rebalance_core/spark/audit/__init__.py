"""The audit on a cluster: the functions of `process.audit`, in tasks that have whole groups.

`run.audit_and_write` does it all: one job checks the rows and notes what concerns groups and
clusters, which the driver judges as it deals the groups out (``routed_audit``); in a second job
tasks write the ledger and judge its groups (``audit_tasks``). ``audit_inputs`` reads the tables.

May import: `process.audit` and everything below it, `spark.engine`, `spark.ingest`, `spark.tables`;
pyspark and pyarrow. Begin with `run`.
"""

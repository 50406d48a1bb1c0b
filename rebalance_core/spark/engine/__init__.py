"""The engine: from checked input tables to the ledger, group by group, on every core there is.

May import what `spark` may, but not `spark.ingest`, `spark.audit` and `spark.plan`, which build on
it. Begin with `write_ledger`, the whole job: `routed_rows` brings the rows of groups together, and
their tasks make every table of them. `simulate` gives the same tables as frames.
"""

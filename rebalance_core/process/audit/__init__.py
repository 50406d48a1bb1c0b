"""The audit in one process: every group judged after the other, from Arrow tables.

`run.audit_and_write` does it all: it checks the tables of `audit_inputs`, judges the clusters
(`cluster_rows`, `judges`), and makes one `judging_pass`, which simulates some groups at a time and
judges them (`group_cases`) while their ledger goes by (`audit_part`). Tasks of `spark.audit` make
the same pass. `audit.audit_tables` judges tables with a ledger that is there already. Of what was
written `report_data` fills the page, `previous_audit` compares with an earlier run; `audited` is
both together.

May import: numpy, pyarrow, `audit`, `report`, and all below them. Begin with `run`.
"""

"""The audit on a cluster: every group judged in its task, the cluster as a whole on the driver.

`group_cases` brings the rows of a group together, `audit` judges them, `queries` counts and selects
findings; `write_audit` writes the tables, `previous_audit` compares with an earlier run,
`report_data` fills the page; `audited` is all of this together. `unwritten` is the dry run.

May import: pyspark, pyarrow, `audit`, `report`, and all below them.
Begin with `audit.audit_tables`.
"""

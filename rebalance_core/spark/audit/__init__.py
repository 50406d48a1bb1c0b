"""The audit on a cluster: every group judged in its task, the cluster as a whole on the driver.

`group_cases` gathers the rows of a group, `audit` judges them, `queries` counts and selects
findings; `outcome` sums the run up, `write_audit` writes its tables, `previous_audit` compares with
an earlier run, `report_data` fills the page. `unwritten` is the dry run.

May import: pyspark, pyarrow, `audit`, `report`, and all below them. Begin with
`audit.audit_tables`.
"""

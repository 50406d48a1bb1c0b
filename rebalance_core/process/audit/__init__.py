"""The audit in one process: every group judged after the other, from Arrow tables.

`cluster_rows` brings the rows of a cluster together, `group_cases` those of a group; `judges` judge
them. `audit` does so with a whole ledger; `judging_pass` with that of some groups at a time, as it
is made: in a dry run (`unwritten`), and in the tasks of `spark.audit`. `write_audit` writes the
tables, `report_data` fills the page, `previous_audit` compares with an earlier run; `audited` is
all of this together.

May import: numpy, pyarrow, `audit`, `report`, and all below them. Begin with `audit.audit_tables`.
"""

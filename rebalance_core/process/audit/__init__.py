"""The audit in one process: every group judged after the other, from Arrow tables.

`group_cases` brings the rows of a group together, `cluster_rows` those of a cluster; `audit` judges
them. `write_audit` writes the tables, `report_data` fills the page, `previous_audit` compares with
an earlier run; `audited` is all of this together. `unwritten` is the dry run.

May import: numpy, pyarrow, `audit`, `report`, and all below them. Begin with `audit.audit_tables`.
"""

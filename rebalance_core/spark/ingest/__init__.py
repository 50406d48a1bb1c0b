"""Ingest on a cluster: tasks read the files, others combine what they say of each group and topic.

May import `ingest`, `spark.tables` and the row counts of `spark.engine`. Begin with `ingest`;
`write_tables` is the whole job.
"""

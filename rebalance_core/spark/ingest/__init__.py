"""Ingest on a cluster: files are read by many tasks, groups and topics put together by many more.

May import `ingest`, `spark.tables` and what counts rows in `spark.engine`. Begin with `ingest`;
`write_tables` is the whole job.
"""

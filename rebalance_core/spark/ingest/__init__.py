"""Ingest on a cluster: tasks read the files, others combine what they say of each group and topic.

`write_tables` is the whole job. ``collection_evidence`` reads files, ``evidence_chunks`` takes what
they say to the tasks of ``assembling_tasks``; `ingest` joins them.

May import `ingest`, `spark.tables` and `spark.engine.routed_rows`.
"""

"""Ingest on a cluster: files and groups spread over tasks that call `rebalance_core.ingest`.

Begin with `ingest.ingest`; `collection_evidence` reads the files. May import `ingest`, `contracts`
and pyspark.
"""

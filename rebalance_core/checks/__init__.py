"""Input tables read, conformed and checked as plain functions on Arrow tables, without a JVM.

Begin with `input_tables.read_input_tables` and `row_checks.check_tables`; `digest.TableDigest`
fingerprints what is written. Rows, messages and digests are those of `rebalance_core.spark.tables`.
"""

"""Input tables read, conformed and checked as plain functions on Arrow tables, without a JVM.

Begin with `input_tables.read_input_tables` and `row_checks.check_tables`; `text_rows` defines how
lines are read, and `digest` fingerprints what is written. Spark's tasks call the same functions.
"""

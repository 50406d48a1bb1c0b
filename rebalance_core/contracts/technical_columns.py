"""Columns that rows carry beside those of their contract, on their way through a run."""

SOURCE = "_source"
RAW = "_raw"
READ_ISSUES = "_read_issues"
TECHNICAL = (SOURCE, RAW, READ_ISSUES)
"""Where a row came from, the row as it was read, and what of it could not be read."""

TABLE = "_table"
"""Which input table a row of several tables' rows comes from."""

"""Hashes of rows, equal to those that Spark's ``xxhash64`` makes of the same columns."""

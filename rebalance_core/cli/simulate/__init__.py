"""The job `simulate`: its options, its run and its summary.

May import every package but those of other jobs; pyspark not by name. Begin with `job`.
"""

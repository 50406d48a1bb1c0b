"""`rebalance generate`: options, run and summary.

May import every package but those of other jobs; not pyspark itself. Begin with `job`.
"""

"""`rebalance audit`: options, messages, exit code and output folder of an audit run.

`on_spark` and `in_process` run it; the rest is the same for both. May import every package but
those of other jobs; pyspark not by name. Begin with `job.run_audit`.
"""

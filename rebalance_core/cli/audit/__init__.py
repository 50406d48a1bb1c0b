"""`rebalance audit`: options, messages, exit code and output folder of an audit run.

May import: `cli`, `spark` (inside functions: `--help` runs without pyspark), and all below them; no
pyspark.
Begin with `job.run_audit`.
"""

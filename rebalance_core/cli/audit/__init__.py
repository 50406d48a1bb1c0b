"""`rebalance audit`: options, messages, exit code and output folder of an audit run.

May import: `cli`, `spark` (inside functions: `--help` works without pyspark), and all below them;
not pyspark itself.
Begin with `job.run_audit`.
"""

"""`rebalance explain`: reads rows of a ledger with pyarrow, asks `explain.explainer`, renders.

May import: `cli`, `explain`, `planning` and `model`; pyarrow, when the job runs; no Spark.
Begin with `job`.
"""

"""What a plan is made of, on Arrow tables: `process.plan` and `spark.plan` both run it.

``history_rows`` gives every history its rows, ``passes`` makes rows of plans of ledger rows, the
rest are the options, words and results that both share.

May import: `planning`, `engine`, `checks` and everything below; numpy, pyarrow. Begin with
``passes``.
"""

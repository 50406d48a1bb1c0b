"""What a plan is made of, on Arrow tables: `process.plan` and `spark.plan` both run it.

``event_facts`` is what edits want to know of the whole input, ``plan_edits`` what they change,
``history_rows`` gives every history its rows, ``passes`` makes rows of plans of ledger rows; the
rest are options, words and results.

May import: `planning`, `engine`, `checks` and everything below; numpy, pyarrow. Begin with
``passes``.
"""

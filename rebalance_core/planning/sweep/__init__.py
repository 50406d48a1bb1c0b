"""What a plan is made of, on Arrow tables: `process.plan` runs it, here or on Spark.

`plan_edits` gives every history its rows, `member_settings` what members state of themselves,
`passes` makes rows of plans of ledger rows, `transitions` adds what each step costs; `plan_options`
has the options and results.

May import: `planning`, `engine`, `checks` and everything below; numpy, pyarrow. Begin with
`passes`.
"""

"""The parts of a plan, on Arrow tables: `process.plan` runs them in-process or on Spark.

`plan_edits` gives every history its rows, `member_settings` reads the settings that members state,
`passes` turns ledger rows into rows of plans, `transitions` adds the costs of each step;
`plan_options` contains the options and results.

May import: `planning`, `engine`, `checks` and everything below; numpy, pyarrow. Begin with
`passes`.
"""

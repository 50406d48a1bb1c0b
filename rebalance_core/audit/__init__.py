"""Compares observed ownership with the predicted one and names what is wrong with each group.

Input: the rows of one group (`case`), and what was collected of the whole cluster (`completeness`).
`comparison` compares predicted with observed ownership, `rules` look for pathologies; `dumps`,
`subscriptions`, `duplicate_ids` and `orphans` derive what several of them need. `known_issues`
explains and accepts findings, `redact` hides client ids, `outcome` says what is shown and counted.
Plain Python on rows as dicts; `process.audit` and `spark.audit` bring the rows of each group
together.

May import: `model`, `contracts`, `strategies`, `protocol`, `client`, `ingest`.
Begin with `findings.run_rules`.
"""

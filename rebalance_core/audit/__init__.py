"""The comparison of observed and predicted ownership, and what is wrong with each group.

Input: the rows of one group (`group_snapshot`), and the facts on the whole cluster
(`cluster_snapshot`). `coverage` and `subjects` are timelines of what is known. `comparison`
compares predicted with observed ownership, `rules` look for pathologies, `confidence` keeps the
findings with enough evidence; `dumps`, `listings`, `topic_settings`, `subscriptions`, `stretches`,
`offsets` and `logged_causes` derive what several of them need. `known_issues` explains and accepts
findings, `redact` hides client ids, `outcome` decides which are shown and counted. `process.audit`
brings the rows of each group together.

May import: `model`, `contracts`, `strategies`, `protocol`, `client`, `ingest`.
Begin with `findings.run_rules`.
"""

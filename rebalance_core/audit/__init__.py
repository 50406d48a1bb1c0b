"""Compares observed ownership with predicted ownership, and finds what is wrong with each group.

The input consists of the rows of a group (`group_snapshot`) and the facts about the whole cluster
(`cluster_snapshot`). `coverage` and `subjects` are timelines of what is known. `comparison`
compares predicted with observed ownership, `rules` looks for pathologies, and `confidence` keeps
the findings that have enough evidence. `dumps`, `listings`, `topic_settings`, `subscriptions`,
`stretches`, `offsets` and `logged_causes` derive what several rules need. `known_issues` explains
and accepts findings, `redact` hides client ids, and `outcome` determines which findings are shown
and counted. `process.audit` collects the rows of each group.

May import: `model`, `contracts`, `strategies`, `protocol`, `client`, `ingest`.
Begin with `findings.run_rules`.
"""

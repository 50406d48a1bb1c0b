"""Compares observed ownership with the predicted one and names what is wrong with each group.

Input: the rows of one group (`case`), and what was collected of the whole cluster (`completeness`).
`comparison` compares predicted with observed ownership, `rules` look for pathologies, `evidence`
derives what several of them need; `accepted` and `verdict` turn findings into an exit code.
`redact` hides client ids. Plain Python on rows as dicts; `spark.audit` distributes the groups.

May import: `model`, `contracts`, `strategies`, `protocol`, `client`. Begin with `judge.judge`.
"""

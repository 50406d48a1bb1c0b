"""Compares observed ownership with the predicted one and names what is wrong with each group.

Input: the rows of one group (`case`), and what the collection says of the whole cluster
(`collection`). `comparison` holds predicted against observed ownership, `rules` look for
pathologies, `evidence` reads the facts both need; `accepted` and `verdict` turn findings into an
exit code. `redact` hides client ids. Plain Python on rows as dicts: who spreads the groups over a
cluster is not known here.

May import: `model`, `contracts`, `strategies`, `protocol`, `client`.
Begin with `judge.judge`.
"""

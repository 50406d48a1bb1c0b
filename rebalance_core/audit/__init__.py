"""Compares observed ownership with the predicted one and names what is wrong with each group.

Input: the rows of one group (`case`), and what was collected of the whole cluster (`completeness`).
`comparison` compares predicted with observed ownership, `rules` look for pathologies, `evidence`
derives what several of them need; `accepted` and `verdict` turn findings into an exit code.
`redact` hides client ids, `selection` and `outcome` say what is kept, shown and counted. Plain
Python on rows as dicts; `process.audit` and `spark.audit` bring the rows of each group together.

May import: `model`, `contracts`, `strategies`, `protocol`, `client`, `ingest`.
Begin with `findings.run_rules`.
"""

"""Is live ownership what it should be, and what is wrong with the groups?

The way: `case` holds all that is known of one group, `night` what concerns the whole cluster;
`gate` compares predicted with live ownership, `rules` look for pathologies, `collection` for what
is missing; `accepted` and `verdict` make of the findings an exit code. Plain Python: who spreads
the groups over a cluster is not known here.
"""

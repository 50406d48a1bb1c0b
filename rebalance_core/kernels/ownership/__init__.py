"""Who owns what: the groups' state prepared once, then owners by cell, one strategy a file.

May import `codes`, `cells`, `state` and `segments`. Begin with `prepared_groups`, then `layout` and
`holdings`; `changes` has the drops and adds.
"""

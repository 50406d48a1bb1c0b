"""Who owns what: the groups' state prepared once, then owners by cell.

Begin with `prepared_groups`, then `layout`; `changes` has the holdings, drops and adds.
"""

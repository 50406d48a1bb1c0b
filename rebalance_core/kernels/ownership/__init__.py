"""Who owns what: the groups' state prepared once, then the owners of each cell.

Begin with `prepared_groups`, then `layout`; `changes` has the holdings, drops and adds.
"""

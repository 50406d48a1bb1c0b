"""Ownership: the groups' state is prepared once, then the owners of each cell are computed.

Begin with `prepared_groups`, then `layout`; `changes` computes the drops and adds.
"""

"""The rows of each ledger table, a file each.

May import the other folders of `kernels`. Begin with `ledger`; `output` turns codes into names.
"""

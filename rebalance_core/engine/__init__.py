"""The parts of a simulation on Arrow tables.

`fan_out` assigns rows to groups, `kernels` process their events, and `ledger_pass` yields the rows
of all tables.

May import: numpy, pyarrow, and every package up to `kernels`, `replay` and `checks`. Begin with
`ledger_pass`.
"""

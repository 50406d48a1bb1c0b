"""What a simulation is made of, on Arrow tables.

`fan_out` gives every group its rows, `kernels` follow their events, `ledger_pass` makes the rows
of all tables.

May import: numpy, pyarrow, and every package up to `kernels`, `replay` and `checks`. Begin with
`ledger_pass`.
"""

"""The parts of a simulation on Arrow tables.

`fan_out` gives every group its rows, `kernels` follow their events, and `ledger_pass` writes the
rows of all tables.

May import: numpy, pyarrow, and every package up to `kernels`, `replay` and `checks`. Begin with
`ledger_pass`.
"""

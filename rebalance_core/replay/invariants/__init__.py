"""What must hold of every ledger, whoever made it; for tests of the replay and of the kernels.

May import `model`, `strategies`, `protocol` and `replay`. Begin with `ledger`.
"""

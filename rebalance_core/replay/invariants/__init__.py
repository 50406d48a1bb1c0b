"""What must be true of every ledger, whichever engine made it; used by the tests of both.

May import `model`, `strategies`, `protocol` and `replay`. Begin with `ledger`.
"""

"""What is set for a group: its strategy and parameters, request and rebalance modes.

What no file shows is inferred from live ownership, given by the operator, or assumed; if it is
assumed, a finding says so. Begin with `group_settings_row`. May import `events`, `evidence`,
`parse`, `strategies`, `protocol` and `model`.
"""

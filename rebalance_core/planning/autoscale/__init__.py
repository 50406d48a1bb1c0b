"""Simulates a scaler, the lag that it sees and the rebalancing that it causes, in a closed loop.

`policy` reads the configuration of a scaler, `hpa` and `keda` decide as the controllers do,
`arrivals` holds the rates, `transitions` plays the steps between numbers of members, `closed_loop`
combines them, and `summary` compares the policies. Begin with `closed_loop.replay`.
"""

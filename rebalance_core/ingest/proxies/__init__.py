"""What proxies log, as the connections of the members behind them.

Begin with `proxy_members.through_proxies`. May import `collection`, `evidence`, `parse`,
`contracts`, `model`, and of `events` the times of connections.
"""

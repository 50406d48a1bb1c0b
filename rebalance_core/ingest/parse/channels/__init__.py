"""How brokers and proxies render the connections of their clients.

Begin with `client_channel`. May import `parse.text`.
"""

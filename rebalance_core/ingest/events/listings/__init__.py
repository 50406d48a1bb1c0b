"""What dumps list of a group's members, as evidence beside the lines of the brokers' logs.

`listed_connections` has the connections that no line announces, `listed_tables` what a broker's
dumps say once its log has ended. May import what `ingest.events` may.
"""

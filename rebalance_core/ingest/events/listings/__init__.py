"""What dumps list of a group's members, as evidence beside the lines of the brokers' logs.

`at_answerers` tells whose connections a dump lists, `listed_connections` has those that no line
announces, `listed_tables` what a broker's dumps say once its log has ended. May import what
`ingest.events` may.
"""

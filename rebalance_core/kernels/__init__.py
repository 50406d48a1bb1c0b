"""The replay's results for many groups at once: numpy over segments, Arrow at both ends.

May import `protocol`, `strategies`, `contracts`, `model`, numpy and pyarrow; never the replay, with
which its tables are compared. Data passes through the modules in this order; begin with
`ownership.prepared_groups`:

- `codes`, `encoded_events`, `encoded_offsets`, `encoded_groups`, `group_rows`: names become
  integers in Java's order, and input rows become arrays.
- `processes`, `topics`, `routes`, `epochs`, `grid`, `roster`: live members, topics that are read,
readable queues, and changes to all of these.
- `queues`, `cells`, `cell_holders`: queues and their epochs as arrays, and who holds them.
- `ownership`: which member of cidAll owns each queue in each epoch, in blocks that fit into the
  cache.
- `starts`: where each new owner starts to read.
- `loads`, `metrics`, `pop_metrics`, `ownership_rows`, `queue_states`, `table_rows`, `ledger`: the
  rows of the ledger; codes become names again.

A *cell* is one queue in one epoch. A *segment* is a run of rows that belong together, as in
`segments`.
"""

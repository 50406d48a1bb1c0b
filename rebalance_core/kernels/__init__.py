"""The replay's answers for many groups at once: numpy over segments, Arrow at both ends.

May import `protocol`, `strategies`, `contracts`, `model`, numpy and pyarrow; never the replay, with
which its tables are compared. Data passes through the folders in this order; begin with
`ownership.prepared_groups`:

- `codes`: names become integers in Java's order, input rows become arrays.
- `cells`: queues and their epochs as arrays, and who holds them.
- `state`: who is live, which topics are read, which queues are readable, and when that changes.
- `ownership`: who of cidAll owns each queue in each epoch, in blocks that fit the cache.
- `tables`: the rows of the ledger; codes become names again.

A *cell* is one queue in one epoch. A *segment* is a run of rows that belong together, as in
`segments`.
"""

"""The replay's answers for many groups at once: numpy over segments, Arrow at both ends.

The way of the data, file by file:

- `columns`, `codes`: names to integers in Java's order; `event_rows`, `group_rows`, `offset_rows`,
  `topic_sets`: the input tables as arrays; `fleet`: all of it.
- `membership`, `activity`, `routes`: who is live, which topics are read, which queues are readable,
  event by event; `epochs`: when that changes; `roster`, `grid`: members and queues of each epoch;
  `shapes`: which groups are left to the replay; `world`: all of it.
- `owners`: who of cidAll owns a queue, one file per strategy; `cells`, `holdings`: queues by epoch,
  in blocks that fit the cache.
- `ownership`, `changes`, `diffs`, `epoch_rows`, `membership_rows`, `seats`, `loads`, `metrics`,
  `lookups`, `starts`, `first_starts`, `stored_starts`, `local_starts`, `pull_starts`: the tables;
  `output`: codes back to names; `ledger`: one table by its name.

Nothing here imports the replay: it is what these answers are compared with.
"""

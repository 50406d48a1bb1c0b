# ---
# jupyter:
#   jupytext:
#     formats: py:percent,ipynb
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Own frames: RocketMQ's rules as functions of columns
#
# **The question.** You have tables of your own: who was in which consumer group when, which queues
# there were, what was committed. *Who owned which queue, what moved, and where did the new owners
# start?*
#
# `rebalance_core.spark.functions` has the rules as functions of columns, in Python and in SQL. This
# notebook goes from events to starts with them, over the recording of a real RocketMQ 5.3.3 cluster
# (`rebalance_core/bundled/demo/join-leave`), and compares with the steps of a simulation. What the functions cannot know,
# and when the jobs are the better choice, is in [docs/spark.md](../docs/spark.md).

# %%
import os
from pathlib import Path

try:
    HERE = Path(__file__).resolve().parent
except NameError:  # a notebook has no __file__; it runs in its own folder
    HERE = Path.cwd()
TREE = HERE.parent if HERE.name == "notebooks" else HERE
INPUT = os.environ.get("OWN_INPUT", str(TREE / "rebalance_core/bundled/demo/join-leave/tables"))

# %%
from rebalance_core.cli.run.session import open_session

# the session that there is, or a small one in this process
spark = open_session(
    "own frames", master="local[2]", show_spark=False, rows_in_jvm=False,
    settings={"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2",
              "spark.sql.adaptive.enabled": "false"},
)

# %% [markdown]
# ## 1. One group, in pandas
#
# Given pandas Series the functions need no Spark. RocketMQ sorts both lists as Java sorts strings:
# `10.0.0.10@` comes *before* `10.0.0.1@`. Whoever forgets that, as `mqadmin allocateMQ` does, gets
# other owners.

# %%
import pandas as pd

from rebalance_core import MessageQueue
from rebalance_core.spark import functions
from rebalance_core.spark.functions import (
    allocate_by_group,
    rmq_allocate,
    rmq_allocate_error,
    try_rmq_allocate,
)

queues = [MessageQueue("OrderTopic", broker, n) for broker in ("broker-b", "broker-a") for n in range(2)]
frame = pd.DataFrame({
    "strategy": ["AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH", "AVERAGE", "AVG", None],
    "client_ids": [["10.0.0.1@7", "10.0.0.10@7"]] * 4 + [["10.0.0.1@7", None]] * 2,
})
frame["queues"] = [queues] * len(frame)
arguments = frame["strategy"], frame["queues"], frame["client_ids"]
for row, (owners, why) in enumerate(zip(try_rmq_allocate(*arguments), rmq_allocate_error(*arguments))):
    shares = why if owners is None else ", ".join(
        f"{q['broker_name']}/{q['queue_id']} {'|'.join(q['client_ids'])}" for q in owners
    )
    print(f"{frame['strategy'][row]}: {shares}")

# %% [markdown]
# A row without an answer is null, and says why. Null is not empty: a list with a null in it is not
# known. `rmq_allocate` fails the query where a strategy is unknown; a *constant* that is wrong is
# refused before anything runs:

# %%
from pyspark.sql import functions as sf

from rebalance_core.model.errors import UsageError

try:
    rmq_allocate(sf.lit("AVERAGE"), "queues", "client_ids")
except UsageError as error:
    print(error)

# %% [markdown]
# ## 2. From events to starts, in SQL
#
# `register` makes the functions known to SQL. Every consumer event begins an epoch; who is in it has
# joined and not left since; the queues are those that `TOPIC_CONFIG` names.

# %%
from rebalance_core.spark import InputTables

functions.register(spark)
for name, table in InputTables.read(spark, INPUT).tables().items():
    table.createOrReplaceTempView(name)

# %%
spark.sql("""CREATE OR REPLACE TEMPORARY VIEW shares AS WITH
  turns AS (SELECT *, row_number() OVER (PARTITION BY cluster, consumer_group ORDER BY event_ms, sequence) - 1 AS epoch
            FROM cluster_events WHERE event_type LIKE 'CONSUMER_%'),
  stays AS (SELECT *, lead(epoch) OVER (PARTITION BY cluster, consumer_group, client_id ORDER BY epoch) AS until FROM turns),
  members AS (SELECT t.cluster, t.consumer_group, t.epoch, t.event_ms AS change_ms, collect_list(s.client_id) AS client_ids
              FROM turns t LEFT JOIN stays s ON s.cluster = t.cluster AND s.consumer_group = t.consumer_group AND s.event_type = 'CONSUMER_JOIN'
              AND s.epoch <= t.epoch AND t.epoch < coalesce(s.until, t.epoch + 1) GROUP BY ALL),
  routes AS (SELECT cluster, topic, collect_list(struct(topic, broker_name, queue_id)) AS queues FROM (
             SELECT *, explode(sequence(0, read_queue_nums - 1)) AS queue_id FROM cluster_events WHERE event_type = 'TOPIC_CONFIG') GROUP BY ALL)
  SELECT *, rmq_allocate('AVG', queues, client_ids) AS owners FROM members JOIN routes USING (cluster)""")
spark.sql("""CREATE OR REPLACE TEMPORARY VIEW diffs AS
  SELECT cluster, consumer_group, epoch, change_ms, inline(rmq_assignment_diff(before, owners)) FROM (
  SELECT *, lag(owners, 1, array()) OVER (PARTITION BY cluster, consumer_group, topic ORDER BY epoch) AS before FROM shares)""")
spark.catalog.cacheTable("shares")
diffs = spark.table("diffs").cache()
shown = diffs.orderBy("epoch", "broker_name", "queue_id", "action").toPandas()
print(shown.groupby(["epoch", "action"]).size().unstack(fill_value=0).to_string())

# %% [markdown]
# Epoch 2: a third consumer joins at the end of the list, and a queue moves between the two others.

# %%
print(shown[shown["epoch"] == 2][["broker_name", "queue_id", "action", "client_id"]].to_string(index=False))

# %% [markdown]
# Where the new owners start: what the group had committed, as far as others than the new owner
# committed it until the window of the change closed (3 s); else 0 if the broker says so, as it does
# of a young queue; else the client's own rule.

# %%
spark.sql("""CREATE OR REPLACE TEMPORARY VIEW starts AS WITH
  adds AS (SELECT d.*, max_by(struct(min_offset, max_offset, head_cached), observed_ms) FILTER (WHERE observed_ms <= change_ms) AS seen
           FROM diffs d LEFT JOIN queue_offsets USING (cluster, topic, broker_name, queue_id) WHERE action = 'ADD' GROUP BY ALL),
  known AS (SELECT a.*, max_by(committed_offset, observed_ms) FILTER (WHERE observed_ms <= change_ms + 3000 AND c.client_id <> a.client_id) AS stored
            FROM adds a LEFT JOIN committed_offsets c USING (cluster, consumer_group, topic, broker_name, queue_id) GROUP BY ALL)
  SELECT *, rmq_pull_from_where('PUSH', 'CONSUME_FROM_LAST_OFFSET', topic, coalesce(stored, IF(seen.min_offset = 0 AND seen.head_cached, 0, -1)),
                                seen.max_offset, NULL, '5.3.3').offset AS start_offset FROM known""")
starts = spark.table("starts").cache()
columns = ["epoch", "broker_name", "queue_id", "client_id", "stored", "start_offset"]
print(starts.where("epoch BETWEEN 1 AND 2").orderBy(*columns[:3]).toPandas()[columns].to_string(index=False))

# %% [markdown]
# ## 3. The same as the steps of a simulation?
#
# The steps have the rows of `simulate`, frame by frame, and know more: retry topics, windows, bounds,
# what brokers knew when. Of this plain group both say the same.

# %%
from rebalance_core.spark import diffs as changes_of
from rebalance_core.spark import epochs, ownership, pull_starts, read_events

tables = InputTables.read(spark, INPUT)
changes = changes_of(ownership(epochs(read_events(spark, INPUT)))).cache()
pulls = pull_starts(changes, tables.queue_offsets, tables.committed_offsets)
keys = ["cluster", "consumer_group", "epoch", "topic", "broker_name", "queue_id", "client_id"]
for mine, table, columns in (
    (diffs, changes, [*keys, "action"]),
    (starts, pulls, [*keys, "start_offset"]),
):
    theirs = table.where("NOT startswith(topic, '%RETRY%')").select(*columns).toPandas()
    both = mine.select(*columns).toPandas().merge(theirs, how="outer", indicator="in")
    print(f"{len(both)} rows, {(both['in'] != 'both').sum()} differ")

# %% [markdown]
# ## 4. What if every group used another strategy?
#
# `allocate_by_group` gives long rows, a queue and an owner each, and divides each topic by itself as
# clients do. Per strategy and epoch: queues of the busiest member, and how many changed hands.

# %%
for strategy in ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH(virtual_nodes=200)"):
    owned = allocate_by_group(spark.table("shares"), strategy).toPandas()
    busiest = owned.groupby(["epoch", "client_id"]).size().groupby("epoch").max()
    before = owned.assign(epoch=owned["epoch"] + 1)[["epoch", *keys[3:]]]
    steps = owned[owned["epoch"] > 0].merge(before, how="left", indicator="held")
    moved = (steps["held"] == "left_only").sum()
    print(f"{strategy}: {moved} queues moved; of the busiest member, by epoch: {busiest.tolist()}")

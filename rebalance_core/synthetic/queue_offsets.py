"""Rows of queue_offsets: every queue that can be queried, at every moment in the plan."""

from collections.abc import Iterator

import numpy as np

from rebalance_core.synthetic.fleet import FleetPlan
from rebalance_core.synthetic.groups import group_of
from rebalance_core.synthetic.offset_columns import OffsetColumns, OffsetRows
from rebalance_core.synthetic.queue_table import RETENTION_MS, QueueTable, queue_table
from rebalance_core.synthetic.retry_table import retry_table

QUEUE_COLUMNS = (
    "cluster",
    "topic",
    "broker_name",
    "queue_id",
    "observed_ms",
    "min_offset",
    "max_offset",
)


def topic_offsets(plan: FleetPlan, topic: int) -> Iterator[OffsetColumns]:
    """Yield rows about a topic (numbered over all clusters)."""
    yield _offsets(plan, queue_table(plan, *plan.place_of_topic(topic)))


def retry_offsets(plan: FleetPlan, group: int) -> Iterator[OffsetColumns]:
    """Yield rows about a group's retry topic."""
    table = retry_table(plan, group, group_of(plan, group))
    if table is not None:
        yield _offsets(plan, table)


def _offsets(plan: FleetPlan, table: QueueTable) -> OffsetColumns:
    rows = OffsetRows(*QUEUE_COLUMNS)
    names = np.array([broker.name for broker in table.cluster.brokers], object)
    moments = np.array(plan.moments, np.int64)[:, np.newaxis]
    lowest, highest = table.written(moments - RETENTION_MS), table.written(moments)
    for at_ms, low, high in zip(plan.moments, lowest, highest, strict=True):
        seen = table.shown(at_ms, readable=False)
        rows.add(
            int(seen.sum()),
            cluster=table.cluster.name,
            topic=table.topic.name,
            broker_name=names[table.broker[seen]],
            queue_id=table.queue_id[seen],
            observed_ms=at_ms,
            min_offset=low[seen],
            max_offset=high[seen],
        )
    return rows.columns()

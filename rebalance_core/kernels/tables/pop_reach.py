"""The rows of ``pop_reach``."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from rebalance_core.kernels.codes.codes import coded
from rebalance_core.kernels.ownership.reach import Reach
from rebalance_core.kernels.segments import Ints
from rebalance_core.kernels.tables.output import group_columns, span_columns, table_rows
from rebalance_core.strategies.pop import WHOLE_BROKER


def pop_reach_rows(reach: Reach) -> Iterator[pa.RecordBatch]:
    """One row per client, queue or broker, and stretch of epochs."""
    queues, whole = reach.answers.holdings.queues, reach.whole
    queue_id = np.full(len(whole), WHOLE_BROKER)
    yield _rows(reach, whole.major, queue_id, whole.minor, whole.begin, whole.end)
    for cells, single in reach.blocks():
        queue = cells.queue[single.major]
        yield _rows(
            reach, queues.topic_broker[queue], queues.queue_id[queue],
            single.minor, single.begin, single.end,
        )  # fmt: skip


def _rows(
    reach: Reach, topic_broker: Ints, queue_id: Ints, client: Ints, begin: Ints, end: Ints
) -> pa.RecordBatch:
    prepared = reach.answers.prepared
    brokers, names = prepared.grid.brokers, prepared.coded.names
    return table_rows(
        "pop_reach",
        group_columns(prepared, brokers.group[topic_broker])
        | span_columns(prepared, begin, end)
        | {
            "topic": coded(names.topics, brokers.topic[topic_broker]),
            "broker_name": coded(names.brokers, brokers.broker[topic_broker]),
            "queue_id": queue_id,
            "client_id": coded(names.clients, client),
        },
    )

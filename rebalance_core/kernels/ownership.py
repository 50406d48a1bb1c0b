"""Run-length intervals of holdings: the rows of ``ownership``."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from rebalance_core.kernels.cells import Queues
from rebalance_core.kernels.codes import names_of
from rebalance_core.kernels.output import group_columns, span_columns, table_rows
from rebalance_core.kernels.segments import Ints
from rebalance_core.kernels.spans import Spans
from rebalance_core.kernels.world import World


def ownership_rows(world: World, queues: Queues, spans: Spans) -> pa.RecordBatch:
    """One row per unbroken holding; nobody is a row too."""
    return table_rows(
        "ownership",
        group_columns(world, queues.group[spans.queue])
        | queue_columns(world, queues, spans.queue)
        | span_columns(world, spans.first, spans.end)
        | {
            "client_id": names_of(world.fleet.names.clients, spans.client),
            "holders": (spans.client >= 0).astype(np.int32),
        },
    )


def queue_columns(world: World, queues: Queues, queue: Ints) -> dict[str, pa.Array]:
    """``topic``, ``broker_name`` and ``queue_id`` of each row."""
    names, brokers = world.fleet.names, world.grid.brokers
    topic_broker = queues.topic_broker[queue]
    return {
        "topic": names_of(names.topics, brokers.topic[topic_broker]),
        "broker_name": names_of(names.brokers, brokers.broker[topic_broker]),
        "queue_id": pa.array(queues.queue_id[queue]),
    }

"""Run-length intervals of holdings: the rows of ``ownership``."""

import numpy as np
import pyarrow as pa

from rebalance_core.kernels.cell_holders import ABSENT, NO_MEMBER, Block, Broadcast, Piece, Shared
from rebalance_core.kernels.codes import encoded
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups
from rebalance_core.kernels.queues import Queues
from rebalance_core.kernels.segments import Ints, first_of_run
from rebalance_core.kernels.table_rows import group_columns, span_columns, table_rows


def ownership_rows(prepared: PreparedGroups, queues: Queues, piece: Piece) -> pa.RecordBatch:
    """Return one row per unbroken holding, with coded names; a queue without a holder also has a
    row.
    """
    cells = piece.cells
    if isinstance(piece, Block):
        begin, end, client = _of_block(prepared, piece)
        holders = (client >= 0).astype(np.int64)
    else:
        begin, end, client, holders = _with_nobody(piece)
    queue = cells.queue[cells.segment[begin]]
    return table_rows(
        "ownership",
        group_columns(prepared, queues.group[queue])
        | queue_columns(prepared, queues, queue)
        | span_columns(prepared, cells.epoch[begin], cells.epoch[end - 1] + 1)
        | {
            "client_id": encoded(prepared.encoded.names.clients, client),
            "holders": holders.astype(np.int32),
        },
        names_encoded=True,
    )


def _of_block(prepared: PreparedGroups, block: Block) -> tuple[Ints, Ints, Ints]:
    """Return the first cell, end and client of every holding."""
    client = prepared.roster.client(block.entry)
    begin = np.flatnonzero(first_of_run(client, block.cells.segment))
    end, client = np.append(begin[1:], len(client)), client[begin]
    held = client != ABSENT
    return begin[held], end[held], client[held]


def _with_nobody(piece: Broadcast | Shared) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the first cell, end, client and number of processes of every holding and unheld
    span.
    """
    turns = np.flatnonzero(first_of_run(piece.unheld, piece.cells.segment))
    ends = np.append(turns[1:], len(piece.cells))
    free = piece.unheld[turns]
    held = piece.tenures if isinstance(piece, Shared) else piece
    processes = piece.tenures.processes if isinstance(piece, Shared) else np.ones_like(held.begin)
    return (
        np.concatenate([held.begin, turns[free]]),
        np.concatenate([held.end, ends[free]]),
        np.concatenate([held.client, np.full(int(free.sum()), NO_MEMBER)]),
        np.concatenate([processes, np.zeros(int(free.sum()), np.int64)]),
    )


def queue_columns(prepared: PreparedGroups, queues: Queues, queue: Ints) -> dict[str, pa.Array]:
    """Return ``topic``, ``broker_name`` and ``queue_id`` of each row."""
    names, brokers = prepared.encoded.names, prepared.grid.brokers
    topic_broker = queues.topic_broker[queue]
    return {
        "topic": encoded(names.topics, brokers.topic[topic_broker]),
        "broker_name": encoded(names.brokers, brokers.broker[topic_broker]),
        "queue_id": pa.array(queues.queue_id[queue]),
    }

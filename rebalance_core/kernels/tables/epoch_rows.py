"""The rows of ``epochs``: counts over all queues of a group."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from rebalance_core.kernels.cells.pieces import Block
from rebalance_core.kernels.codes.codes import names_of
from rebalance_core.kernels.ownership.changes import Differ
from rebalance_core.kernels.ownership.holdings import Holdings
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups
from rebalance_core.kernels.segments import ranges
from rebalance_core.kernels.state.masters import masterless_queues
from rebalance_core.kernels.tables.output import group_columns, table_rows, until, words
from rebalance_core.model.events import EVENT_TYPES
from rebalance_core.model.statuses import EPOCH_STATUSES

SETTLED, FROZEN, EMPTY = range(len(EPOCH_STATUSES))  # codes, in the order of the words


def epoch_rows(prepared: PreparedGroups, holdings: Holdings) -> pa.RecordBatch:
    """One row an epoch. Cost: all cells of the groups."""
    epochs, count = prepared.epochs, len(prepared.epochs)
    added, dropped, orphaned, shared = (np.zeros(count, np.int64) for _ in range(4))
    differ = Differ(prepared, holdings.queues)
    for piece in holdings.pieces():
        (turned, is_add), epoch = differ.turns(piece), piece.cells.epoch
        added += np.bincount(turned[is_add], minlength=count)
        dropped += np.bincount(turned[~is_add], minlength=count)
        orphaned += np.bincount(epoch[piece.nobody], minlength=count)
        if not isinstance(piece, Block):
            shared += np.bincount(epoch[piece.holders > 1], minlength=count)
    grid = prepared.grid
    epoch = ranges(epochs.of_group[:-1][grid.topics.group], np.diff(grid.topic_first))
    queues = np.bincount(epoch, grid.queues, minlength=count)
    frozen = np.bincount(epoch[grid.frozen], minlength=count) > 0
    popped = prepared.popped
    pop_queues = np.zeros(count, np.int64)
    if popped is not None:
        frozen |= np.bincount(epoch[popped.grid.frozen], minlength=count) > 0
        pop_queues += np.bincount(epoch, popped.grid.queues, minlength=count).astype(np.int64)
    status = np.select([epochs.live == 0, frozen], [EMPTY, FROZEN], SETTLED)
    causes = pa.ListArray.from_arrays(
        pa.array(epochs.first_cause, pa.int32()),
        names_of(pa.array(EVENT_TYPES, pa.string()), epochs.causes),
    )
    return table_rows(
        "epochs",
        group_columns(prepared, epochs.group)
        | {
            "epoch": epochs.number,
            "from_ms": epochs.from_ms,
            "to_ms": until(epochs.to_ms),
            "causes": causes,
            "members": epochs.live,
            "distinct_members": prepared.roster.distinct,
            "queues": queues.astype(np.int64),
            "added": added,
            "dropped": dropped,
            "orphaned": orphaned,
            "shared": shared,
            "status": words(EPOCH_STATUSES, status),
            "transient": epochs.to_ms < epochs.latest_ms,
            "pop_queues": pop_queues,
            "masterless_queues": masterless_queues(prepared.coded.events, epochs, grid),
        },
    )

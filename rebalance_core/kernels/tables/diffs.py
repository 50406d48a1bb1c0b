"""The rows of ``diffs``."""

from __future__ import annotations

import pyarrow as pa

from rebalance_core.kernels.cells.queues import Queues
from rebalance_core.kernels.codes.codes import coded
from rebalance_core.kernels.ownership.changes import KINDS, Changes
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups
from rebalance_core.kernels.tables.output import group_columns, table_rows, words
from rebalance_core.kernels.tables.ownership import queue_columns
from rebalance_core.model.events import EVENT_TYPES

ACTIONS = ("DROP", "ADD")


def diff_rows(prepared: PreparedGroups, queues: Queues, changes: Changes) -> pa.RecordBatch:
    """One row a change; names are coded."""
    epochs, names, epoch = prepared.epochs, prepared.coded.names, changes.epoch
    return table_rows(
        "diffs",
        group_columns(prepared, epochs.group[epoch])
        | queue_columns(prepared, queues, changes.queue)
        | {
            "epoch": epochs.number[epoch],
            "change_ms": epochs.from_ms[epoch],
            "earliest_ms": epochs.from_ms[epoch],
            "latest_ms": changes.latest_ms,
            "action": words(ACTIONS, changes.is_add.astype(int)),
            "client_id": coded(names.clients, changes.client),
            "other_client_id": coded(names.clients, changes.other),
            "kind": words(KINDS, changes.kind),
            "cause": words(EVENT_TYPES, epochs.causes[epochs.first_cause[epoch]]),
        },
        names_coded=True,
    )

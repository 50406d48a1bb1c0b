"""The rows of ``memberships``."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from rebalance_core.kernels.codes.codes import names_of
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups
from rebalance_core.kernels.segments import pointers
from rebalance_core.kernels.tables.output import group_columns, span_columns, table_rows


def membership_rows(prepared: PreparedGroups) -> pa.RecordBatch:
    """One row per process and stretch of epochs with the same settings."""
    runs, states, names = prepared.roster.runs, prepared.membership.states, prepared.coded.names
    rows, topics = prepared.coded.topic_sets.members(states.subscriptions[runs.state])
    bounds = pointers(np.bincount(rows, minlength=len(runs.group)))
    subscriptions = pa.ListArray.from_arrays(
        pa.array(bounds, pa.int32()), names_of(names.topics, topics)
    )
    return table_rows(
        "memberships",
        group_columns(prepared, runs.group)
        | span_columns(prepared, runs.from_epoch, runs.to_epoch)
        | {
            "client_id": names_of(names.clients, runs.client),
            "channel_id": names_of(
                names.channels, prepared.membership.processes.channel[runs.process]
            ),
            "subscriptions": subscriptions,
            "strategy": names_of(names.words, states.strategy[runs.state]),
            "version": names_of(names.words, states.version[runs.state]),
            "message_model": names_of(names.words, states.message_model[runs.state]),
            "rebalance_mode": names_of(names.words, states.rebalance_mode[runs.state]),
            "suspended": states.suspended[runs.state],
        },
    )

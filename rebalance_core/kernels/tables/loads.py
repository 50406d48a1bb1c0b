"""The rows of ``consumer_load``."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from rebalance_core.kernels.codes.codes import names_of
from rebalance_core.kernels.ownership.holdings import Holdings
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups
from rebalance_core.kernels.segments import AnyInts, Ints, first_of_run
from rebalance_core.kernels.tables.output import group_columns, span_columns, table_rows
from rebalance_core.kernels.tables.topic_members import count_queues, topic_members_of
from rebalance_core.protocol.thresholds import THRESHOLD_OFF


def load_rows(prepared: PreparedGroups, holdings: Holdings) -> pa.RecordBatch:
    """One row per client id and stretch of epochs with the same load."""
    topic_members, roster = topic_members_of(prepared), prepared.roster
    per_topic_member, members = count_queues(prepared, holdings, topic_members), len(roster)
    own = topic_members.countable

    def total(values: AnyInts, mask: np.ndarray) -> Ints:
        return np.bincount(topic_members.entry[mask], values[mask], minlength=members).astype(
            np.int64
        )

    topics, queues = total(per_topic_member > 0, own), total(per_topic_member, own)
    retry_queues = total(per_topic_member, ~own)
    entry = roster.entry_at  # by (group, client, epoch)
    group, client, epoch = (
        prepared.epochs.group[roster.epoch[entry]],
        roster.client(entry),
        roster.epoch[entry],
    )
    turns = first_of_run(group, client, topics[entry], queues[entry], retry_queues[entry])
    turns[1:] |= epoch[1:] != epoch[:-1] + 1
    starts = np.flatnonzero(turns)
    lengths = np.diff(np.append(starts, len(entry)))
    at = entry[starts]
    group, queues, retry_queues = group[starts], queues[at], retry_queues[at]
    return table_rows(
        "consumer_load",
        group_columns(prepared, group)
        | span_columns(prepared, epoch[starts], epoch[starts] + lengths)
        | _thresholds(prepared, group, queues + retry_queues)
        | {
            "client_id": names_of(prepared.coded.names.clients, client[starts]),
            "topics": topics[at],
            "queues": queues,
            "retry_queues": retry_queues,
            "idle": queues == 0,
            "suspended": np.zeros(len(at), np.bool_),
        },
    )


def _thresholds(prepared: PreparedGroups, group: Ints, process_queues: Ints) -> dict[str, Ints]:
    """`rules.thresholds.pull_threshold_per_queue` of many."""
    groups = prepared.coded.groups
    pairs = {
        "pull_threshold_for_queue": groups.pull_threshold_for_topic,
        "pull_threshold_size_for_queue": groups.pull_threshold_size_for_topic,
    }
    columns = {}
    for name, for_topic in pairs.items():
        shared = np.maximum(1, for_topic[group] // np.maximum(process_queues, 1))
        off = (for_topic[group] == THRESHOLD_OFF) | (process_queues == 0)
        columns[name] = np.where(off, getattr(groups, name)[group], shared)
    return columns

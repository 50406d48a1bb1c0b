"""The rows of ``consumer_load``: how many queues each member has or reaches in every epoch."""

import numpy as np
import pyarrow as pa

from rebalance_core.kernels import segments
from rebalance_core.kernels.cell_holders import Block, Broadcast
from rebalance_core.kernels.codes import encoded
from rebalance_core.kernels.ownership.holdings import Holdings
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups
from rebalance_core.kernels.process_loads import ProcessLoads
from rebalance_core.kernels.segments import AnyInts, Ints
from rebalance_core.kernels.shared_loads import SharedLoads
from rebalance_core.kernels.table_rows import group_columns, span_columns, table_rows
from rebalance_core.kernels.topic_members import ManyHolders, add_block
from rebalance_core.protocol.pull_threshold import THRESHOLD_OFF


def load_rows(
    prepared: PreparedGroups, holdings: Holdings, sharing: SharedLoads | None
) -> pa.RecordBatch:
    """Return one row per client id and run of epochs with the same load.

    If an id has several processes, the first by channel represents all of them.
    """
    roster = prepared.roster
    topics, queues, retry_queues = _counts(prepared, holdings)
    shared = np.zeros(len(roster), np.int64) if sharing is None else sharing.queues
    suspended = prepared.membership.states.suspended[roster.runs.state[roster.run[:-2]]]
    entry = roster.by_client
    if len(roster.twice):
        entry = entry[roster.copy[entry] == 0]
    client, epoch = roster.client(entry), roster.epoch[entry]
    group = prepared.epochs.group[epoch]
    turns = segments.first_of_run(
        group,
        client,
        topics[entry],
        queues[entry],
        retry_queues[entry],
        shared[entry],
        suspended[entry],
    )
    turns[1:] |= epoch[1:] != epoch[:-1] + 1
    starts = np.flatnonzero(turns)
    lengths = np.diff(np.append(starts, len(entry)))
    first_entry = entry[starts]
    group, queues, retry_queues = group[starts], queues[first_entry], retry_queues[first_entry]
    return table_rows(
        "consumer_load",
        group_columns(prepared, group)
        | span_columns(prepared, epoch[starts], epoch[starts] + lengths)
        | _thresholds(prepared, group, queues + retry_queues)
        | {
            "client_id": encoded(prepared.encoded.names.clients, client[starts]),
            "topics": topics[first_entry],
            "queues": queues,
            "retry_queues": retry_queues,
            "shared_queues": shared[first_entry],
            "suspended": suspended[first_entry],
        },
    )


def _counts(prepared: PreparedGroups, holdings: Holdings) -> tuple[Ints, Ints, Ints]:
    """Return each entry's numbers of topics with a queue, queues, and queues of the retry topic.

    Cost: all cells.
    """
    topic_members, members = holdings.topic_members, len(prepared.roster)
    per_topic_member = np.zeros(len(topic_members.entry), np.int32)
    everyone, processes = ManyHolders(prepared), ProcessLoads(prepared)
    for piece in holdings.pieces():
        if isinstance(piece, Block):
            add_block(prepared, topic_members, piece, per_topic_member)
        elif isinstance(piece, Broadcast):
            everyone.add_broadcast(holdings.queues, piece)
        else:
            processes.add(holdings.queues, piece)
    everyone.put(topic_members, per_topic_member)
    countable = topic_members.countable

    def total(values: AnyInts, mask: np.ndarray) -> Ints:
        return np.bincount(topic_members.entry[mask], values[mask], minlength=members).astype(
            np.int64
        )

    counted = (
        total(per_topic_member > 0, countable),
        total(per_topic_member, countable),
        total(per_topic_member, ~countable),
    )
    shared = processes.counts()
    return counted[0] + shared[0], counted[1] + shared[1], counted[2] + shared[2]


def _thresholds(prepared: PreparedGroups, group: Ints, process_queues: Ints) -> dict[str, Ints]:
    """Return `protocol.pull_threshold.pull_threshold_per_queue` for many processes."""
    groups = prepared.encoded.groups
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

"""The rows of every ledger table for a block of groups; the small tables are built here."""

from collections.abc import Iterator
from itertools import starmap

import numpy as np
import pyarrow as pa

from rebalance_core.kernels import segments
from rebalance_core.kernels.cell_holders import Block
from rebalance_core.kernels.codes import encoded, names_of
from rebalance_core.kernels.loads import load_rows
from rebalance_core.kernels.metrics import metric_rows
from rebalance_core.kernels.outages import masterless_queues
from rebalance_core.kernels.ownership.changes import MOVE_KINDS, Differ, OwnerChanges
from rebalance_core.kernels.ownership.client_reach import ClientReach
from rebalance_core.kernels.ownership.holdings import Holdings
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups
from rebalance_core.kernels.ownership_rows import ownership_rows, queue_columns
from rebalance_core.kernels.pop_metrics import pop_metric_rows
from rebalance_core.kernels.queue_states import queue_state_rows
from rebalance_core.kernels.queues import Queues
from rebalance_core.kernels.segments import Ints
from rebalance_core.kernels.shared_loads import SharedLoads
from rebalance_core.kernels.starts.pop_starts import pop_start_rows
from rebalance_core.kernels.starts.pull_starts import PullStartArrays
from rebalance_core.kernels.table_rows import (
    CODED,
    dictionary_array,
    group_columns,
    plain_schema,
    span_columns,
    table_rows,
    until,
)
from rebalance_core.model.events import EVENT_TYPES
from rebalance_core.model.verdicts import EPOCH_STATUSES
from rebalance_core.strategies.pop import WHOLE_BROKER

ACTIONS = ("DROP", "ADD")


def diff_rows(prepared: PreparedGroups, queues: Queues, changes: OwnerChanges) -> pa.RecordBatch:
    """Return one row per change; names are coded."""
    epochs, names, epoch = prepared.epochs, prepared.encoded.names, changes.epoch
    return table_rows(
        "diffs",
        group_columns(prepared, epochs.group[epoch])
        | queue_columns(prepared, queues, changes.queue)
        | {
            "epoch": epochs.number[epoch],
            "change_ms": epochs.from_ms[epoch],
            "earliest_ms": epochs.from_ms[epoch],
            "latest_ms": changes.latest_ms,
            "action": dictionary_array(ACTIONS, changes.is_add.astype(int)),
            "client_id": encoded(names.clients, changes.client),
            "other_client_id": encoded(names.clients, changes.other),
            "kind": dictionary_array(MOVE_KINDS, changes.kind),
            "cause": dictionary_array(EVENT_TYPES, epochs.causes[epochs.first_cause[epoch]]),
        },
        names_encoded=True,
    )


SETTLED, FROZEN, EMPTY = range(len(EPOCH_STATUSES))  # codes, in the order of the words


def epoch_rows(prepared: PreparedGroups, holdings: Holdings) -> pa.RecordBatch:
    """Return one row per epoch.

    Cost: all cells of the groups.
    """
    epochs, count = prepared.epochs, len(prepared.epochs)
    added, dropped, orphaned, shared = (np.zeros(count, np.int64) for _ in range(4))
    differ = Differ(prepared, holdings.queues)
    for piece in holdings.pieces():
        (turned, is_add), epoch = differ.turns(piece), piece.cells.epoch
        added += np.bincount(turned[is_add], minlength=count)
        dropped += np.bincount(turned[~is_add], minlength=count)
        orphaned += np.bincount(epoch[piece.unheld], minlength=count)
        if not isinstance(piece, Block):
            shared += np.bincount(epoch[piece.holders > 1], minlength=count)
    grid = prepared.grid
    epoch = segments.ranges(epochs.of_group[:-1][grid.topics.group], np.diff(grid.topic_first))
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
            "status": dictionary_array(EPOCH_STATUSES, status),
            "transient": epochs.to_ms < epochs.latest_ms,
            "pop_queues": pop_queues,
            "masterless_queues": masterless_queues(prepared.encoded.events, epochs, grid),
        },
    )


def membership_rows(prepared: PreparedGroups) -> pa.RecordBatch:
    """Return one row per process and run of epochs with the same settings."""
    runs, states, names = prepared.roster.runs, prepared.membership.states, prepared.encoded.names
    rows, topics = prepared.encoded.topic_sets.members(states.subscriptions[runs.state])
    bounds = segments.pointers(np.bincount(rows, minlength=len(runs.group)))
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
            "language": names_of(names.words, states.language[runs.state]),
        },
    )


def pop_reach_rows(reach: ClientReach) -> Iterator[pa.RecordBatch]:
    """Yield one row per client, queue or broker, and run of epochs."""
    queues, whole = reach.answers.holdings.queues, reach.whole
    queue_id = np.full(len(whole), WHOLE_BROKER)
    yield _rows(reach, whole.major, queue_id, whole.minor, whole.begin, whole.end)
    for cells, single in reach.blocks():
        queue = cells.queue[single.major]
        yield _rows(
            reach,
            queues.topic_broker[queue],
            queues.queue_id[queue],
            single.minor,
            single.begin,
            single.end,
        )


def _rows(
    reach: ClientReach, topic_broker: Ints, queue_id: Ints, client: Ints, begin: Ints, end: Ints
) -> pa.RecordBatch:
    prepared = reach.answers.prepared
    brokers, names = prepared.grid.brokers, prepared.encoded.names
    return table_rows(
        "pop_reach",
        group_columns(prepared, brokers.group[topic_broker])
        | span_columns(prepared, begin, end)
        | {
            "topic": encoded(names.topics, brokers.topic[topic_broker]),
            "broker_name": encoded(names.brokers, brokers.broker[topic_broker]),
            "queue_id": queue_id,
            "client_id": encoded(names.clients, client),
        },
    )


Batches = Iterator[pa.RecordBatch]


def ledger_rows(
    table: str,
    prepared: PreparedGroups,
    holdings: Holdings,
    sharing: SharedLoads | None,
    *,
    names_encoded: bool = False,
) -> Batches:
    """Yield the rows of one table, one batch per piece.

    Args:
        table: the name of a table in `contracts.ledger.SIMULATED_TABLES`.
        prepared: the groups; those with a reason have no rows.
        holdings: the holdings from `prepared`.
        sharing: `sharing_of` for `prepared`.
        names_encoded: whether names in tables listed in `CODED` are dictionary arrays, as in
            `coded_schema`; otherwise, every table has its contract's types.
    """
    rows = _rows_of_table(table, prepared, holdings, sharing)
    if names_encoded or table not in CODED:
        return rows
    return (batch.cast(plain_schema(table)) for batch in rows)


def _rows_of_table(
    table: str, prepared: PreparedGroups, holdings: Holdings, sharing: SharedLoads | None
) -> Batches:
    queues = holdings.queues
    match table:
        case "epochs":
            yield epoch_rows(prepared, holdings)
        case "ownership":
            yield from (ownership_rows(prepared, queues, piece) for piece in holdings.pieces())
        case "diffs":
            pieces = holdings.changed_pieces()
            yield from (diff_rows(prepared, queues, changes) for _, changes in pieces)
        case "pull_starts":
            starts = PullStartArrays(prepared, holdings)
            yield from starmap(starts.rows, holdings.changed_pieces())
        case "memberships":
            yield membership_rows(prepared)
        case "consumer_load":
            yield load_rows(prepared, holdings, sharing)
        case "group_metrics":
            yield metric_rows(prepared, holdings, sharing)
        case "pop_reach" if sharing is not None:
            yield from pop_reach_rows(sharing.reach)
        case "pop_starts" if sharing is not None:
            yield pop_start_rows(sharing, prepared, holdings.part)
        case "pop_metrics" if sharing is not None:
            yield pop_metric_rows(sharing.reach, sharing.topics)
        case "queue_states":
            yield from queue_state_rows(prepared, holdings, sharing)

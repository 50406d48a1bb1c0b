"""Brokers without a master (rocketmq.md §15), for groups in which all had settled before."""

from __future__ import annotations

import numpy as np

from rebalance_core.kernels.codes.event_rows import Events, type_code
from rebalance_core.kernels.segments import NEVER, Ints, find, last_of_run, pair
from rebalance_core.kernels.state.epochs import Epochs
from rebalance_core.kernels.state.grid import Grid
from rebalance_core.model.events import MASTER_DOWN, MASTER_UP
from rebalance_core.protocol.windows import ORDER_LOCK_MS


def lost_masters(events: Events) -> Ints:
    """Ordinals of events that leave a broker without a master; an instant counts as a whole."""
    down = events.type == type_code(MASTER_DOWN)
    turns = np.flatnonzero(down | (events.type == type_code(MASTER_UP)))
    turns = turns[np.lexsort((turns, events.broker[turns], events.group[turns]))]
    last = last_of_run(events.group[turns], events.broker[turns], events.instant[turns])
    return turns[last & down[turns]]


def groups_unsettled_by_masters(events: Events, epochs: Epochs) -> Ints:
    """Groups in which a queue may change hands after a broker lost its master.

    In all others every window of a change, that of order locks included, had ended before.
    """
    lost = lost_masters(events)
    first_ms = np.full(len(epochs.of_group) - 1, NEVER, np.int64)
    np.minimum.at(first_ms, events.group[lost], events.at_ms[lost])
    groups = np.flatnonzero((first_ms != NEVER) & (np.diff(epochs.of_group) > 0))
    settled_ms = epochs.retry_latest_ms[epochs.of_group[groups + 1] - 1] + ORDER_LOCK_MS
    return groups[first_ms[groups] <= settled_ms]


def masterless_queues(events: Events, epochs: Epochs, grid: Grid) -> Ints:
    """By epoch: readable queues of brokers that have no master at some time of it.

    Masters are lost in the last epochs alone, as `groups_unsettled_by_masters` are left out.
    """
    lost, brokers = lost_masters(events), grid.brokers
    without = np.unique(pair(events.group[lost], events.broker[lost]))
    concerned = find(without, pair(brokers.group, np.maximum(brokers.broker, 0))) >= 0
    rows = np.flatnonzero(concerned & (np.diff(grid.broker_first) > 0))
    found = np.zeros(len(epochs), np.int64)
    last = epochs.of_group[brokers.group[rows] + 1] - 1
    np.add.at(found, last, grid.readable[grid.broker_first[rows + 1] - 1])
    return found

"""Runs of epochs in which a process is a member with the same settings."""

from dataclasses import dataclass, fields

import numpy as np

from rebalance_core.kernels import segments
from rebalance_core.kernels.encoded_events import Events
from rebalance_core.kernels.epochs import Epochs
from rebalance_core.kernels.processes import GONE, Membership
from rebalance_core.kernels.segments import Bools, Ints


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs of epochs in which a process is a member with unchanged settings.

    Sorted by group, client and first epoch or, if a client has two simultaneous processes, by
    group, client, process and first epoch.
    """

    group: Ints
    process: Ints
    client: Ints
    state: Ints
    start_mode: Ints
    from_epoch: Ints
    to_epoch: Ints
    """Exclusive."""


def find_runs(events: Events, membership: Membership, epochs: Epochs) -> tuple[Runs, Ints]:
    """Return the runs of every process, and the groups whose runs are incomplete.

    In those groups, a process rejoined in place and changed only its start mode, which does not
    begin an epoch.
    """
    changes = membership.changes
    instant = events.instant[changes.ordinal]
    first, last = segments.ends_of_runs(changes.process, instant)
    process, state, mode = changes.process[last], changes.after[last], changes.start_mode[last]
    turned = changes.before[first] != state
    begins = segments.first_of_run(process)
    same = ~turned & (state != GONE) & ~begins & (mode != np.roll(mode, 1))
    back_changed = segments.distinct(membership.processes.group[process[same]])
    epoch = epochs.at_instant[instant[last]]
    kept = turned & (epoch >= 0)
    process, state, mode, epoch = (a[kept] for a in (process, state, mode, epoch))
    group = membership.processes.group[process]
    end = np.where(segments.last_of_run(process), epochs.of_group[group + 1], np.roll(epoch, -1))
    live = state != GONE
    columns = (group, process, membership.processes.client[process], state, mode, epoch, end)
    group, process, client, state, mode, epoch, end = (a[live] for a in columns)
    order = np.lexsort((epoch, client, group))
    ordered = (a[order] for a in (group, process, client, state, mode, epoch, end))
    return Runs(*ordered), back_changed


def overlapping(runs: Runs) -> Ints:
    """Return the groups in which two processes with the same client id are members at once."""
    again = ~segments.first_of_run(runs.group, runs.client)
    overlap = again & (runs.from_epoch < np.roll(runs.to_epoch, 1))
    return segments.distinct(runs.group[overlap])


def processes_at_once(runs: Runs) -> Ints:
    """Return the maximum number of simultaneous processes of each client, in the order of the
    runs.
    """
    clients = segments.first_of_run(runs.group, runs.client)
    client = np.tile(np.cumsum(clients) - 1, 2)
    epoch = np.concatenate([runs.from_epoch, runs.to_epoch])
    step = np.repeat([1, -1], len(runs.group))
    order = np.lexsort((step, epoch, client))  # departures precede joins
    total = np.cumsum(step[order])
    bounds = np.searchsorted(client[order], np.arange(int(clients.sum()) + 1))
    most: Ints = segments.extreme(np.maximum, total, bounds, 0)  # every client's steps add up to 0
    return most


def by_process(runs: Runs, groups: Ints) -> Runs:
    """Return the runs, with those of each process adjacent in some groups."""
    process = np.where(np.isin(runs.group, groups), runs.process, 0)
    order = np.lexsort((runs.from_epoch, process, runs.client, runs.group))
    return Runs(*(getattr(runs, field.name)[order] for field in fields(runs)))


def uniform_groups(runs: Runs, subscriptions: Ints, group_count: int) -> Bools:
    """Return the groups whose members always subscribe to the same topics."""
    bounds = np.searchsorted(runs.group, np.arange(group_count + 1))
    fewest = segments.extreme(np.minimum, subscriptions, bounds, 0)
    return fewest == segments.extreme(np.maximum, subscriptions, bounds, 0)

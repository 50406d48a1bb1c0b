"""The members of every epoch: cidAll of each group, and what became of each member.

An *entry* is one member in one epoch. Entries are in cidAll's order within an epoch, so the
member at index i of epoch e is entry ``first[e] + i``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rebalance_core.kernels.activity import GroupTopics
from rebalance_core.kernels.cells import ABSENT, NOBODY
from rebalance_core.kernels.epochs import Epochs
from rebalance_core.kernels.event_rows import Events
from rebalance_core.kernels.fleet import Fleet
from rebalance_core.kernels.membership import GONE, Membership
from rebalance_core.kernels.segments import (
    Bools,
    Ints,
    extreme,
    first_of_run,
    last_of_run,
    pointers,
    ranges,
)

MASK_BITS = 62
"""Group topics that the mask of a member can tell apart."""
ALL_TOPICS = -1
MOST_NARROW = np.iinfo(np.int32).max
"""Indexes of so many entries fit 32 bits."""


@dataclass(frozen=True, slots=True)
class Runs:
    """One value a stretch of epochs in which a process is a member with the same settings.

    By group, client and first epoch.
    """

    group: Ints
    process: Ints
    client: Ints
    state: Ints
    start_mode: Ints
    from_epoch: Ints
    to_epoch: Ints
    """Exclusive."""


@dataclass(frozen=True, slots=True)
class Roster:
    """Every member of every epoch.

    Arrays by entry have two more values, for the entries `NOBODY` and `ABSENT` (as indexes -1 and
    -2): no client (the code of the entry itself), no process, no topic and nobody that follows.
    """

    runs: Runs
    first: Ints
    """Where each epoch's entries begin, and the end; shape (epochs + 1,)."""
    epoch: Ints
    """By entry, as the five that follow, but without the two more."""
    run: Ints
    """The run of each entry; without the two more, too."""
    client: Ints
    process: Ints
    topics: Ints
    """Bit i is set if the member subscribes topic i of its group; `ALL_TOPICS`: every one."""
    following: Ints
    """The same client's entry in the group's next epoch; -1: it is gone, or there is none."""
    entry_at: Ints
    """Entries in the order of (group, client, epoch)."""
    uniform: Bools
    """By epoch: all members subscribe the same topics."""

    def __reduce__(self) -> tuple[Callable[..., Roster], tuple[object, ...]]:
        """A small pickle: by far the largest arrays of a world follow from their runs."""
        entries = (self.run, self.following[:-2], self.entry_at)
        narrow = tuple(a.astype(np.int32) if len(a) <= MOST_NARROW else a for a in entries)
        topics = np.zeros(len(self.runs.group), np.int64)
        topics[self.run] = self.topics[:-2]
        return _widened, (self.runs, self.first, topics, *narrow, self.uniform)


def _widened(
    runs: Runs,
    first: Ints,
    topics: Ints,
    run: Ints,
    following: Ints,
    entry_at: Ints,
    uniform: Bools,
) -> Roster:
    """A roster from its pickle; ``topics`` are by run."""
    run, following, entry_at = (a.astype(np.int64) for a in (run, following, entry_at))
    return Roster(
        runs,
        first,
        np.repeat(np.arange(len(first) - 1), np.diff(first)),
        run,
        np.append(runs.client[run], [ABSENT, NOBODY]),
        np.append(runs.process[run], [-1, -1]),
        np.append(topics[run], [0, 0]),
        np.append(following, [-1, -1]),
        entry_at,
        uniform,
    )


def find_runs(events: Events, membership: Membership, epochs: Epochs) -> tuple[Runs, Ints]:
    """The runs of every process, and groups whose runs do not tell everything.

    Those are groups in which a process came back in place with another start mode only: that
    begins no epoch.
    """
    changes = membership.changes
    instant = events.instant[changes.ordinal]
    first, last = first_of_run(changes.process, instant), last_of_run(changes.process, instant)
    process, state, mode = changes.process[last], changes.after[last], changes.start_mode[last]
    turned = changes.before[first] != state
    begins = first_of_run(process)
    same = ~turned & (state != GONE) & ~begins & (mode != np.roll(mode, 1))
    back_changed = np.unique(membership.processes.group[process[same]])
    epoch = epochs.at_instant[instant[last]]
    kept = turned & (epoch >= 0)
    process, state, mode, epoch = (a[kept] for a in (process, state, mode, epoch))
    group = membership.processes.group[process]
    end = np.where(last_of_run(process), epochs.of_group[group + 1], np.roll(epoch, -1))
    live = state != GONE
    columns = (group, process, membership.processes.client[process], state, mode, epoch, end)
    group, process, client, state, mode, epoch, end = (a[live] for a in columns)
    order = np.lexsort((epoch, client, group))
    ordered = (a[order] for a in (group, process, client, state, mode, epoch, end))
    return Runs(*ordered), back_changed


def overlapping(runs: Runs) -> Ints:
    """Groups in which two processes with one client id are members of the same epoch."""
    again = ~first_of_run(runs.group, runs.client)
    overlap = again & (runs.from_epoch < np.roll(runs.to_epoch, 1))
    return np.unique(runs.group[overlap])


def build_roster(
    fleet: Fleet, membership: Membership, epochs: Epochs, topics: GroupTopics, runs: Runs
) -> Roster:
    """The entries of every epoch.

    Args:
        fleet: the groups.
        membership: states of the members.
        epochs: of all groups.
        topics: of all groups.
        runs: without two of one client in one epoch.
    """
    lengths = runs.to_epoch - runs.from_epoch
    run = np.repeat(np.arange(len(lengths)), lengths)
    epoch = ranges(runs.from_epoch, lengths)
    # entries by (epoch, client); numpy sorts 16 bits by counting, and few chunks need more
    small = len(epochs) <= np.iinfo(np.uint16).max
    entry_of = np.argsort(epoch.astype(np.uint16) if small else epoch, kind="stable")
    entry_at = np.empty(len(entry_of), np.int64)
    entry_at[entry_of] = np.arange(len(entry_of))
    client = runs.client[run]
    goes_on = np.zeros(len(run), np.bool_)
    goes_on[:-1] = (client[1:] == client[:-1]) & (epoch[1:] == epoch[:-1] + 1)
    goes_on[:-1] &= runs.group[run[1:]] == runs.group[run[:-1]]
    following = np.where(goes_on, np.roll(entry_at, -1), -1)[entry_of]
    subscriptions = membership.states.subscriptions[runs.state]
    first = pointers(np.bincount(epoch, minlength=len(epochs)))
    run = run[entry_of]
    sets = subscriptions[run]
    fewest = extreme(np.minimum, sets, first, 0)
    return Roster(
        runs,
        first,
        epoch[entry_of],
        run,
        np.append(client[entry_of], [ABSENT, NOBODY]),
        np.append(runs.process[run], [-1, -1]),
        np.append(_masks(fleet, topics, runs, subscriptions)[run], [0, 0]),
        np.append(following, [-1, -1]),
        entry_at,
        fewest == extreme(np.maximum, sets, first, 0),
    )


def uniform_groups(runs: Runs, subscriptions: Ints, group_count: int) -> Bools:
    """Groups whose members all subscribe the same topics, always."""
    bounds = np.searchsorted(runs.group, np.arange(group_count + 1))
    fewest = extreme(np.minimum, subscriptions, bounds, 0)
    return fewest == extreme(np.maximum, subscriptions, bounds, 0)


def topic_slots(topics: GroupTopics) -> Ints:
    """The index of each group topic among those of its group."""
    first = np.flatnonzero(first_of_run(topics.group))
    return np.arange(len(topics.group)) - np.repeat(
        first, np.diff(np.append(first, len(topics.group)))
    )


def _masks(fleet: Fleet, topics: GroupTopics, runs: Runs, subscriptions: Ints) -> Ints:
    """Bits by the group topics' slots; the retry topic is everybody's."""
    slots = np.append(topic_slots(topics), 0)  # index -1 is there even if no group has a topic
    rows, topic = fleet.topic_sets.members(subscriptions)
    group_topic = topics.index(runs.group[rows], topic)
    bits = np.where(group_topic >= 0, np.int64(1) << np.minimum(slots[group_topic], MASK_BITS), 0)
    mask = np.zeros(len(runs.group), np.int64)
    np.bitwise_or.at(mask, rows, bits)
    retry = topics.index(runs.group, fleet.groups.retry_topic[runs.group])
    everybody = np.where(
        fleet.groups.has_retry[runs.group] & (retry >= 0),
        np.int64(1) << np.minimum(slots[retry], MASK_BITS),
        0,
    )
    uniform = uniform_groups(runs, subscriptions, len(fleet.groups))
    return np.where(uniform[runs.group], ALL_TOPICS, mask | everybody)


def subscribes(roster: Roster, entry: Ints, slot: Ints) -> Bools:
    """Whether each entry's member subscribes the group topic of this slot."""
    return (roster.topics[entry] >> np.minimum(slot, MASK_BITS)) & 1 > 0

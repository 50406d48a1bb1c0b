"""The members of every epoch: cidAll of each group, and the history of each member.

An *entry* is one member in one epoch. Entries are in cidAll's order within an epoch, so the member
at index i of epoch e is entry ``first[e] + i``.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from rebalance_core.kernels import segments
from rebalance_core.kernels.cell_holders import ABSENT, NO_MEMBER
from rebalance_core.kernels.encoded_groups import EncodedGroups
from rebalance_core.kernels.epochs import Epochs
from rebalance_core.kernels.processes import Membership
from rebalance_core.kernels.runs import Runs, by_process, overlapping, uniform_groups
from rebalance_core.kernels.segments import AnyInts, Bools, Counts, Ints
from rebalance_core.kernels.topic_periods import GroupTopics
from rebalance_core.kernels.topic_runs import find_reading

MASK_BITS = 62
"""The number of group topics that a member's mask can distinguish."""
ALL_TOPICS = -1
MOST_NARROW = np.iinfo(np.int32).max
"""The maximum number of entries whose indexes fit into 32 bits."""


@dataclass(frozen=True)
class Roster:
    """Every member of every epoch.

    There are far more entries than anything else, so their arrays are built from the runs on
    demand. Methods that take entries also accept `NO_MEMBER` and `ABSENT`.
    """

    runs: Runs
    topics_of_run: Ints
    """Bit i is set if the member subscribes to topic i of its group; `ALL_TOPICS`: all of them."""
    topic_slots: Ints
    """The bit of each group topic."""
    subscribed: Ints
    """The (run, group topic) pairs of subscriptions in groups with more topics than bits, sorted;
    these runs have no bits set.
    """
    first: Ints
    """Where each epoch's entries begin, and the end; shape (epochs + 1,)."""
    uniform: Bools
    """For each epoch, whether all members subscribe to the same topics."""
    twice: Ints
    """The groups in which a client ever has two simultaneous processes."""

    def __len__(self) -> int:
        return int(self.first[-1])

    @cached_property
    def entry_at(self) -> AnyInts:
        """The entries ordered by (group, client, epoch)."""
        entry_at = np.empty(len(self), self._index_type)
        entry_at[self._node] = np.arange(len(self), dtype=self._index_type)
        return entry_at

    @cached_property
    def copy(self) -> Counts:
        """The number of entries of the same client that precede each entry in its epoch."""
        copy = np.zeros(len(self), np.int32)
        if len(self.twice):
            group = self.runs.group[self.run[:-2]]
            entry = np.flatnonzero(np.isin(group, self.twice))
            copy[entry] = segments.rank(self.epoch[entry], self.client(entry))
        return copy

    def processes_of(self, first: Ints) -> Ints:
        """Count the processes of each entry's client.

        The entry must be the client's first one in the epoch.
        """
        last = self._last_copy
        return last[np.searchsorted(last[:-1], first)] - first + 1

    @cached_property
    def _last_copy(self) -> Ints:
        """The last entry of each client in each epoch, followed by a 0."""
        ends = np.append(self.copy[1:] == 0, True)
        return np.append(np.flatnonzero(ends[: len(self)]), 0)

    @cached_property
    def distinct(self) -> Ints:
        """The number of clients of each epoch."""
        return segments.sums(self.copy == 0, self.first)

    @cached_property
    def by_client(self) -> AnyInts:
        """The entries by group, client and epoch; additional entries of a client follow all others.

        Equal to `entry_at` without copies.
        """
        entries = self.entry_at.copy()
        if len(self.twice):
            group = self.runs.group[self.run[entries]]
            position = np.flatnonzero(np.isin(group, self.twice))
            mine = entries[position]
            keys = (self.epoch[mine], self.copy[mine] > 0, self.client(mine), group[position])
            entries[position] = mine[np.lexsort(keys)]
        return entries

    @cached_property
    def node_of_run(self) -> Ints:
        """The offset of each run: its entry in epoch e is ``entry_at[offset + e]``."""
        return segments.pointers(self._lengths)[:-1] - self.runs.from_epoch

    @cached_property
    def run(self) -> AnyInts:
        """The run of each entry, followed by runs for `ABSENT` and `NO_MEMBER`."""
        runs = np.arange(len(self.runs.group) + 2, dtype=self._index_type)
        return np.append(np.repeat(runs[:-2], self._lengths)[self._node], runs[-2:])

    @cached_property
    def epoch(self) -> Ints:
        """The epoch of each entry."""
        return np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))

    @cached_property
    def index(self) -> AnyInts:
        """The number of entries that precede each entry in its epoch."""
        entries = np.arange(len(self), dtype=self._index_type)
        return entries - np.repeat(self.first[:-1], np.diff(self.first)).astype(self._index_type)

    def client(self, entry: AnyInts) -> Ints:
        """Return the client of each entry; `ABSENT` and `NO_MEMBER` stand for themselves."""
        return self._clients[self.run[entry]]

    def process(self, entry: AnyInts) -> Ints:
        """Return the process of each entry, or -1."""
        return self._processes[self.run[entry]]

    def subscribes(self, entry: AnyInts, group_topic: Ints) -> Bools:
        """Return True where each entry's member subscribes to a group topic."""
        return self.reads(self.run[entry], group_topic)

    def reads(self, run: AnyInts, group_topic: Ints) -> Bools:
        """Return True where the member of each run subscribes to a group topic."""
        topics = self._topics[run]
        reads: Bools = (topics >> self.topic_slots[group_topic]) & 1 > 0
        if len(self.subscribed):
            reads |= segments.find(self.subscribed, segments.pair(run, group_topic)) >= 0
        return reads

    def following(self, entry: AnyInts) -> AnyInts:
        """Return the same client's entry in the group's next epoch, or -1."""
        if not len(self):
            return np.full(len(entry), -1)
        node = self._node[np.maximum(entry, 0)]
        following = self.entry_at[np.minimum(node + 1, len(self) - 1)]
        following[(node == self._last_nodes[self.run[entry]]) | (entry < 0)] = -1
        return following

    @cached_property
    def _clients(self) -> Ints:
        """The client for each value of `run`; arrays from here on are indexed in the same way."""
        return np.append(self.runs.client, [ABSENT, NO_MEMBER])

    @cached_property
    def _processes(self) -> Ints:
        return np.append(self.runs.process, [-1, -1])

    @cached_property
    def _topics(self) -> Ints:
        return np.append(self.topics_of_run, [0, 0])

    @cached_property
    def _last_nodes(self) -> Ints:
        """The position in `entry_at` of each run's last entry; -1 if the client stays."""
        runs = self.runs
        goes_on = ~segments.last_of_run(runs.group, runs.client)
        goes_on &= np.roll(runs.from_epoch, -1) == runs.to_epoch
        return np.append(np.where(goes_on, -1, segments.pointers(self._lengths)[1:] - 1), [0, 0])

    @property
    def _lengths(self) -> Ints:
        return self.runs.to_epoch - self.runs.from_epoch

    @property
    def _index_type(self) -> type[np.signedinteger[Any]]:
        return np.int32 if len(self) <= MOST_NARROW else np.int64

    @cached_property
    def _node(self) -> Ints:
        """The position of each entry in the order of `entry_at`."""
        epoch = segments.ranges(self.runs.from_epoch, self._lengths)
        # numpy sorts 16-bit integers by counting, and few chunks need wider ones
        small = len(self.first) <= np.iinfo(np.uint16).max
        return np.argsort(epoch.astype(np.uint16) if small else epoch, kind="stable")


def build_roster(
    encoded: EncodedGroups, membership: Membership, epochs: Epochs, topics: GroupTopics, runs: Runs
) -> Roster:
    """Return the entries of every epoch.

    Args:
        encoded: the groups.
        membership: the states of the members.
        epochs: the epochs of all groups.
        topics: the topics of all groups.
        runs: the runs of all groups, as `find_runs` returns them.
    """
    twice = overlapping(runs)
    runs = by_process(runs, twice) if len(twice) else runs
    subscriptions = membership.states.subscriptions[runs.state]
    first = segments.pointers(segments.covered(runs.from_epoch, runs.to_epoch, len(epochs)))
    many = np.bincount(topics.group, minlength=len(encoded.groups)) > MASK_BITS
    many &= ~uniform_groups(runs, subscriptions, len(encoded.groups))
    reading = find_reading(encoded, membership, runs, topics, many)
    roster = Roster(
        runs=runs,
        topics_of_run=np.where(many[runs.group], 0, _masks(encoded, topics, runs, subscriptions)),
        topic_slots=np.minimum(segments.rank(topics.group), MASK_BITS),
        subscribed=np.sort(segments.pair(reading.run, reading.group_topic)),
        first=first,
        uniform=np.zeros(0, np.bool_),
        twice=twice,
    )
    sets = subscriptions[roster.run[:-2]]
    fewest = segments.extreme(np.minimum, sets, first, 0)
    return replace(roster, uniform=fewest == segments.extreme(np.maximum, sets, first, 0))


def _masks(encoded: EncodedGroups, topics: GroupTopics, runs: Runs, subscriptions: Ints) -> Ints:
    """Return the bits for the group topics' slots; every member reads the retry topic."""
    # the slot of each group topic within its group; index -1 exists even if no group has a topic
    slots = np.append(segments.rank(topics.group), 0)
    rows, topic = encoded.topic_sets.members(subscriptions)
    group_topic = topics.index(runs.group[rows], topic)
    bits = np.where(group_topic >= 0, np.int64(1) << np.minimum(slots[group_topic], MASK_BITS), 0)
    mask = np.zeros(len(runs.group), np.int64)
    np.bitwise_or.at(mask, rows, bits)
    retry = topics.index(runs.group, encoded.groups.retry_topic[runs.group])
    everybody = np.where(
        encoded.groups.has_retry[runs.group] & (retry >= 0),
        np.int64(1) << np.minimum(slots[retry], MASK_BITS),
        0,
    )
    uniform = uniform_groups(runs, subscriptions, len(encoded.groups))
    return np.where(uniform[runs.group], ALL_TOPICS, mask | everybody)

"""When the processes of shared groups rebalance a topic, and how long each keeps what it then got.

In a shared group several processes may hold a queue: two of one client id, or members that divide
by different strategies; and a suspended member keeps what others get.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from rebalance_core.kernels.codes import eligibility
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups
from rebalance_core.kernels.periods import Periods
from rebalance_core.kernels.segments import (
    NEVER,
    Bools,
    Ints,
    first_of_run,
    last_of_run,
    ranges,
)
from rebalance_core.kernels.state.reading import Reading, find_reading
from rebalance_core.model.group_settings import BROADCASTING


@dataclass(frozen=True, slots=True)
class Passes:
    """Stretches of epochs in which a process rebalances a topic.

    One value a stretch; by group topic, process and first epoch. A process divides a topic by one
    strategy throughout a stretch.
    """

    group_topic: Ints
    process: Ints
    begin: Ints
    end: Ints
    """Exclusive."""
    kept: Ints
    """Until this epoch, exclusive, the process keeps what the last pass gave it: the topic is
    frozen, or the member suspended."""
    node: Ints
    """In epoch e the process is entry ``entry_at[node + e]`` of the roster."""
    kind: Ints
    """`eligibility.EVERYONE`, `eligibility.LISTED`, or another for strategies that divide."""
    allocation: Ints
    """The strategy: index into the strategies of the coded."""
    number: Ints
    """Of the strategy in its group, as `Divisions.number`; -1: none that divides."""

    def where(self, rows: Bools | Ints) -> Passes:
        """Some of the stretches."""
        return Passes(*(getattr(self, f.name)[rows] for f in fields(self)))

    @property
    def periods(self) -> Periods:
        """The stretches by (group topic, process)."""
        return Periods(self.group_topic, self.process, self.begin, self.end)


def find_passes(prepared: PreparedGroups) -> Passes:
    """The stretches of all shared groups. Cost: the runs, times the topics of each."""
    runs, states = prepared.roster.runs, prepared.membership.states
    reading = _reading(prepared)
    suspended = states.suspended[runs.state]
    kept = _kept(prepared, reading, suspended)
    active = ~suspended[reading.run]
    run, group_topic, kept = reading.run[active], reading.group_topic[active], kept[active]
    state = runs.state[run]
    allocation = prepared.coded.divisions.allocations(states.strategy[state], states.version[state])
    kind = _kinds(prepared, states.message_model[state], allocation)
    # a topic without a readable queue is frozen, but not for CONFIG
    listed, whole = kind == eligibility.LISTED, (runs.from_epoch[run], runs.to_epoch[run])
    stretches = [
        parts(prepared, mask, np.flatnonzero(rows), group_topic, *whole)
        for rows, mask in ((listed, prepared.grid.active), (~listed, prepared.grid.queues > 0))
    ]
    of, begin, end = (np.concatenate(columns) for columns in zip(*stretches, strict=True))
    process = runs.process[run[of]]
    order = np.lexsort((begin, process, group_topic[of]))
    of, begin, end, process = of[order], begin[order], end[order], process[order]
    following = np.append(begin[1:], 0)
    last = last_of_run(group_topic[of], process)
    kept = np.where(last, kept[of], np.minimum(kept[of], following))
    if prepared.grid.elsewhere.any():
        kept = np.minimum(kept, _next_elsewhere(prepared, group_topic[of], begin))
    return Passes(
        group_topic[of], process, begin, end, kept,
        prepared.roster.node_of_run[run[of]], kind[of], allocation[of],
        prepared.coded.divisions.numbers(runs.group[run[of]], allocation[of]),
    )  # fmt: skip


def subscribed_by(prepared: PreparedGroups) -> Periods:
    """Epochs in which some process of a client subscribes a topic: by (group topic, client)."""
    runs, reading = prepared.roster.runs, _reading(prepared)
    run = reading.run
    return Periods.union(
        reading.group_topic, runs.client[run], runs.from_epoch[run], runs.to_epoch[run]
    )


def present(prepared: PreparedGroups) -> Periods:
    """Epochs in which a process of a shared group is a member: by (0, process)."""
    runs = prepared.roster.runs
    run = np.flatnonzero(prepared.shared[runs.group])
    process = runs.process[run]
    return Periods.union(np.zeros_like(process), process, runs.from_epoch[run], runs.to_epoch[run])


def _reading(prepared: PreparedGroups) -> Reading:
    return find_reading(
        prepared.coded, prepared.membership, prepared.roster.runs, prepared.grid.topics,
        prepared.shared,
    )  # fmt: skip


def _kinds(prepared: PreparedGroups, model: Ints, allocation: Ints) -> Ints:
    kinds = np.array([*map(eligibility.kind_of, prepared.coded.strategies), -1], np.int64)
    words = prepared.coded.names.words
    everyone = np.isin(words, [BROADCASTING])[model]
    return np.where(everyone, eligibility.EVERYONE, kinds[allocation])


def _kept(prepared: PreparedGroups, reading: Reading, suspended: Bools) -> Ints:
    """By run and topic: until when the process is a member that reads the topic or is suspended."""
    runs = prepared.roster.runs
    process, pairs = (
        runs.process[reading.run],
        first_of_run(reading.group_topic, runs.process[reading.run]),
    )
    asleep = np.flatnonzero(suspended & prepared.shared[runs.group])
    by_process = np.argsort(process[pairs], kind="stable")
    sorted_process = process[pairs][by_process]
    first = np.searchsorted(sorted_process, runs.process[asleep])
    count = np.searchsorted(sorted_process, runs.process[asleep], side="right") - first
    topic = reading.group_topic[pairs][by_process][ranges(first, count)]
    run = np.concatenate([reading.run, np.repeat(asleep, count)])
    topic = np.concatenate([reading.group_topic, topic])
    held = Periods.union(topic, runs.process[run], runs.from_epoch[run], runs.to_epoch[run])
    at = held.at(reading.group_topic, process, runs.from_epoch[reading.run])
    return held.end[at]


def _next_elsewhere(prepared: PreparedGroups, group_topic: Ints, epoch: Ints) -> Ints:
    """The first epoch from this one on of which the grid does not say who takes from the topic."""
    grid, of_group = prepared.grid, prepared.epochs.of_group[:-1]
    cells = np.arange(len(grid.elsewhere))
    following = np.where(grid.elsewhere, cells, NEVER)
    following = np.minimum.accumulate(following[::-1])[::-1]
    offset = grid.topic_first[group_topic] - of_group[grid.topics.group[group_topic]]
    found = following[epoch + offset]
    return np.where(found < grid.topic_first[group_topic + 1], found - offset, NEVER)


def parts(
    prepared: PreparedGroups, mask: Bools, rows: Ints, group_topic: Ints, begin: Ints, end: Ints
) -> tuple[Ints, Ints, Ints]:
    """(row, begin, end) of each part of [begin, end) in which the row's topic cells are True."""
    grid, epochs = prepared.grid, prepared.epochs
    first = grid.topic_first[:-1]
    of_cell = np.repeat(np.arange(len(first)), np.diff(grid.topic_first))
    opens = np.flatnonzero(mask & first_of_run(mask, of_cell))
    closes = np.flatnonzero(mask & last_of_run(mask, of_cell))
    of = of_cell[opens]
    offset = (epochs.of_group[:-1][grid.topics.group] - first)[of]
    true = Periods(of, np.zeros_like(of), opens + offset, closes + 1 + offset)
    asker, period = true.meeting(group_topic[rows], np.zeros_like(rows), begin[rows], end[rows])
    row = rows[asker]
    begin, end = np.maximum(begin[row], true.begin[period]), np.minimum(end[row], true.end[period])
    return row, begin, end

"""Times at which processes in shared groups rebalance a topic, and how long each keeps the result.

In a shared group several processes may hold a queue: two processes with one client id, members with
different strategies, or a suspended member and a new owner.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rebalance_core.kernels import group_kinds, segments
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups
from rebalance_core.kernels.periods import Periods
from rebalance_core.kernels.segments import Bools, Ints
from rebalance_core.kernels.topic_runs import TopicRuns, find_reading
from rebalance_core.model.group_settings import BROADCASTING


@dataclass(frozen=True, slots=True)
class Passes:
    """Runs of epochs in which a process rebalances a topic.

    Each array has one value per stretch, sorted by group topic, process and first epoch. A process
    allocates a topic by one strategy throughout a stretch.
    """

    group_topic: Ints
    process: Ints
    begin: Ints
    end: Ints
    """Exclusive."""
    kept: Ints
    """The epoch, exclusive, until which the process keeps the last pass's result because the topic
    is frozen or the member is suspended.
    """
    node: Ints
    """In epoch e the process is entry ``entry_at[node + e]`` of the roster."""
    kind: Ints
    """As in `group_rows.Groups`."""
    allocation: Ints
    """The strategy, as an index into `encoded_groups.EncodedGroups.strategies`."""
    number: Ints
    """The number of the strategy in its group, as in `strategy_kernels.Kernels.divided_by`; -1:
    no strategy divides.
    """

    @property
    def periods(self) -> Periods:
        """The stretches by (group topic, process)."""
        return Periods(self.group_topic, self.process, self.begin, self.end)


def find_passes(prepared: PreparedGroups) -> Passes:
    """Return the stretches of all shared groups.

    Cost: the number of runs times the topics of each.
    """
    runs, states = prepared.roster.runs, prepared.membership.states
    reading = _reading(prepared)
    suspended = states.suspended[runs.state]
    kept = _kept(prepared, reading, suspended)
    active = ~suspended[reading.run]
    run, group_topic, kept = reading.run[active], reading.group_topic[active], kept[active]
    state = runs.state[run]
    allocation = prepared.encoded.member_strategies.allocations(
        states.strategy[state], states.rules[state]
    )
    kind = _kinds(prepared, states.message_model[state], allocation)
    # without a readable queue, a topic is frozen, except under CONFIG
    listed, whole = kind == group_kinds.CONFIGURED, (runs.from_epoch[run], runs.to_epoch[run])
    stretches = [
        parts(prepared, mask, np.flatnonzero(rows), group_topic, *whole)
        for rows, mask in ((listed, prepared.grid.active), (~listed, prepared.grid.queues > 0))
    ]
    of, begin, end = (np.concatenate(columns) for columns in zip(*stretches, strict=True))
    process = runs.process[run[of]]
    order = np.lexsort((begin, process, group_topic[of]))
    of, begin, end, process = of[order], begin[order], end[order], process[order]
    following = np.append(begin[1:], 0)
    last = segments.last_of_run(group_topic[of], process)
    kept = np.where(last, kept[of], np.minimum(kept[of], following))
    if prepared.grid.elsewhere.any():
        kept = np.minimum(kept, _next_elsewhere(prepared, group_topic[of], begin))
    return Passes(
        group_topic=group_topic[of],
        process=process,
        begin=begin,
        end=end,
        kept=kept,
        node=prepared.roster.node_of_run[run[of]],
        kind=kind[of],
        allocation=allocation[of],
        number=prepared.encoded.member_strategies.numbers(runs.group[run[of]], allocation[of]),
    )


def subscribed_by(prepared: PreparedGroups) -> Periods:
    """Return the epochs in which a client's processes subscribe to a topic, by (group topic,
    client).
    """
    runs, reading = prepared.roster.runs, _reading(prepared)
    run = reading.run
    return Periods.union(
        reading.group_topic, runs.client[run], runs.from_epoch[run], runs.to_epoch[run]
    )


def present(prepared: PreparedGroups) -> Periods:
    """Return the epochs in which a process of a shared group is a member, by (0, process)."""
    runs = prepared.roster.runs
    run = np.flatnonzero(prepared.shared[runs.group])
    process = runs.process[run]
    return Periods.union(np.zeros_like(process), process, runs.from_epoch[run], runs.to_epoch[run])


def _reading(prepared: PreparedGroups) -> TopicRuns:
    return find_reading(
        prepared.encoded,
        prepared.membership,
        prepared.roster.runs,
        prepared.grid.topics,
        prepared.shared,
    )


def _kinds(prepared: PreparedGroups, model: Ints, allocation: Ints) -> Ints:
    kinds = group_kinds.kinds_of(prepared.encoded.strategies)
    everyone = np.isin(prepared.encoded.names.words, [BROADCASTING])[model]
    return np.where(everyone, group_kinds.BROADCAST, kinds[allocation])


def _kept(prepared: PreparedGroups, reading: TopicRuns, suspended: Bools) -> Ints:
    """Return the epoch until which each run's process reads its topic as a member or is
    suspended.
    """
    runs = prepared.roster.runs
    process = runs.process[reading.run]
    pairs = segments.first_of_run(reading.group_topic, process)
    asleep = np.flatnonzero(suspended & prepared.shared[runs.group])
    by_process = np.argsort(process[pairs], kind="stable")
    asker, row = segments.matching(process[pairs][by_process], runs.process[asleep])
    run = np.concatenate([reading.run, asleep[asker]])
    topic = np.concatenate([reading.group_topic, reading.group_topic[pairs][by_process][row]])
    held = Periods.union(topic, runs.process[run], runs.from_epoch[run], runs.to_epoch[run])
    period = held.at(reading.group_topic, process, runs.from_epoch[reading.run])
    return held.end[period]


def _next_elsewhere(prepared: PreparedGroups, group_topic: Ints, epoch: Ints) -> Ints:
    """Return the first epoch from this one on for which the grid does not show the topic's
    takers.
    """
    grid, of_group = prepared.grid, prepared.epochs.of_group[:-1]
    cells = np.arange(len(grid.elsewhere))
    following = np.where(grid.elsewhere, cells, segments.NEVER)
    following = np.minimum.accumulate(following[::-1])[::-1]
    offset = grid.topic_first[group_topic] - of_group[grid.topics.group[group_topic]]
    next_cell = following[epoch + offset]
    return np.where(
        next_cell < grid.topic_first[group_topic + 1], next_cell - offset, segments.NEVER
    )


def parts(
    prepared: PreparedGroups, mask: Bools, rows: Ints, group_topic: Ints, begin: Ints, end: Ints
) -> tuple[Ints, Ints, Ints]:
    """Return (row, begin, end) of the parts of each row's [begin, end) in which ``mask`` is True
    for its topic.
    """
    grid, epochs = prepared.grid, prepared.epochs
    sizes = np.diff(grid.topic_first)
    epoch = segments.ranges(epochs.of_group[:-1][grid.topics.group], sizes)
    true = Periods.of_stretches(mask, np.repeat(np.arange(len(sizes)), sizes), epoch)
    asker, begin, end = true.parts(group_topic[rows], np.zeros_like(rows), begin[rows], end[rows])
    return rows[asker], begin, end

"""Who holds the queues of shared groups: passes of their processes, and spans of cells, one
for each.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from rebalance_core.kernels import group_rows, segments
from rebalance_core.kernels.cells import Cells, Queues, Shared, Spans, Tenures
from rebalance_core.kernels.ownership.layout import listed_queues
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups
from rebalance_core.kernels.roster import TopicRuns, find_reading
from rebalance_core.kernels.segments import Bools, Ints, Periods
from rebalance_core.model.group_settings import BROADCASTING

# When the processes of shared groups rebalance a topic, and how long each keeps what it then got.
#
# In a shared group several processes may hold a queue: two of one client id, or members that
# divide by different strategies; and a suspended member keeps what others get.


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
    """As of `group_rows.Groups`."""
    allocation: Ints
    """The strategy: index into the strategies of the coded."""
    number: Ints
    """Of the strategy in its group, as in `layout.Kernels.divided_by`; -1: none that divides."""

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
    allocation = prepared.coded.divisions.allocations(states.strategy[state], states.rules[state])
    kind = _kinds(prepared, states.message_model[state], allocation)
    # a topic without a readable queue is frozen, but not for CONFIG
    listed, whole = kind == group_rows.LISTED, (runs.from_epoch[run], runs.to_epoch[run])
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
        number=prepared.coded.divisions.numbers(runs.group[run[of]], allocation[of]),
    )


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


def _reading(prepared: PreparedGroups) -> TopicRuns:
    return find_reading(
        prepared.coded, prepared.membership, prepared.roster.runs, prepared.grid.topics,
        prepared.shared,
    )  # fmt: skip


def _kinds(prepared: PreparedGroups, model: Ints, allocation: Ints) -> Ints:
    kinds = group_rows.kinds_of(prepared.coded.strategies)
    everyone = np.isin(prepared.coded.names.words, [BROADCASTING])[model]
    return np.where(everyone, group_rows.EVERYONE, kinds[allocation])


def _kept(prepared: PreparedGroups, reading: TopicRuns, suspended: Bools) -> Ints:
    """By run and topic: until when the process is a member that reads the topic or is suspended."""
    runs = prepared.roster.runs
    process = runs.process[reading.run]
    pairs = segments.first_of_run(reading.group_topic, process)
    asleep = np.flatnonzero(suspended & prepared.shared[runs.group])
    by_process = np.argsort(process[pairs], kind="stable")
    at, row = segments.matching(process[pairs][by_process], runs.process[asleep])
    run = np.concatenate([reading.run, asleep[at]])
    topic = np.concatenate([reading.group_topic, reading.group_topic[pairs][by_process][row]])
    held = Periods.union(topic, runs.process[run], runs.from_epoch[run], runs.to_epoch[run])
    at = held.at(reading.group_topic, process, runs.from_epoch[reading.run])
    return held.end[at]


def _next_elsewhere(prepared: PreparedGroups, group_topic: Ints, epoch: Ints) -> Ints:
    """The first epoch from this one on of which the grid does not say who takes from the topic."""
    grid, of_group = prepared.grid, prepared.epochs.of_group[:-1]
    cells = np.arange(len(grid.elsewhere))
    following = np.where(grid.elsewhere, cells, segments.NEVER)
    following = np.minimum.accumulate(following[::-1])[::-1]
    offset = grid.topic_first[group_topic] - of_group[grid.topics.group[group_topic]]
    found = following[epoch + offset]
    return np.where(found < grid.topic_first[group_topic + 1], found - offset, segments.NEVER)


def parts(
    prepared: PreparedGroups, mask: Bools, rows: Ints, group_topic: Ints, begin: Ints, end: Ints
) -> tuple[Ints, Ints, Ints]:
    """(row, begin, end) of each part of [begin, end) in which the row's topic cells are True."""
    grid, epochs = prepared.grid, prepared.epochs
    sizes = np.diff(grid.topic_first)
    epoch = segments.ranges(epochs.of_group[:-1][grid.topics.group], sizes)
    true = Periods.of_stretches(mask, np.repeat(np.arange(len(sizes)), sizes), epoch)
    asker, begin, end = true.parts(group_topic[rows], np.zeros_like(rows), begin[rows], end[rows])
    return rows[asker], begin, end


# Who holds the queues of shared groups: spans of cells, one for each process.

Stints = tuple[Ints, Ints, Ints, Ints]
"""(segment, stretch of passes, first epoch, epoch after the last) of holdings, in any order."""


class Sharing:
    """Makes the pieces of shared groups.

    Args:
        prepared: the groups.
        queues: what the segments of the pieces are about.
        passes: of the prepared.
    """

    def __init__(self, prepared: PreparedGroups, queues: Queues, passes: Passes) -> None:
        self._prepared, self._queues, self._passes = prepared, queues, passes
        self._periods = passes.periods
        self._everyone = np.flatnonzero(passes.kind == group_rows.EVERYONE)
        listed = np.flatnonzero(passes.kind == group_rows.LISTED)
        keys = segments.pair(passes.group_topic[listed], passes.allocation[listed])
        order = np.argsort(keys, kind="stable")
        self._listing, self._list_keys = listed[order], keys[order]
        self._lists = listed_queues(prepared).sorted_among(queues)
        self._hashes = [
            prepared.coded.divided_by(number).groups.kind == group_rows.ON_RING
            for number in range(prepared.coded.divisions.most)
        ]

    @property
    def weights(self) -> Ints:
        """By group topic: about how much room a queue takes, beside its cells.

        Every member with a CONFIG list may find all others holding a queue of it.
        """
        passes, topics = self._passes, len(self._prepared.grid.topics.group)
        listing = np.bincount(passes.group_topic[self._listing], minlength=topics)
        return np.bincount(passes.group_topic, minlength=topics) + listing**2 // 16

    def piece(self, cells: Cells, owned: Iterable[tuple[int, Ints, Ints]]) -> Shared:
        """The holdings in some segments.

        Args:
            cells: of the segments.
            owned: for each number of a strategy in its group: cells, and the entry that owns each.
        """
        parts = [self._everyones(cells), self._listed(cells)]
        parts += [self._divided(cells, *by_strategy) for by_strategy in owned]
        segment, stretch, begin, end = (np.concatenate(c) for c in zip(*parts, strict=True))
        offset = cells.first[:-1] - cells.epoch[cells.first[:-1]]
        begin, end = begin + offset[segment], end + offset[segment]
        spans = _joined(
            segment, self._passes.process[stretch], begin, end, self._passes.node[stretch]
        )
        holders = segments.covered(spans.begin, spans.end, len(cells))
        client = self._prepared.membership.processes.client[spans.process]
        return Shared(
            cells, cells.readable & (holders == 0), holders, spans, _tenures(spans, client)
        )

    def _divided(self, cells: Cells, number: int, cell: Ints, owner: Ints) -> Stints:
        """Return the queues of members that divide by their group's strategy of this number.

        Every process of the owner's id takes what the first position of that id is given; what the
        further ones are given belongs to nobody, but on a hash ring (rocketmq.md §2.2, §2.7).
        """
        roster, passes = self._prepared.roster, self._passes
        copy = roster.copy[owner]
        mine = (copy == 0) | self._hashes[number][self._prepared.epochs.group[cells.epoch[cell]]]
        cell, first = cell[mine], (owner - copy)[mine]
        count = roster.processes_of(first)
        cell, entry = np.repeat(cell, count), segments.ranges(first, count)
        segment, epoch = cells.segment[cell], cells.epoch[cell]
        group_topic = self._queues.group_topic[cells.queue[segment]]
        stretch = self._periods.at(group_topic, roster.process(entry), epoch)
        known = stretch >= 0
        segment, stretch, epoch = segment[known], stretch[known], epoch[known]
        divides = passes.number[stretch] == number
        divides &= group_rows.divides(passes.kind[stretch])
        segment, stretch, epoch = segment[divides], stretch[divides], epoch[divides]
        return segment, stretch, epoch, self._until(stretch, epoch + 1)

    def _until(self, stretch: Ints, end: Ints) -> Ints:
        """Keep what the last pass of a stretch gave."""
        passes = self._passes
        return np.where(end == passes.end[stretch], passes.kept[stretch], end)

    def _listed(self, cells: Cells) -> Stints:
        """Members with a CONFIG list have the queues on it, existing or not (rocketmq.md §2.4)."""
        passes, lists = self._passes, self._lists
        segment, row = segments.matching(lists.key, cells.queue)
        group_topic = self._queues.group_topic[cells.queue[segment]]
        keys = segments.pair(group_topic, lists.allocation[row])
        at, row = segments.matching(self._list_keys, keys)
        stretch = self._listing[row]
        return segment[at], stretch, passes.begin[stretch], passes.kept[stretch]

    def _everyones(self, cells: Cells) -> Stints:
        """BROADCASTING members read every queue there is."""
        passes, stretches = self._passes, self._everyone
        first, last = segments.stretches(cells.readable, cells.segment)
        segment = cells.segment[first]
        group_topic = self._queues.group_topic[cells.queue[segment]]
        row, of = segments.matching(passes.group_topic[stretches], group_topic)
        stretch = stretches[of]
        begin = np.maximum(cells.epoch[first][row], passes.begin[stretch])
        end = np.minimum(cells.epoch[last][row] + 1, passes.end[stretch])
        meets = begin < end
        row, stretch, begin, end = row[meets], stretch[meets], begin[meets], end[meets]
        return segment[row], stretch, begin, self._until(stretch, end)


def _joined(segment: Ints, process: Ints, begin: Ints, end: Ints, node: Ints) -> Spans:
    """Spans out of stretches that may touch."""
    order = np.lexsort((begin, process, segment))
    segment, process, begin, end = (a[order] for a in (segment, process, begin, end))
    starts = segments.begins_of_union(segments.first_of_run(segment, process), begin, end)
    last = segments.last_of_run(np.cumsum(starts))
    return Spans(segment[starts], process[starts], begin[starts], end[last], node[order][starts])


def _tenures(spans: Spans, client: Ints) -> Tenures:
    segment, client = np.tile(spans.segment, 2), np.tile(client, 2)
    cell = np.concatenate([spans.begin, spans.end])
    step = np.repeat([1, -1], len(spans.begin))
    order = np.lexsort((cell, client, segment))
    segment, client, cell = segment[order], client[order], cell[order]
    total = np.cumsum(step[order])  # every client's steps add up to 0
    last = segments.last_of_run(segment, client, cell)
    segment, client, cell, total = segment[last], client[last], cell[last], total[last]
    turns = segments.first_of_run(segment, client) | (total != np.roll(total, 1))
    segment, client, cell, total = segment[turns], client[turns], cell[turns], total[turns]
    held = total > 0
    end = np.roll(cell, -1)
    return Tenures(segment[held], client[held], cell[held], end[held], total[held])


def held_by(tenures: Tenures) -> Periods:
    """Cells in which some process of a client holds a queue: by (segment, client)."""
    return Periods.union(tenures.segment, tenures.client, tenures.begin, tenures.end)


def continued(held: Periods, cells: int) -> Ints:
    """By cell: how many clients hold the queue that held it in the epoch before.

    Args:
        held: as `held_by` gives it.
        cells: how many there are.
    """
    return segments.covered(held.begin + 1, held.end, cells)

"""How many queues each member has or reaches in every epoch: the rows of ``consumer_load``."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from rebalance_core.kernels import segments
from rebalance_core.kernels.cells import Block, Broadcast, Queues, Shared
from rebalance_core.kernels.codes import coded
from rebalance_core.kernels.group_rows import EVERYONE
from rebalance_core.kernels.ownership.changes import Holdings
from rebalance_core.kernels.ownership.pop_answers import ClientReach, PopAnswers, TakerSpans
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups, SharedTopics
from rebalance_core.kernels.segments import AnyInts, Bools, Counts, Ints, Periods
from rebalance_core.kernels.table_rows import group_columns, span_columns, table_rows
from rebalance_core.protocol.members import THRESHOLD_OFF

# How many queues of each topic each member has, in every epoch.
#
# A *topic member* is one member in one topic of one epoch. Those of a topic stand together, in
# cidAll's order.


@dataclass(frozen=True, slots=True)
class TopicMembers:
    """The topic_members of a prepared; one value a topic_member but for the last."""

    topic_cell: AnyInts
    entry: AnyInts
    subscribed: Bools
    """The member subscribes the topic; of several with one client id the first stands for all."""
    countable: Bools
    """The topic is not a retry topic."""
    first: Ints
    """The first topic_member of each topic cell, and the end."""


def topic_members_of(prepared: PreparedGroups) -> TopicMembers:
    """The topic_members of every member in every active topic."""
    grid, roster = prepared.grid, prepared.roster
    epoch = epochs_of_cells(prepared)
    counts = np.diff(roster.first)[epoch] * grid.active
    topic_cell = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    entry = segments.ranges(roster.first[epoch], counts).astype(roster.run.dtype)
    group_topic = np.repeat(np.arange(len(grid.topics.group)), np.diff(grid.topic_first))
    retry = prepared.coded.topic_is_retry[grid.topics.topic[group_topic]][topic_cell]
    subscribed = roster.subscribes(entry, group_topic[topic_cell])
    if len(roster.twice):
        copy = roster.copy[entry]
        again = np.flatnonzero(subscribed & (copy > 0))
        subscribed[again - copy[again]] = True
        subscribed &= copy == 0
    return TopicMembers(topic_cell, entry, subscribed, ~retry, segments.pointers(counts))


def epochs_of_cells(prepared: PreparedGroups) -> Ints:
    """The epoch of each topic cell."""
    topics, of_group = prepared.grid.topics, prepared.epochs.of_group
    return segments.ranges(of_group[topics.group], np.diff(prepared.grid.topic_first))


def held_topic_members(
    prepared: PreparedGroups, topic_members: TopicMembers, topic_cell: AnyInts, entry: Ints
) -> Ints:
    """The topic_member of each entry in a topic cell of its epoch."""
    return (
        topic_members.first[topic_cell]
        + entry
        - prepared.roster.first[prepared.roster.epoch[entry]]
    )


def count_into(total: Counts | Ints, index: Ints) -> None:
    """Add 1 at every index; cheap where they lie close together."""
    if len(index):
        low = int(index.min())
        found = np.bincount(index - low)
        total[low : low + len(found)] += found


def add_block(
    prepared: PreparedGroups, topic_members: TopicMembers, block: Block, total: Counts
) -> None:
    """Add the queues of a block to those on each topic_member."""
    held = np.flatnonzero(block.entry >= 0)
    count_into(
        total,
        held_topic_members(
            prepared, topic_members, block.cells.topic_cell[held], block.entry[held]
        ),
    )


class ManyHolders:
    """Queues on the topic_members of groups whose queues have many holders.

    Counted from where the holdings begin and end: BROADCASTING groups and shared ones.
    """

    def __init__(self, prepared: PreparedGroups) -> None:
        self._prepared = prepared
        topics, of_group = prepared.grid.topics, prepared.epochs.of_group
        many = (prepared.coded.groups.kind == EVERYONE) | prepared.shared
        self._has_many = many[topics.group]
        first = prepared.roster.first[of_group[topics.group]]
        sizes = prepared.roster.first[of_group[topics.group + 1]] - first
        nodes = segments.pointers(sizes * self._has_many)
        self._offset = nodes[:-1] - first
        """By group topic: where its row of `by_client` is in the steps."""
        self._steps = np.zeros(nodes[-1] + 1, np.int32)

    def add(self, group_topic: Ints, node: Ints, epochs: Ints, queues: Ints | int = 1) -> None:
        """Count holdings of queues.

        Args:
            group_topic: of each queue.
            node: where the client's entry in the first epoch is in `roster.Roster.by_client`.
            epochs: how many epochs it lasts.
            queues: how many queues it is.
        """
        np.add.at(self._steps, self._offset[group_topic] + node, queues)
        np.add.at(self._steps, self._offset[group_topic] + node + epochs, np.negative(queues))

    def add_broadcast(self, queues: Queues, piece: Broadcast) -> None:
        """Count the queues of a piece."""
        group_topic = queues.group_topic[piece.cells.queue[piece.segment]]
        node = piece.node + piece.cells.epoch[piece.begin]
        self.add(group_topic, node, piece.end - piece.begin)

    def put(self, topic_members: TopicMembers, total: Counts) -> None:
        """Set what was counted on the topic_members of these groups."""
        grid, by_client = self._prepared.grid, self._prepared.roster.by_client
        group_topic = np.repeat(np.arange(len(self._offset)), np.diff(grid.topic_first))
        first = np.flatnonzero(self._has_many[group_topic])
        count = np.diff(topic_members.first)[first]
        mine = segments.ranges(topic_members.first[first], count)
        node = np.empty_like(by_client)
        node[by_client] = np.arange(len(by_client), dtype=by_client.dtype)
        at = np.repeat(self._offset[group_topic[first]], count) + node[topic_members.entry[mine]]
        total[mine] = np.cumsum(self._steps)[at]


# What the clients of shared groups hold, however many processes of each do.


class SharedClients:
    """Where the entries of each client of a shared group are in `roster.Roster.by_client`.

    Args:
        prepared: the groups.
    """

    def __init__(self, prepared: PreparedGroups) -> None:
        self._prepared = prepared
        roster = prepared.roster
        entry = roster.by_client
        group = roster.runs.group[roster.run[entry]]
        node = np.flatnonzero(prepared.shared[group] & (roster.copy[entry] == 0))
        entry, group = entry[node], group[node]
        epoch, client = roster.epoch[entry], roster.client(entry)
        begins = segments.first_of_run(group, client)
        begins[1:] |= epoch[1:] != epoch[:-1] + 1
        first = np.flatnonzero(begins)
        last = np.flatnonzero(segments.last_of_run(np.cumsum(begins)))
        self._stays = Periods(group[first], client[first], epoch[first], epoch[last] + 1)
        self._node = node[first] - epoch[first]

    def add_owned(self, queues: Queues, piece: Shared, held: Periods, counts: ManyHolders) -> None:
        """Count the queues that each client holds.

        Args:
            queues: what the piece's segments are about.
            piece: the holdings.
            held: `ownership.sharing.held_by` of the piece.
            counts: changed in place.
        """
        segment, begin, end = held.major, held.begin, held.end
        self._add(queues, piece, (segment, held.minor, begin, end), counts)

    def add_kept(self, queues: Queues, piece: Shared, held: Periods, counts: ManyHolders) -> None:
        """Count the queues that can be read and that each client held in the epoch before.

        Arguments as of `add_owned`.
        """
        cells = piece.cells
        readable = Periods.of_stretches(cells.readable, cells.segment, np.arange(len(cells)))
        begin, end = held.begin + 1, np.minimum(held.end + 1, cells.first[held.major + 1])
        row, begin, end = readable.parts(held.major, np.zeros_like(held.major), begin, end)
        self._add(queues, piece, (held.major[row], held.minor[row], begin, end), counts)

    def _add(
        self, queues: Queues, piece: Shared, held: tuple[Ints, Ints, Ints, Ints],
        counts: ManyHolders,
    ) -> None:  # fmt: skip
        """Count (segment, client, first cell, cell after the last), while the client is there."""
        segment, client, begin, end = held
        cells = piece.cells
        opening = cells.first[segment] - cells.epoch[cells.first[segment]]
        begin, end = begin - opening, end - opening
        queue = cells.queue[segment]
        row, stay = self._stays.meeting(queues.group[queue], client, begin, end)
        begin = np.maximum(begin[row], self._stays.begin[stay])
        end = np.minimum(end[row], self._stays.end[stay])
        group_topic = queues.group_topic[queue[row]]
        counts.add(group_topic, self._node[stay] + begin, np.maximum(0, end - begin))

    def nodes(self, group: Ints, client: Ints, epoch: Ints) -> Ints:
        """Return where the client's entry of each epoch is in `roster.Roster.by_client`; it must be
        there.
        """
        return self._node[self._stays.at(group, client, epoch)] + epoch


# What members share: which queues each reaches, and how many, by epoch.


class SharedLoads:
    """The queues that members of groups share, worked out once for all tables.

    Args:
        prepared: the groups.
        topics: that they share.
    """

    def __init__(self, prepared: PreparedGroups, topics: SharedTopics) -> None:
        self.topics = topics
        self._prepared = prepared

    @cached_property
    def reach(self) -> ClientReach:
        """Find the queues that each client may take from."""
        return ClientReach(PopAnswers(self._prepared, self.topics))

    @cached_property
    def queues(self) -> Ints:
        """By entry: readable queues that its process may take messages from."""
        return _shared_queues(self._prepared, self.reach)


def sharing_of(prepared: PreparedGroups) -> SharedLoads | None:
    """None: no topic of these groups is shared."""
    return None if prepared.popped is None else SharedLoads(prepared, prepared.popped)


def _shared_queues(prepared: PreparedGroups, reach: ClientReach) -> Ints:
    roster, answers = prepared.roster, reach.answers
    runs = roster.runs
    order = np.lexsort((runs.from_epoch, runs.process))
    nobody = np.zeros(len(order), np.int64)
    lives = Periods(nobody, runs.process[order], runs.from_epoch[order], runs.to_epoch[order])
    steps = np.zeros(len(roster) + 1, np.int64)

    def add(taken: TakerSpans) -> None:
        run = order[lives.at(np.zeros_like(taken.taker), taken.taker, taken.begin)]
        node = roster.node_of_run[run] + taken.begin
        np.add.at(steps, node, taken.queues)
        np.add.at(steps, node + taken.end - taken.begin, -taken.queues)

    add(reach.readable_brokers(answers.whole()))
    for cells, taken in answers.blocks():
        add(reach.readable_queues(cells, taken))
    of_entry = np.zeros(len(roster), np.int64)
    of_entry[roster.entry_at] = np.cumsum(steps)[:-1]
    return of_entry


# How much each process of a shared group holds: topics, queues and retry queues, by epoch.


class ProcessLoads:
    """Counts from where holdings begin and end, in the order of `roster.Roster.entry_at`.

    Args:
        prepared: the groups.
    """

    def __init__(self, prepared: PreparedGroups) -> None:
        self._prepared = prepared
        self._retry = prepared.coded.topic_is_retry[prepared.grid.topics.topic]
        self._queues, self._retry_queues = np.zeros((2, len(prepared.roster) + 1), np.int64)
        self._held: list[tuple[Ints, Ints, Ints, Ints]] = []

    def add(self, queues: Queues, piece: Shared) -> None:
        """Count the holdings of a piece."""
        cells, spans = piece.cells, piece.spans
        epoch = cells.epoch[spans.begin]
        node, count = spans.node + epoch, spans.end - spans.begin
        group_topic = queues.group_topic[cells.queue[spans.segment]]
        retry = self._retry[group_topic]
        for total, mine in ((self._queues, ~retry), (self._retry_queues, retry)):
            np.add.at(total, node[mine], 1)
            np.add.at(total, (node + count)[mine], -1)
        plain = ~retry
        held = Periods.union(
            group_topic[plain], spans.process[plain], node[plain], (node + count)[plain]
        )
        self._held.append((held.major, held.minor, held.begin, held.end))

    def counts(self) -> tuple[Ints, Ints, Ints]:
        """By entry: topics with a queue, queues and retry queues; 0 in other groups."""
        topics = np.zeros_like(self._queues)
        if self._held:
            held = Periods.union(*(np.concatenate(c) for c in zip(*self._held, strict=True)))
            np.add.at(topics, held.begin, 1)
            np.add.at(topics, held.end, -1)
        entry = self._prepared.roster.entry_at
        found = []
        for steps in (topics, self._queues, self._retry_queues):
            of_entry = np.zeros(len(entry), np.int64)
            of_entry[entry] = np.cumsum(steps)[:-1]
            found.append(of_entry)
        return found[0], found[1], found[2]


# The rows of ``consumer_load``.


def load_rows(
    prepared: PreparedGroups, holdings: Holdings, sharing: SharedLoads | None
) -> pa.RecordBatch:
    """One row per client id and stretch of epochs with the same load.

    Of several processes with one id the first by channel stands for all.
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
    at = entry[starts]
    group, queues, retry_queues = group[starts], queues[at], retry_queues[at]
    return table_rows(
        "consumer_load",
        group_columns(prepared, group)
        | span_columns(prepared, epoch[starts], epoch[starts] + lengths)
        | _thresholds(prepared, group, queues + retry_queues)
        | {
            "client_id": coded(prepared.coded.names.clients, client[starts]),
            "topics": topics[at],
            "queues": queues,
            "retry_queues": retry_queues,
            "shared_queues": shared[at],
            "suspended": suspended[at],
        },
    )


def _counts(prepared: PreparedGroups, holdings: Holdings) -> tuple[Ints, Ints, Ints]:
    """By entry: topics with a queue, queues, and queues of the retry topic. Cost: all cells."""
    topic_members, members = topic_members_of(prepared), len(prepared.roster)
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
    """`protocol.members.pull_threshold_per_queue` of many."""
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

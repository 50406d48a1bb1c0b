"""Owners under strategies that use a queue's place among the divided queues (`ByPlace`)."""

from functools import cache, cached_property

import numpy as np

from rebalance_core.kernels import segments
from rebalance_core.kernels.cell_holders import NO_MEMBER
from rebalance_core.kernels.cells import Cells, Readable
from rebalance_core.kernels.encoded_groups import EncodedGroups
from rebalance_core.kernels.epochs import Epochs
from rebalance_core.kernels.grid import Grid, Places, places
from rebalance_core.kernels.roster import Roster
from rebalance_core.kernels.segments import Bools, Counts, Ints
from rebalance_core.strategies.spi import is_java_blank
from rebalance_core.strategies.vectorised import ByPlace, PlaceRule


def deal(rule: PlaceRule, queues: Ints, members: Ints) -> Counts:
    """Return the index in cidAll for every place, for each pair of queue and member counts in turn.

    >>> from rebalance_core.strategies.averagely import AVERAGE
    >>> deal(AVERAGE, np.array([8, 2]), np.array([3, 5])).tolist()
    [0, 0, 0, 1, 1, 1, 2, 2, 0, 1]
    """
    counted = queues if rule.size is None else np.minimum(queues, members)
    number = segments.ranges(np.zeros_like(counted), counted).astype(np.int32)
    of_topic = (each.astype(np.int32).repeat(counted) for each in (queues, members))
    if rule.size is None:
        return rule.index(number, *of_topic).astype(np.int32, copy=False)
    return number.repeat(rule.size(number, *of_topic))


class ComputedOwners:
    """Owners of cells, computed cell by cell. Cost: O(1) per queue and epoch.

    Args:
        rule: the rule that divides the queues.
        grid: the grid of all groups.
        roster: the roster of all groups.
        inside: for each topic broker, whether its queues are divided; None: all are.
    """

    def __init__(
        self, rule: PlaceRule, grid: Grid, roster: Roster, inside: Bools | None = None
    ) -> None:
        divided = grid.readable
        if inside is not None:
            inside = np.repeat(inside, np.diff(grid.broker_first))
            divided = divided * inside
        self._rule, self._inside = rule, inside
        self._before, self._total = places(grid, divided)
        self._first = roster.first

    def entries(self, cells: Readable) -> Ints:
        """Return the entry that owns each cell, or `NO_MEMBER` for cells that are not divided."""
        first = self._first[cells.epoch]
        members = self._first[cells.epoch + 1] - first
        total = self._total[cells.broker_cell]
        entries: Ints = first + self._rule.index(cells.places(self._before), total, members)
        if self._inside is None:
            return entries
        return np.where(self._inside[cells.broker_cell], entries, NO_MEMBER)


class OwnersByPlace:
    """The results of a strategy that depends only on the numbers of queues and members.

    The queue at a place of the sorted list goes to the member at an index of cidAll. That index
    depends only on the numbers of queues and members, so topics of any group and epoch with equal
    numbers share an *answer*. Cost: O(topic cells), and O(places) when `index` is used.

    Args:
        rule: the rule that divides the queues.
        mine: for each group, whether it allocates by this rule.
        epochs: the epochs of all groups.
        grid: the grid of all groups.
        roster: the roster of all groups.
    """

    def __init__(
        self, rule: PlaceRule, mine: Bools, epochs: Epochs, grid: Grid, roster: Roster
    ) -> None:
        sizes = np.diff(grid.topic_first)
        self.epoch = segments.ranges(epochs.of_group[grid.topics.group], sizes)
        """The epoch of each topic cell."""
        members = np.diff(roster.first)[self.epoch]
        divided = (grid.queues > 0) & (members > 0) & np.repeat(mine[grid.topics.group], sizes)
        self.topic_cell: Ints = np.flatnonzero(divided)
        """The topic cells that have an answer."""
        numbers = segments.pair(grid.queues[self.topic_cell], members[self.topic_cell])
        distinct, self.answer = np.unique(numbers, return_inverse=True)
        """`answer` contains the index of each cell's answer."""
        self._rule, self._numbers = rule, segments.halves(distinct)
        self.first = segments.pointers(self._numbers[0])
        """The start of each answer in `index`, and the end of the last one."""

    @cached_property
    def index(self) -> Counts:
        """The owner's index in cidAll for each answer and place."""
        return deal(self._rule, *self._numbers)


class ListedOwners:
    """Owners of cells, looked up by place. Cost: O(1) per queue and epoch, without a division.

    Where a topic has many queues on a broker, the queues of an epoch are looked up together, and
    identical topics are copied, because the results for a piece are kept for the next one.

    Args:
        answers: the answers of the groups.
        grid: the grid of all groups.
        numbered: the numbering of queues over the brokers of their topic.
        roster: the roster of all groups.
    """

    def __init__(
        self, answers: OwnersByPlace, grid: Grid, numbered: Places, roster: Roster
    ) -> None:
        begin = np.zeros(len(grid.queues), np.int64)
        begin[answers.topic_cell] = answers.first[answers.answer]
        topic_cell = grid.topic_cell
        self._begin = begin[topic_cell] + numbered[0]
        """For each broker cell, the position of its first queue in the answer."""
        self._first = roster.first[answers.epoch][topic_cell]
        """For each broker cell, the first entry of its epoch."""
        self._index = answers.index
        self._made: dict[tuple[int, int, int, bytes], Ints] = {}
        """The owners of the stretches in the last piece."""

    def entries(self, cells: Readable) -> Ints:
        """Return the entry that owns each cell."""
        if cells.selected is None and cells.cells.are_few_runs:
            return self._of_stretches(cells.cells)
        index = self._index.take(cells.places(self._begin))
        entries = cells.at_brokers(self._first)
        entries += index
        return entries

    def _of_stretches(self, cells: Cells) -> Ints:
        """Return the entry that owns each cell, looking up identical stretches once."""
        some, end, entries = cells.stretches, 0, np.empty(len(cells), np.int64)
        queue_id = cells.queues.ids_of(some.queue, some.topic_broker)
        columns = (some.first_broker_cell, some.first_epoch, some.epochs, queue_id, some.count)
        earlier, self._made = self._made, {}
        for cell, epoch, epochs, first, count in zip(*(c.tolist() for c in columns), strict=True):
            alike = epoch, first, count, self._begin[cell : cell + epochs].tobytes()
            if alike not in earlier:
                earlier[alike] = self._looked_up(slice(cell, cell + epochs), first, count)
            owners = self._made[alike] = earlier[alike]
            begin, end = end, end + len(owners)
            entries[begin:end] = owners
        return entries

    def _looked_up(self, broker_cells: slice, queue_id: int, count: int) -> Ints:
        """Return the owners of `count` consecutive queues, epoch after epoch."""
        begins, firsts = self._begin[broker_cells] + queue_id, self._first[broker_cells]
        entries = np.empty((count, len(begins)), np.int64)
        for owners, begin, first in zip(entries.T, begins, firsts, strict=True):
            np.add(self._index[begin : begin + count], first, out=owners)
        return entries.ravel()


def brokers_divided(encoded: EncodedGroups, grid: Grid) -> Bools | None:
    """Return the topic brokers whose queues a strategy divides, or None if all of them are divided
    by place.
    """
    forms = [strategy.vectorised() for strategy in encoded.strategies]
    if not any(isinstance(form, ByPlace) and form.divides for form in forms):
        return None
    brokers = encoded.names.brokers.to_pylist()

    @cache
    def divided(allocation: int, broker: int) -> bool:
        form = forms[allocation]
        return isinstance(form, ByPlace) and (not form.divides or form.divides(brokers[broker]))

    allocations = encoded.groups.allocation[grid.brokers.group].tolist()
    return np.array(list(map(divided, allocations, grid.brokers.broker.tolist())), np.bool_)


def blank_groups(encoded: EncodedGroups, group: Ints, client: Ints) -> Ints:
    """Return the groups with a member whose id upstream treats as empty, so that its strategy
    throws.

    Args:
        encoded: the groups.
        group: the group of each client that is ever a member.
        client: the client itself.
    """
    forms = (strategy.vectorised() for strategy in encoded.strategies)
    strict = [isinstance(form, ByPlace) and form.blank_is_empty for form in forms]
    rows = np.flatnonzero(np.array([*strict, False], np.bool_)[encoded.groups.allocation[group]])
    names = encoded.names.clients.take(client[rows]).to_pylist()
    return segments.distinct(
        group[rows[np.array([is_java_blank(name) for name in names], np.bool_)]]
    )

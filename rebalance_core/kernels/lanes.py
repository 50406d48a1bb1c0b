"""Lanes: one queue over the epochs of its group, in rows that blocks are cut from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rebalance_core.kernels.cells import NOBODY, Queues
from rebalance_core.kernels.epochs import Epochs
from rebalance_core.kernels.fleet import Fleet
from rebalance_core.kernels.roster import Runs
from rebalance_core.kernels.segments import Ints, first_of_run, last_of_run, pointers, ranges
from rebalance_core.kernels.shapes import EVERYONE


@dataclass(frozen=True, slots=True)
class Lanes:
    """One value a lane; those of a queue stand together."""

    queue: Ints
    client: Ints
    """BROADCASTING: whose lane it is, `NOBODY` for the one of epochs without a holder."""
    begin: Ints
    """The first epoch."""
    count: Ints
    """How many epochs."""
    stay_end: Ints
    """BROADCASTING: the first epoch without the client."""
    stay_node: Ints
    """BROADCASTING: in epoch e the client is entry ``entry_at[stay_node + e]`` of the roster."""
    broadcasting: bool


class LaneMaker:
    """The lanes of queues.

    A queue of a BROADCASTING group has a lane for every stay of every client, one epoch longer
    than the stay so that its end shows, and one for nobody.
    """

    def __init__(self, fleet: Fleet, epochs: Epochs, runs: Runs, queues: Queues) -> None:
        self._queues = queues
        self._begin, self._count = epochs.of_group[:-1], np.diff(epochs.of_group)
        broadcasting = fleet.groups.kind[runs.group] == EVERYONE
        goes_on = ~first_of_run(runs.group, runs.client)
        goes_on &= runs.from_epoch == np.roll(runs.to_epoch, 1)
        first = np.flatnonzero(broadcasting & ~goes_on)
        last = np.flatnonzero(broadcasting & last_of_run(np.cumsum(~goes_on)))
        group = runs.group[first]
        self._client, self._from = runs.client[first], runs.from_epoch[first]
        self._end = runs.to_epoch[last]
        self._node = pointers(runs.to_epoch - runs.from_epoch)[:-1][first] - self._from
        self._lasts = np.minimum(self._end + 1, epochs.of_group[group + 1]) - self._from
        self._first_stay = pointers(np.bincount(group, minlength=len(fleet.groups)))
        stays = np.bincount(group, self._lasts, minlength=len(fleet.groups)).astype(np.int64)
        self.epochs = self._count[queues.group]
        """Epochs of each queue's group."""
        self.cells = pointers((self._count + stays)[queues.group])
        """Cells of all queues before each, and of all."""

    def lanes(self, first: int, end: int, *, broadcasting: bool) -> Lanes:
        """The lanes of some consecutive queues."""
        queue = np.arange(first, end)
        group = self._queues.group[queue]
        if not broadcasting:
            nobody = np.full(len(queue), NOBODY)
            begin, count = self._begin[group], self._count[group]
            return Lanes(queue, nobody, begin, count, nobody, nobody, False)
        stays = np.diff(self._first_stay)[group]
        queue, group = np.repeat(queue, stays + 1), np.repeat(group, stays + 1)
        turn = ranges(np.zeros(end - first, np.int64), stays + 1)
        is_stay = turn < np.repeat(stays, stays + 1)
        stay = np.where(is_stay, self._first_stay[group] + turn, -1)
        return Lanes(
            queue,
            np.append(self._client, NOBODY)[stay],
            np.where(is_stay, np.append(self._from, 0)[stay], self._begin[group]),
            np.where(is_stay, np.append(self._lasts, 0)[stay], self._count[group]),
            np.append(self._end, NOBODY)[stay],
            np.append(self._node, NOBODY)[stay],
            True,
        )

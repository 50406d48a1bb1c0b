"""The members of shared groups: who takes and gives up queues, and who is still there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rebalance_core.kernels.cells.pieces import Shared
from rebalance_core.kernels.cells.queues import Queues
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups
from rebalance_core.kernels.ownership.process_passes import present, subscribed_by
from rebalance_core.kernels.ownership.sharing import covered, held_by
from rebalance_core.kernels.segments import Bools, Ints, find, first_of_run, pair, sums


@dataclass(frozen=True, slots=True)
class Turns:
    """Cells in which more or fewer processes of a client hold the queue than in the one before."""

    segment: Ints
    client: Ints
    cell: Ints
    is_add: Bools
    """They are more."""


def client_turns(piece: Shared) -> Turns:
    """The turns of a piece, by cell and client."""
    tenures, cells = piece.tenures, piece.cells
    touches = ~first_of_run(tenures.segment, tenures.client)
    touches &= tenures.begin == np.roll(tenures.end, 1)
    before = np.where(touches, np.roll(tenures.processes, 1), 0)
    ending = tenures.end < cells.first[tenures.segment + 1]
    ending &= ~np.append(touches[1:], False)
    row = np.concatenate([np.arange(len(before)), np.flatnonzero(ending)])
    segment, client = tenures.segment[row], tenures.client[row]
    cell = np.concatenate([tenures.begin, tenures.end[ending]])
    is_add = np.append(tenures.processes > before, np.zeros(int(ending.sum()), np.bool_))
    order = np.lexsort((client, cell))
    return Turns(segment[order], client[order], cell[order], is_add[order])


class SharedMembers:
    """Answers about the members of shared groups.

    Args:
        prepared: the groups.
        queues: what the pieces' segments are about.
    """

    def __init__(self, prepared: PreparedGroups, queues: Queues) -> None:
        self._prepared, self._queues = prepared, queues
        self._reading, self._present = subscribed_by(prepared), present(prepared)

    def wants(self, queue: Ints, client: Ints, epoch: Ints) -> Bools:
        """Whether some process of a client subscribes the topic of a queue."""
        return self._reading.at(self._queues.group_topic[queue], client, epoch) >= 0

    def hands(self, piece: Shared, turns: Turns) -> tuple[Bools, Ints]:
        """Who acts in each change: every process is gone, and the entry of the first one.

        The first by channel, of those that take the queue or give it up.
        """
        spans, epoch = piece.spans, piece.cells.epoch
        cell, client, is_add = turns.cell, turns.client, turns.is_add
        by_client = self._prepared.membership.processes.client[spans.process]
        gone, entry = np.zeros(len(cell), np.bool_), np.zeros(len(cell), np.int64)
        ending = np.flatnonzero(spans.end < piece.cells.first[spans.segment + 1])
        for mine, span, at, ago in (
            (is_add, np.arange(len(spans.begin)), spans.begin, 0),
            (~is_add, ending, spans.end[ending], 1),
        ):
            key = pair(at, by_client[span])
            order = np.lexsort((spans.process[span], key))
            key, span, at = key[order], span[order], at[order]
            left = self._present.at(np.zeros_like(at), spans.process[span], epoch[at]) < 0
            bounds = np.append(np.flatnonzero(first_of_run(key)), len(key))
            row = find(key[bounds[:-1]], pair(cell[mine], client[mine]))
            gone[mine] = (sums(~left, bounds) == 0)[row]
            first = bounds[:-1][row]
            node = spans.node[span[first]] + epoch[at[first]] - ago
            entry[mine] = self._prepared.roster.entry_at[node]
        return gone, entry

    def wanted(self, piece: Shared) -> Ints:
        """By cell: clients that held the queue an epoch before and still subscribe the topic."""
        cells, held = piece.cells, held_by(piece.tenures)
        begin, end = held.begin + 1, np.minimum(held.end + 1, cells.first[held.major + 1])
        offset = (cells.first[:-1] - cells.epoch[cells.first[:-1]])[held.major]
        group_topic = self._queues.group_topic[cells.queue[held.major]]
        row, period = self._reading.meeting(group_topic, held.minor, begin - offset, end - offset)
        low = np.maximum(begin[row], self._reading.begin[period] + offset[row])
        high = np.minimum(end[row], self._reading.end[period] + offset[row])
        return covered(low, high, len(cells))

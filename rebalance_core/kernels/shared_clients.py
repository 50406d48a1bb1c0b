"""Counts the queues that the clients of shared groups hold, however many processes each client
has.
"""

import numpy as np

from rebalance_core.kernels import segments
from rebalance_core.kernels.cell_holders import Shared
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups
from rebalance_core.kernels.periods import Periods
from rebalance_core.kernels.queues import Queues
from rebalance_core.kernels.segments import Ints
from rebalance_core.kernels.topic_members import ManyHolders


class SharedClients:
    """The clients of shared groups, by the positions of their entries in `roster.Roster.by_client`.

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
            queues: the queues that the piece's segments index.
            piece: the holdings.
            held: `ownership.sharing.held_by` of the piece.
            counts: changed in place.
        """
        segment, begin, end = held.major, held.begin, held.end
        self._add(queues, piece, (segment, held.minor, begin, end), counts)

    def add_kept(self, queues: Queues, piece: Shared, held: Periods, counts: ManyHolders) -> None:
        """Count the readable queues that each client held in the previous epoch.

        The arguments are those of `add_owned`.
        """
        cells = piece.cells
        readable = Periods.of_stretches(cells.readable, cells.segment, np.arange(len(cells)))
        begin, end = held.begin + 1, np.minimum(held.end + 1, cells.first[held.major + 1])
        row, begin, end = readable.parts(held.major, np.zeros_like(held.major), begin, end)
        self._add(queues, piece, (held.major[row], held.minor[row], begin, end), counts)

    def _add(
        self,
        queues: Queues,
        piece: Shared,
        held: tuple[Ints, Ints, Ints, Ints],
        counts: ManyHolders,
    ) -> None:
        """Count (segment, client, first cell, end) spans of held queues while the client is a
        member.
        """
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
        """Return the position in `roster.Roster.by_client` of each client's entry in an epoch."""
        return self._node[self._stays.at(group, client, epoch)] + epoch

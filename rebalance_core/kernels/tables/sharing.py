"""What members share: which queues each reaches, and how many, by epoch."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from rebalance_core.kernels.ownership.pop_answers import PopAnswers
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups
from rebalance_core.kernels.ownership.reach import Reach, Readable
from rebalance_core.kernels.periods import Periods
from rebalance_core.kernels.segments import Ints
from rebalance_core.kernels.state.sharing_cells import SharedTopics


class Sharing:
    """What the members of groups share, worked out once for all tables.

    Args:
        prepared: the groups.
        topics: that they share.
    """

    def __init__(self, prepared: PreparedGroups, topics: SharedTopics) -> None:
        self.topics = topics
        self._prepared = prepared

    @cached_property
    def reach(self) -> Reach:
        """Which client may take from which queue."""
        return Reach(PopAnswers(self._prepared, self.topics))

    @cached_property
    def queues(self) -> Ints:
        """By entry: readable queues that its process may take messages from."""
        return _shared_queues(self._prepared, self.reach)


def sharing_of(prepared: PreparedGroups) -> Sharing | None:
    """None: no topic of these groups is shared."""
    return None if prepared.popped is None else Sharing(prepared, prepared.popped)


def _shared_queues(prepared: PreparedGroups, reach: Reach) -> Ints:
    roster, answers = prepared.roster, reach.answers
    runs = roster.runs
    order = np.lexsort((runs.from_epoch, runs.process))
    nobody = np.zeros(len(order), np.int64)
    lives = Periods(nobody, runs.process[order], runs.from_epoch[order], runs.to_epoch[order])
    steps = np.zeros(len(roster) + 1, np.int64)

    def add(taken: Readable) -> None:
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

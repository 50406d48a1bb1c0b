"""Queues that members share: which and how many queues each member reaches, by epoch."""

from functools import cached_property

import numpy as np

from rebalance_core.kernels.ownership.client_reach import ClientReach, TakerSpans
from rebalance_core.kernels.ownership.pop_answers import PopAnswers
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups
from rebalance_core.kernels.ownership.shared_topics import SharedTopics
from rebalance_core.kernels.periods import Periods
from rebalance_core.kernels.segments import Ints


class SharedLoads:
    """The queues that the members of groups share, computed once for all tables.

    Args:
        prepared: the groups.
        topics: the topics that they share.
    """

    def __init__(self, prepared: PreparedGroups, topics: SharedTopics) -> None:
        self.topics = topics
        self._prepared = prepared

    @cached_property
    def reach(self) -> ClientReach:
        """The queues from which each client may take messages."""
        return ClientReach(PopAnswers(self._prepared, self.topics))

    @cached_property
    def queues(self) -> Ints:
        """Return the number of readable queues from which each entry's process may take
        messages.
        """
        return _shared_queues(self._prepared, self.reach)


def sharing_of(prepared: PreparedGroups) -> SharedLoads | None:
    """Return the loads of shared queues, or None if the groups share no topic."""
    return None if prepared.popped is None else SharedLoads(prepared, prepared.popped)


def _shared_queues(prepared: PreparedGroups, reach: ClientReach) -> Ints:
    roster, answers = prepared.roster, reach.answers
    runs = roster.runs
    order = np.lexsort((runs.from_epoch, runs.process))
    one_group = np.zeros(len(order), np.int64)
    lives = Periods(one_group, runs.process[order], runs.from_epoch[order], runs.to_epoch[order])
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

"""Members that take from the queues of shared topics, and how they do so.

They pop behind a proxy, pop from the brokers that they query, or pull.
"""

from dataclasses import dataclass

import numpy as np

from rebalance_core.kernels import segments
from rebalance_core.kernels.encoded_events import NO_SHARE
from rebalance_core.kernels.encoded_groups import EncodedGroups
from rebalance_core.kernels.epochs import Epochs
from rebalance_core.kernels.ownership.shared_topics import SharedTopics, sharing_groups
from rebalance_core.kernels.pop_modes import (
    asking_groups,
    asks,
    behind_proxies,
)
from rebalance_core.kernels.processes import Membership
from rebalance_core.kernels.runs import Runs
from rebalance_core.kernels.segments import Bools, Ints
from rebalance_core.kernels.topic_runs import TopicRuns, find_reading


@dataclass(frozen=True, slots=True)
class Takers:
    """The members of groups that share a topic, with one row for each run and topic that it
    reads.
    """

    reading: TopicRuns
    proxied: Bools
    """For each row, whether the member is behind a proxy; all arrays below are also per row."""
    asking: Bools
    """The member queries a broker, so it pops topics with a share number and pulls others."""


def find_takers(
    encoded: EncodedGroups, membership: Membership, runs: Runs, shared: SharedTopics
) -> Takers:
    """Return the members of groups that share topics, topic by topic."""
    groups = np.isin(np.arange(len(encoded.groups)), sharing_groups(shared))
    reading = find_reading(encoded, membership, runs, shared.grid.topics, groups)
    state, group = runs.state[reading.run], runs.group[reading.run]
    proxied = behind_proxies(encoded, membership)[state]
    asking = asks(encoded, membership)[state] & asking_groups(encoded)[group] & ~proxied
    return Takers(reading, proxied, asking)


def pulling_groups(
    encoded: EncodedGroups, membership: Membership, epochs: Epochs, runs: Runs, shared: SharedTopics
) -> Ints:
    """Return the groups in which a member pulls a topic that others pop."""
    takers, grid = find_takers(encoded, membership, runs, shared), shared.grid
    run, group_topic = takers.reading.run, takers.reading.group_topic
    offset = grid.topic_first[group_topic] - epochs.of_group[runs.group[run]]
    begin, end = offset + runs.from_epoch[run], offset + runs.to_epoch[run]
    pulled = segments.pointers(shared.cells)
    unasked = segments.pointers(shared.cells & (shared.share == NO_SHARE))
    pulls = ~takers.proxied & np.where(
        takers.asking, unasked[end] > unasked[begin], pulled[end] > pulled[begin]
    )
    return segments.distinct(runs.group[run[pulls]])

"""The topics that members read and share, epoch by epoch, and who takes from their queues how."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rebalance_core.kernels.codes.coded_groups import CodedGroups
from rebalance_core.kernels.codes.event_rows import NO_SHARE, Events
from rebalance_core.kernels.segments import Bools, Ints, first_of_run, pointers
from rebalance_core.kernels.state.epochs import Epochs
from rebalance_core.kernels.state.grid import Grid, spread, spread_values
from rebalance_core.kernels.state.membership import Membership
from rebalance_core.kernels.state.roster import Reading, Runs, find_reading
from rebalance_core.kernels.state.topics import Pops, asking_groups, asks, behind_proxies

# The topics that members share, epoch by epoch.


@dataclass(frozen=True, slots=True)
class SharedTopics:
    """Topic cells whose queues nobody owns alone."""

    grid: Grid
    """With these cells only."""
    cells: Bools
    """By topic cell, as all that follow."""
    share: Ints
    """Share number; `NO_SHARE` where no member asks a broker to pop the topic."""


def share_topics(
    events: Events, epochs: Epochs, pops: Pops, whole: Grid
) -> tuple[Grid, SharedTopics | None]:
    """What members own of a grid, and what they share; None: nothing."""
    popped, numbers = pops.popped()
    given = (events, epochs, whole.topics, whole.topic_first)
    asked = spread(*given, popped) & spread(*given, pops.asked)
    cells = (asked | spread(*given, pops.proxied)) & whole.active
    if not cells.any():
        return whole, None
    share = np.where(asked, spread_values(*given, popped, numbers), NO_SHARE)
    return whole.only(~cells), SharedTopics(whole.only(cells), cells, share)


def sharing_groups(shared: SharedTopics) -> Ints:
    """Groups with a shared topic."""
    grid = shared.grid
    of = np.repeat(np.arange(len(grid.topics.group)), np.diff(grid.topic_first))
    return np.unique(grid.topics.group[of[shared.cells]])


def unanswered(grid: Grid, shared: SharedTopics) -> tuple[Ints, Ints]:
    """Groups that share a topic without a readable queue, and groups of which a topic has none just
    when sharing begins or ends, so that members keep what they had by other means.

    Args:
        grid: of what members own.
        shared: what they share.
    """
    of = np.repeat(np.arange(len(grid.topics.group)), np.diff(grid.topic_first))
    first = first_of_run(of)

    def after(before: Bools) -> Bools:
        return ~first & np.roll(before, 1)

    across = (shared.grid.frozen & after(grid.read)) | (grid.frozen & after(shared.cells))
    group = grid.topics.group[of]
    return np.unique(group[shared.grid.frozen]), np.unique(group[across])


# Who takes from the queues of shared topics, and how: by pop behind a proxy or from the brokers
# it asks, or by pull.


@dataclass(frozen=True, slots=True)
class Takers:
    """Runs, once for each topic that the member reads, of groups that share some topic."""

    reading: Reading
    proxied: Bools
    """By row, as all that follow: it is behind a proxy."""
    asking: Bools
    """It asks a broker, so it pops where the topic has a share number, and else pulls."""


def find_takers(
    coded: CodedGroups, membership: Membership, runs: Runs, shared: SharedTopics
) -> Takers:
    """The members of groups that share topics, topic by topic."""
    groups = np.isin(np.arange(len(coded.groups)), sharing_groups(shared))
    reading = find_reading(coded, membership, runs, shared.grid.topics, groups)
    state, group = runs.state[reading.run], runs.group[reading.run]
    proxied = behind_proxies(coded, membership)[state]
    asking = asks(coded, membership)[state] & asking_groups(coded)[group] & ~proxied
    return Takers(reading, proxied, asking)


def pulling_groups(
    coded: CodedGroups, membership: Membership, epochs: Epochs, runs: Runs, shared: SharedTopics
) -> Ints:
    """Groups in which some member pulls a topic that others pop."""
    takers, grid = find_takers(coded, membership, runs, shared), shared.grid
    run, group_topic = takers.reading.run, takers.reading.group_topic
    offset = grid.topic_first[group_topic] - epochs.of_group[runs.group[run]]
    begin, end = offset + runs.from_epoch[run], offset + runs.to_epoch[run]
    pulled = pointers(shared.cells)
    unasked = pointers(shared.cells & (shared.share == NO_SHARE))
    pulls = ~takers.proxied & np.where(
        takers.asking, unasked[end] > unasked[begin], pulled[end] > pulled[begin]
    )
    return np.unique(runs.group[run[pulls]])

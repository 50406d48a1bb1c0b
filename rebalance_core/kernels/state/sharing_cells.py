"""The topics that members share, epoch by epoch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rebalance_core.kernels.codes.event_rows import NO_SHARE, Events
from rebalance_core.kernels.segments import Bools, Ints, first_of_run, last_true
from rebalance_core.kernels.state.epochs import Epochs
from rebalance_core.kernels.state.grid import Grid, spread, spread_values
from rebalance_core.kernels.state.pops import Pops


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


def owned_again(grid: Grid, shared: SharedTopics) -> Ints:
    """Groups in which members own queues of a topic that they shared before."""
    of = np.repeat(np.arange(len(grid.topics.group)), np.diff(grid.topic_first))
    again = grid.read & (last_true(shared.cells, first_of_run(of)) >= 0)
    return np.unique(grid.topics.group[of[again]])


def unanswered(grid: Grid, shared: SharedTopics) -> tuple[Ints, Ints]:
    """Groups of shared topics without a readable queue, and those that had owners just before."""
    of = np.repeat(np.arange(len(grid.topics.group)), np.diff(grid.topic_first))
    frozen = np.flatnonzero(shared.grid.frozen)
    before = np.maximum(frozen - 1, 0)
    owned = grid.read[before] & (of[before] == of[frozen]) & (frozen > 0)
    return np.unique(grid.topics.group[of[frozen]]), np.unique(grid.topics.group[of[frozen[owned]]])

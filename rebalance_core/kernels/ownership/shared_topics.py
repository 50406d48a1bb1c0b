"""The topics that members share, epoch by epoch."""

from dataclasses import dataclass

import numpy as np

from rebalance_core.kernels import segments
from rebalance_core.kernels.encoded_events import NO_SHARE, Events
from rebalance_core.kernels.epochs import Epochs
from rebalance_core.kernels.grid import Grid, spread, spread_values
from rebalance_core.kernels.pop_modes import (
    PopModes,
)
from rebalance_core.kernels.segments import Bools, Ints


@dataclass(frozen=True, slots=True)
class SharedTopics:
    """The topic cells whose queues have no single owner."""

    grid: Grid
    """The grid with these cells only."""
    cells: Bools
    """A mask over topic cells; all arrays below are also per topic cell."""
    share: Ints
    """Share number; `NO_SHARE` where no member queries a broker to pop the topic."""


def share_topics(
    events: Events, epochs: Epochs, pops: PopModes, whole: Grid
) -> tuple[Grid, SharedTopics | None]:
    """Return the part of a grid that members own, and the topics that they share, or None."""
    popped, numbers = pops.popped()
    grid_axes = (events, epochs, whole.topics, whole.topic_first)
    asked = spread(*grid_axes, popped) & spread(*grid_axes, pops.asked)
    cells = (asked | spread(*grid_axes, pops.proxied)) & whole.active
    if not cells.any():
        return whole, None
    share = np.where(asked, spread_values(*grid_axes, popped, numbers), NO_SHARE)
    return whole.only(~cells), SharedTopics(whole.only(cells), cells, share)


def sharing_groups(shared: SharedTopics) -> Ints:
    """Return the groups with a shared topic."""
    grid = shared.grid
    of = np.repeat(np.arange(len(grid.topics.group)), np.diff(grid.topic_first))
    return segments.distinct(grid.topics.group[of[shared.cells]])


def unanswered(grid: Grid, shared: SharedTopics) -> tuple[Ints, Ints]:
    """Return the groups whose shared topics lack a readable queue.

    The first array contains groups that share a topic without a readable queue; the second contains
    groups with a topic that lacks readable queues exactly when sharing begins or ends, so that
    members keep earlier queues.

    Args:
        grid: the grid of the topics that members own.
        shared: the topics that they share.
    """
    of = np.repeat(np.arange(len(grid.topics.group)), np.diff(grid.topic_first))
    first = segments.first_of_run(of)

    def after(before: Bools) -> Bools:
        return ~first & np.roll(before, 1)

    across = (shared.grid.frozen & after(grid.read)) | (grid.frozen & after(shared.cells))
    group = grid.topics.group[of]
    return segments.distinct(group[shared.grid.frozen]), segments.distinct(group[across])

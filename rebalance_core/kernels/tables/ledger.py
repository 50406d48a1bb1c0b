"""All rows of one ledger table for the groups of a world."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from rebalance_core.kernels.ownership.changes import Differ
from rebalance_core.kernels.ownership.holdings import Holdings
from rebalance_core.kernels.ownership.world import World
from rebalance_core.kernels.tables.diffs import diff_rows
from rebalance_core.kernels.tables.epoch_rows import epoch_rows
from rebalance_core.kernels.tables.loads import load_rows
from rebalance_core.kernels.tables.membership_rows import membership_rows
from rebalance_core.kernels.tables.metrics import metric_rows
from rebalance_core.kernels.tables.ownership import ownership_rows
from rebalance_core.kernels.tables.starts.pull_starts import PullStarts

Batches = Iterator[pa.RecordBatch]


def ledger_rows(table: str, world: World, holdings: Holdings) -> Batches:
    """The rows of one table, a batch a piece.

    Args:
        table: name of a table of `SIMULATED_TABLES`.
        world: the groups; those with a reason have no rows.
        holdings: of this world.
    """
    return _TABLES[table](world, holdings)


def _epochs(world: World, holdings: Holdings) -> Batches:
    yield epoch_rows(world, holdings)


def _ownership(world: World, holdings: Holdings) -> Batches:
    for piece in holdings.pieces():
        yield ownership_rows(world, holdings.queues, piece)


def _diffs(world: World, holdings: Holdings) -> Batches:
    differ = Differ(world, holdings.queues)
    for piece in holdings.pieces():
        yield diff_rows(world, holdings.queues, differ.changes(piece))


def _memberships(world: World, holdings: Holdings) -> Batches:
    yield membership_rows(world)


def _consumer_load(world: World, holdings: Holdings) -> Batches:
    yield load_rows(world, holdings)


def _group_metrics(world: World, holdings: Holdings) -> Batches:
    yield metric_rows(world, holdings)


def _pull_starts(world: World, holdings: Holdings) -> Batches:
    starts = PullStarts(world, holdings)
    for piece in holdings.pieces():
        yield starts.rows(piece)


_TABLES: dict[str, Callable[[World, Holdings], Batches]] = {
    "epochs": _epochs,
    "ownership": _ownership,
    "diffs": _diffs,
    "pull_starts": _pull_starts,
    "memberships": _memberships,
    "consumer_load": _consumer_load,
    "group_metrics": _group_metrics,
}

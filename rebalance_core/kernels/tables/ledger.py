"""All rows of one ledger table for the groups of a prepared."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from rebalance_core.kernels.ownership.changes import Differ
from rebalance_core.kernels.ownership.holdings import Holdings
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups
from rebalance_core.kernels.tables.diffs import diff_rows
from rebalance_core.kernels.tables.epoch_rows import epoch_rows
from rebalance_core.kernels.tables.loads import load_rows
from rebalance_core.kernels.tables.membership_rows import membership_rows
from rebalance_core.kernels.tables.metrics import metric_rows
from rebalance_core.kernels.tables.output import plain_schema
from rebalance_core.kernels.tables.ownership import ownership_rows
from rebalance_core.kernels.tables.pop_metrics import pop_metric_rows
from rebalance_core.kernels.tables.pop_reach import pop_reach_rows
from rebalance_core.kernels.tables.sharing import Sharing
from rebalance_core.kernels.tables.starts.pull_starts import PullStarts

Batches = Iterator[pa.RecordBatch]


CODED = ("ownership", "diffs", "pull_starts")
"""Tables whose names are coded: they have most of the rows."""


def ledger_rows(
    table: str,
    prepared: PreparedGroups,
    holdings: Holdings,
    sharing: Sharing | None,
    *,
    names_coded: bool = False,
) -> Batches:
    """The rows of one table, a batch a piece.

    Args:
        table: name of a table of `SIMULATED_TABLES`.
        prepared: the groups; those with a reason have no rows.
        holdings: of this prepared.
        sharing: `sharing_of` this prepared.
        names_coded: the names in tables of `CODED` are dictionary arrays, as `coded_schema` has
            them; else every table has its contract's types.
    """
    rows = _TABLES[table](prepared, holdings, sharing)
    if names_coded or table not in CODED:
        return rows
    return (batch.cast(plain_schema(table)) for batch in rows)


def _epochs(prepared: PreparedGroups, holdings: Holdings, sharing: Sharing | None) -> Batches:
    yield epoch_rows(prepared, holdings)


def _ownership(prepared: PreparedGroups, holdings: Holdings, sharing: Sharing | None) -> Batches:
    for piece in holdings.pieces():
        yield ownership_rows(prepared, holdings.queues, piece)


def _diffs(prepared: PreparedGroups, holdings: Holdings, sharing: Sharing | None) -> Batches:
    differ = Differ(prepared, holdings.queues)
    for piece in holdings.pieces():
        yield diff_rows(prepared, holdings.queues, differ.changes(piece))


def _memberships(prepared: PreparedGroups, holdings: Holdings, sharing: Sharing | None) -> Batches:
    yield membership_rows(prepared)


def _consumer_load(
    prepared: PreparedGroups, holdings: Holdings, sharing: Sharing | None
) -> Batches:
    yield load_rows(prepared, holdings, sharing)


def _group_metrics(
    prepared: PreparedGroups, holdings: Holdings, sharing: Sharing | None
) -> Batches:
    yield metric_rows(prepared, holdings, sharing)


def _pull_starts(prepared: PreparedGroups, holdings: Holdings, sharing: Sharing | None) -> Batches:
    starts = PullStarts(prepared, holdings)
    for piece in holdings.pieces():
        yield starts.rows(piece)


def _pop_reach(prepared: PreparedGroups, holdings: Holdings, sharing: Sharing | None) -> Batches:
    if sharing is not None:
        yield from pop_reach_rows(sharing.reach)


def _pop_metrics(prepared: PreparedGroups, holdings: Holdings, sharing: Sharing | None) -> Batches:
    if sharing is not None:
        yield pop_metric_rows(sharing.reach, sharing.topics)


_TABLES: dict[str, Callable[[PreparedGroups, Holdings, Sharing | None], Batches]] = {
    "epochs": _epochs,
    "ownership": _ownership,
    "diffs": _diffs,
    "pull_starts": _pull_starts,
    "memberships": _memberships,
    "consumer_load": _consumer_load,
    "group_metrics": _group_metrics,
    "pop_reach": _pop_reach,
    "pop_metrics": _pop_metrics,
}

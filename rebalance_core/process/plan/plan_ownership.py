"""``plan_ownership``: who holds each queue before and after, and how busy the busiest member is."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.contracts.table import Table
from rebalance_core.engine.fan_out import GROUP
from rebalance_core.planning.variants import Variants

# The columns of a variant, beside those of rows that were made under it.


def of_variant(rows: pa.Table, variants: Variants, history: int, strategy: int) -> pa.Table:
    """The rows with scenario, strategy, of_rocketmq and seed."""
    chosen, swept = variants.histories[history], variants.strategies[strategy]
    values = {
        "scenario": pa.scalar(chosen.name, pa.string()),
        "strategy": pa.scalar(swept.text, pa.string()),
        "of_rocketmq": pa.scalar(swept.of_rocketmq),
        "seed": pa.scalar(chosen.seed, pa.int64()),
    }
    for name, value in values.items():
        rows = rows.append_column(name, pa.repeat(value, rows.num_rows))
    return rows


def as_table(rows: pa.Table, table: Table) -> pa.Table:
    """The columns of a contract, in its order and types, in buffers of their size.

    Arrow's aggregates have buffers for 32,768 rows, whatever they hold; many small results that
    wait to be written would take gigabytes.
    """
    typed = rows.select(table.column_names).cast(table.arrow_schema())
    return typed.take(pa.array(np.arange(typed.num_rows)))


# ``plan_ownership``: who holds each queue before and after.

QUEUE = ("topic", "broker_name", "queue_id")
_KEY = [*GROUP, *QUEUE]
_SIDES = ("before", "after")


def owners(
    intervals: pa.Table,
    first_ms: Mapping[str, int],
    groups: Collection[tuple[str, str]] | None = None,
) -> pa.Table:
    """Owners before and after of each queue, under one variant.

    Args:
        intervals: Rows of the ledger's ``ownership``.
        first_ms: By cluster: the first edit; a history without edits has none.
        groups: Those wanted; None: all.

    Returns:
        cluster, consumer_group, topic, broker_name, queue_id, and the client ids, sorted, as
        owners_before and owners_after; empty: nobody, or no such queue.
    """
    marked = _wanted(intervals, groups)
    marked = marked.append_column("before", _before(marked, first_ms))
    marked = marked.append_column("after", pc.is_null(marked["to_ms"]))
    marked = marked.filter(pc.or_(marked["before"], marked["after"]))
    holders = marked.group_by([*_KEY, "client_id"], use_threads=False).aggregate(
        [(side, "any") for side in _SIDES]
    )
    holders = holders.sort_by([(name, "ascending") for name in (*_KEY, "client_id")])
    nobody = pa.scalar(None, pa.string())
    for side in _SIDES:
        held = pc.if_else(holders[f"{side}_any"], holders["client_id"], nobody)
        holders = holders.append_column(side, held)
    # group_by gives its groups in no order: sorted, their names stand as those of the holders do
    queues = (
        holders.group_by(_KEY)
        .aggregate([(side, "count") for side in _SIDES])
        .sort_by([(name, "ascending") for name in _KEY])
    )
    rows = queues.select(_KEY)
    for side in _SIDES:
        offsets = np.append(0, np.cumsum(queues[f"{side}_count"].to_numpy()))
        names = holders[side].drop_null().combine_chunks()
        lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), names)
        rows = rows.append_column(f"owners_{side}", lists)
    return rows


def _before(intervals: pa.Table, first_ms: Mapping[str, int]) -> pa.ChunkedArray:
    """Whether an interval holds at the last instant before the first edit."""
    clusters = pa.array(list(first_ms), pa.string())
    firsts = pa.array(list(first_ms.values()), pa.int64())
    cluster = intervals["cluster"].combine_chunks()
    first = firsts.take(pc.index_in(cluster, value_set=clusters))
    end = intervals["to_ms"]
    begun = pc.less(intervals["from_ms"], first)
    lasts = pc.fill_null(pc.greater_equal(end, first), True)
    return pc.if_else(
        pc.is_null(first), pc.equal(intervals["from_epoch"], 0), pc.and_(begun, lasts)
    )


def _wanted(intervals: pa.Table, groups: Collection[tuple[str, str]] | None) -> pa.Table:
    if groups is None:
        return intervals
    schema = pa.schema([(name, pa.string()) for name in GROUP])
    names = pa.Table.from_pylist([dict(zip(GROUP, pair, strict=True)) for pair in groups], schema)
    numbered = intervals.select(list(GROUP)).append_column(
        "_row", pa.array(np.arange(intervals.num_rows))
    )
    kept = numbered.join(names, keys=list(GROUP), join_type="left semi", use_threads=False)
    return intervals.take(kept["_row"].combine_chunks().sort())


# Messages per second of the busiest member, by group.

_QUEUE = ["cluster", *QUEUE]
_RATE = "messages_per_second"


def last_rates(queue_rates: pa.Table) -> pa.Table:
    """The rate of each queue in the last stretch of ``queue_rates``."""
    ordered = queue_rates.select([*_QUEUE, "from_ms", _RATE]).sort_by("from_ms")
    last = ordered.group_by(_QUEUE, use_threads=False).aggregate([(_RATE, "last")])
    return last.rename_columns([*_QUEUE, _RATE])


def peak_rates(intervals: pa.Table, rates: pa.Table) -> pa.Table:
    """cluster, consumer_group and peak_messages_per_second, at the end.

    A queue without a rate is not counted. Hypothetical strategies are counted like the others.

    Args:
        intervals: Rows of the ledger's ``ownership``, of whole groups.
        rates: `last_rates`.
    """
    now = pc.and_(pc.is_null(intervals["to_ms"]), pc.is_valid(intervals["client_id"]))
    held = intervals.filter(now).select([*GROUP, *QUEUE, "client_id"])
    known = held.join(rates, keys=_QUEUE, join_type="inner", use_threads=False)
    member = [*GROUP, "client_id"]
    loads = known.group_by(member, use_threads=False).aggregate([(_RATE, "sum")])
    peaks = loads.group_by(list(GROUP), use_threads=False).aggregate([(f"{_RATE}_sum", "max")])
    peaks = peaks.select([*GROUP, f"{_RATE}_sum_max"])
    return peaks.rename_columns([*GROUP, "peak_messages_per_second"])

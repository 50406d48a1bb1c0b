"""``plan_summary``: every group before and after, under every variant."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.contracts.planning import PLAN_SUMMARY, VARIANT_KEY
from rebalance_core.model.statuses import FROZEN
from rebalance_core.planning.sweep.plan_options import (
    CANNOT_POP_CAVEAT,
    FROZEN_CAVEAT,
    ORPHANED_CAVEAT,
    SHARED_CAVEAT,
    UNEVEN_CAVEAT,
)
from rebalance_core.planning.sweep.sweep_rows import all_shared
from rebalance_core.planning.sweep.transitions import FIGURES
from rebalance_core.process.plan.variant_columns import as_table

KEY = list(VARIANT_KEY)
_STATE = {
    "members": "members",
    "queues": "queues",
    "max_queues": "peak_queues",
    "peak_ratio": "peak_ratio",
    "idle_members": "idle",
    "orphaned": "orphaned",
    "pop_queues": "pop_queues",
}
"""Columns of ``plan_steps`` that say how a group stands, and what the summary calls them."""
_AFTER = (
    "min_clients_per_queue", "max_clients_per_queue", "unreached", "min_redelivery_s",
    "max_redelivery_s", "cannot_pop",
)  # fmt: skip
"""Columns of ``plan_steps`` of which the summary has the last step's only."""


def plan_summary(
    steps: pa.Table,
    starts: pa.Table | None = None,
    loads: pa.Table | None = None,
    transitions: pa.Table | None = None,
) -> pa.Table:
    """Before and after of every group under every variant.

    Args:
        steps: Rows of ``plan_steps`` of whole groups, in any order.
        starts: Key, replayed_messages and skipped_messages; None: they are not known.
        loads: Key and peak_messages_per_second; None: there are no rates.
        transitions: Key and the figures of `TRANSITION_SCHEMA`; None: nothing was simulated.
    """
    steps = steps.sort_by("epoch")
    groups = _grouped(steps)
    rows = groups.select([*KEY, "of_rocketmq", "rebalances", "stickiness"])
    for column, name in _STATE.items():
        before, after = (
            steps[column].take(groups[side].combine_chunks()) for side in ("before", "after")
        )
        if column != "peak_ratio":  # the group was not there yet
            nothing = pa.scalar(0, before.type)
            before = pc.if_else(pc.is_null(groups["before"]), nothing, before)
        rows = rows.append_column(f"{name}_before", before)
        rows = rows.append_column(f"{name}_after", after)
    for name in _AFTER:
        rows = rows.append_column(name, steps[name].take(groups["after"].combine_chunks()))
    rows = _with_moves(rows, groups)
    last = steps["status"].take(groups["after"].combine_chunks())
    frozen = pc.or_(groups["frozen"], pc.equal(last, FROZEN))
    rows = rows.append_column("frozen", frozen)
    caveat = _caveat(rows, groups, frozen)
    rows = rows.append_column("caveat", caveat)
    rows = rows.append_column("amplification", _amplification(rows))
    rows = _joined(rows, starts, {"replayed_messages": pa.int64(), "skipped_messages": pa.int64()})
    rows = _joined(rows, loads, {"peak_messages_per_second": pa.float64()})
    rows = _joined(rows, transitions, FIGURES)
    # where members share all queues none has an owner; in a frozen topic nothing settles
    settles = pc.and_(pc.is_valid(rows["moved"]), pc.invert(rows["frozen"]))
    for name in FIGURES:
        number = rows.column_names.index(name)
        rows = rows.set_column(number, name, _where(settles, rows[name]))
    return as_table(rows, PLAN_SUMMARY)


def _grouped(steps: pa.Table) -> pa.Table:
    """By group and variant: sums, and which rows of the steps are ``before`` and ``after``."""
    counted = steps["counted"]
    meant = pc.and_(
        counted, pc.and_(pc.greater(steps["members"], 0), pc.greater(steps["queues"], 0))
    )
    row = pa.array(np.arange(steps.num_rows))
    columns = {
        "rebalances": (pc.cast(counted, pa.int64()), "sum"),
        "before": (_where(pc.invert(counted), row), "max"),
        "after": (row, "max"),
        "moved": (_where(counted, steps["moved"]), "sum"),
        "minimum": (_where(meant, steps["minimum_moves"]), "sum"),
        "stickiness": (_where(counted, steps["stickiness"]), "mean"),
        "uneven": (pc.and_(meant, pc.is_null(steps["minimum_moves"])), "any"),
        "unowned": (pc.and_(meant, pc.greater(steps["orphaned"], 0)), "any"),
        "frozen": (pc.and_(counted, pc.equal(steps["status"], FROZEN)), "any"),
        "shared": (pc.and_(counted, all_shared(steps)), "any"),
        "owned": (pc.and_(counted, pc.invert(all_shared(steps))), "any"),
    }
    table = steps.select([*KEY, "of_rocketmq"])
    for name, (values, _) in columns.items():
        table = table.append_column(name, values)
    grouped = table.group_by([*KEY, "of_rocketmq"], use_threads=False).aggregate(
        [(name, how) for name, (_, how) in columns.items()]
    )
    names = {f"{name}_{how}": name for name, (_, how) in columns.items()}
    return grouped.rename_columns([names.get(name, name) for name in grouped.column_names])


def _with_moves(rows: pa.Table, groups: pa.Table) -> pa.Table:
    """Moves and their minimum; null where members share all queues in every step."""
    owned = pc.or_(groups["owned"], pc.invert(_shared(rows, groups)))
    minimum = _where(pc.invert(groups["uneven"]), pc.fill_null(groups["minimum"], 0))
    rows = rows.append_column("moved", _where(owned, pc.fill_null(groups["moved"], 0)))
    return rows.append_column("minimum_moves", _where(owned, minimum))


def _shared(rows: pa.Table, groups: pa.Table) -> pa.ChunkedArray:
    """Whether members share all queues in a counted step, or after."""
    popped = pc.fill_null(pc.greater(rows["pop_queues_after"], 0), False)
    return pc.or_(groups["shared"], pc.and_(popped, pc.equal(rows["queues_after"], 0)))


def _caveat(rows: pa.Table, groups: pa.Table, frozen: pa.ChunkedArray) -> pa.ChunkedArray:
    """The first that applies, last in this order."""
    found = pc.if_else(groups["unowned"], ORPHANED_CAVEAT, pa.scalar(None, pa.string()))
    found = pc.if_else(groups["uneven"], UNEVEN_CAVEAT, found)
    found = pc.if_else(_shared(rows, groups), SHARED_CAVEAT, found)
    found = pc.if_else(frozen, FROZEN_CAVEAT, found)
    begin = CANNOT_POP_CAVEAT.removesuffix("%s")
    stays = pc.binary_join_element_wise(pa.scalar(begin), rows["cannot_pop"], "")
    return pc.coalesce(stays, found)


def _amplification(rows: pa.Table) -> pa.ChunkedArray:
    minimum = rows["minimum_moves"]
    sound = pc.and_(pc.fill_null(pc.greater(minimum, 0), False), pc.is_null(rows["caveat"]))
    divisor = _where(sound, pc.cast(minimum, pa.float64()))
    return pc.divide(pc.cast(rows["moved"], pa.float64()), divisor)


def _joined(rows: pa.Table, others: pa.Table | None, columns: dict[str, pa.DataType]) -> pa.Table:
    """The rows with more columns by key; null where the others have no row."""
    if others is None:
        for name, kind in columns.items():
            rows = rows.append_column(name, pa.nulls(rows.num_rows, kind))
        return rows
    wanted = others.select([*KEY, *columns])
    return rows.join(wanted, keys=KEY, join_type="left outer", use_threads=False)


def _where(mask: pa.ChunkedArray, values: pa.Array | pa.ChunkedArray) -> pa.ChunkedArray:
    """The values where the mask is true, null elsewhere."""
    return pc.if_else(mask, values, pa.scalar(None, values.type))

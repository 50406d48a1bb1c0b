"""Rows of a sweep's passes out of ledger rows: pure Arrow, one chunk at a time."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.engine.fan_out import GROUP
from rebalance_core.model.statuses import UNKNOWN
from rebalance_core.replay.start_rule import STORED

_FIGURES = (
    "members", "queues", "moved", "voluntary_moves", "minimum_moves", "amplification", "stickiness",
    "max_queues", "min_queues", "peak_ratio", "idle_members",
)  # fmt: skip
_OF_EPOCH = ("causes", "status", "orphaned", "shared", "pop_queues")
_EPOCH = (*GROUP, "epoch")
OF_OWNED = (
    "moved", "voluntary_moves", "minimum_moves", "amplification", "stickiness", "max_queues",
    "min_queues", "peak_ratio",
)  # fmt: skip
"""Figures of owned queues: they mean nothing where members share all of the group's queues."""
SHARED = {
    "min_clients_per_queue": ("min_clients_per_queue", "min"),
    "max_clients_per_queue": ("max_clients_per_queue", "max"),
    "unreached": ("unreached", "sum"),
}
"""Of the shared topics of an epoch: the column of ``pop_metrics``, and how topics add up."""


def step_rows(epochs: pa.Table, metrics: pa.Table, shared: pa.Table) -> pa.Table:
    """Rows of ``plan_steps`` without the variant's columns and ``counted``, in order.

    Args:
        epochs: the ledger's.
        metrics: ``group_metrics``.
        shared: ``pop_metrics``.
    """
    keys = [(name, "ascending") for name in _EPOCH]
    whole = metrics.filter(pc.is_null(metrics["topic"])).sort_by(keys)
    epochs = epochs.take(pc.sort_indices(epochs, sort_keys=keys))
    assert epochs.num_rows == whole.num_rows
    columns = {name: epochs[name] for name in _EPOCH}
    columns |= {"change_ms": epochs["from_ms"]}
    columns |= {name: epochs[name] for name in _OF_EPOCH} | {n: whole[n] for n in _FIGURES}
    # metrics count subscribers of owned queues only
    everyone = pc.if_else(all_shared(columns), epochs["distinct_members"], whole["members"])
    columns |= {"members": everyone}
    return pa.table(columns | _of_shared_topics(epochs, shared))


def _of_shared_topics(epochs: pa.Table, shared: pa.Table) -> dict[str, pa.ChunkedArray]:
    """What all shared topics of each epoch come to; null where none has a readable queue."""
    shared = shared.filter(pc.greater(shared["queues"], 0))
    grouped = shared.group_by(list(_EPOCH), use_threads=False).aggregate(list(SHARED.values()))
    names = {f"{column}_{how}": name for name, (column, how) in SHARED.items()}
    grouped = grouped.rename_columns([names.get(name, name) for name in grouped.column_names])
    rows = epochs.select(_EPOCH).append_column("_row", pa.array(np.arange(epochs.num_rows)))
    joined = rows.join(grouped, keys=list(_EPOCH), join_type="left outer", use_threads=False)
    joined = joined.sort_by("_row")
    return {name: joined[name] for name in SHARED}


def all_shared(steps: Mapping[str, pa.ChunkedArray] | pa.Table) -> pa.ChunkedArray:
    """Whether members share all queues that the group has in a step."""
    popped = pc.fill_null(pc.greater(steps["pop_queues"], 0), False)
    return pc.and_(popped, pc.fill_null(pc.equal(steps["queues"], 0), False))


def marked(steps: pa.Table, first_ms: Mapping[str, int]) -> pa.Table:
    """The rows, which are in order, with ``counted``; figures null where they mean nothing."""
    shared = all_shared(steps)
    for name in set(OF_OWNED) & set(steps.column_names):
        values = pc.if_else(shared, pa.scalar(None, steps[name].type), steps[name])
        steps = steps.set_column(steps.column_names.index(name), name, values)
    number = steps.column_names.index("amplification")
    owned = pc.equal(steps["orphaned"], 0)
    nothing = pa.scalar(None, pa.float64())
    sound = pc.if_else(owned, steps["amplification"], nothing)
    steps = steps.set_column(number, "amplification", sound)
    if "counted" in steps.column_names:
        steps = steps.drop_columns(["counted"])
    return steps.append_column("counted", counted(steps, first_ms))


def start_sums(starts: pa.Table) -> pa.Table:
    """Messages read twice and never read by group; null where unknown.

    What stands between the newest commit seen and a hand-over commit, the owner before had read.
    A group with an owner of which no observation says where it starts has no sums: new queues of
    a scenario would look as if nothing of them were skipped.
    """
    begin = pc.coalesce(starts["corrected_offset"], starts["start_offset"])
    again = pc.max_element_wise(pc.subtract(starts["stored_offset"], begin), 0, skip_nulls=False)
    handed_over = pc.fill_null(pc.equal(starts["rule"], STORED), False)
    nothing = pc.multiply(starts["skipped"], 0)  # null stays null
    never = pc.if_else(handed_over, nothing, starts["skipped"])
    rows = starts.select(list(GROUP)).append_column("replayed", again)
    rows = rows.append_column("skipped", never)
    rows = rows.append_column("unknown", pc.equal(starts["status"], UNKNOWN))
    sums = rows.group_by(list(GROUP)).aggregate(
        [("replayed", "sum"), ("skipped", "sum"), ("unknown", "any")]
    )
    known = pc.invert(pc.fill_null(sums["unknown_any"], False))
    columns = {name: sums[name] for name in GROUP}
    for name in ("replayed", "skipped"):
        values = sums[f"{name}_sum"]
        columns[f"{name}_messages"] = pc.if_else(known, values, pa.scalar(None, values.type))
    return pa.table(columns)


def counted(rows: pa.Table, first_ms: Mapping[str, int]) -> pa.Array:
    """Whether the change comes after the state before: at or after the first edit."""
    clusters = rows["cluster"].combine_chunks().dictionary_encode()
    if isinstance(clusters, pa.ChunkedArray):
        clusters = clusters.combine_chunks()
    firsts = [first_ms.get(name, -1) for name in clusters.dictionary.to_pylist()]
    first = np.array([*firsts, -1], np.int64)[clusters.indices.to_numpy()]
    at, epoch = (rows[name].to_numpy() for name in ("change_ms", "epoch"))
    return pa.array(np.where(first < 0, epoch > 0, at >= first))

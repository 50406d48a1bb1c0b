"""Totals of a group's rollouts in every future; overlapping changes count as one rollout."""

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import pyarrow as pa

from rebalance_core.contracts.propagation import PROPAGATION_TOTALS
from rebalance_core.kernels import segments
from rebalance_core.kernels.segments import Bools, Ints
from rebalance_core.timing.group_timeline import GroupTimeline
from rebalance_core.timing.handovers import Handovers
from rebalance_core.timing.message_facts import MILLI, UNKNOWN, Floats
from rebalance_core.timing.windows import Windows

_KEY: Final = ("cluster", "consumer_group", "from_ms", "to_ms")
_UNITS: Final = {
    "finish_ms": 1,
    "orphan_queue_seconds": MILLI,
    "double_queue_seconds": MILLI,
    "read_again": MILLI,
    "late_queue_seconds": MILLI,
}
"""The figures, and the divisor that turns each stored integer into its unit."""
_PERCENT: Final = {"p50": 50, "p95": 95, "p99": 99}
TOTALS_PARTIAL_SCHEMA: Final = pa.schema(
    [
        ("cluster", pa.string()),
        ("consumer_group", pa.string()),
        ("from_ms", pa.int64()),
        ("to_ms", pa.int64()),
        *((name, pa.list_(pa.int64())) for name in _UNITS),
        ("suspended_ms", pa.list_(pa.int64())),
    ]
)
"""One row per rollout and part, with one integer per figure and future; null where unknown.

``suspended_ms`` is time x queues that only a suspended client held.
"""


def rollouts(windows: Windows, from_ms: int | None, to_ms: int | None) -> list[Ints]:
    """Return the numbers of each rollout's changes: those of a run within the time range."""
    at_ms = windows.change_ms
    counted = np.ones(len(at_ms), np.bool_)
    if from_ms is not None:
        counted &= at_ms >= from_ms
    if to_ms is not None:
        counted &= at_ms < to_ms
    runs = segments.distinct(windows.run[counted])
    return [np.flatnonzero(counted & (windows.run == run)) for run in runs]


def totals_partial(
    timeline: GroupTimeline,
    windows: Windows,
    changes: Iterable[Ints],
    sums: dict[str, Ints],
    moved: Handovers,
    replayed: Ints,
    late: Floats,
) -> pa.Table:
    """Return the part for a slice of seeds, with `TOTALS_PARTIAL_SCHEMA`.

    Args:
        timeline: the played timeline.
        windows: the windows of the timeline.
        changes: the changes of each rollout, as `rollouts` returns them.
        sums: (changes, seeds) ``last_ms``, ``orphan_ms`` and ``double_ms`` of each change.
        moved: the hand-overs in all of these seeds.
        replayed: the messages read again in each hand-over; `UNKNOWN` where unknown.
        late: the lateness in milliseconds for each hand-over; NaN where unknown.
    """
    seeds = sums["orphan_ms"].shape[1]
    passed = moved.between_two
    missing = passed & (replayed == UNKNOWN), np.isnan(late)
    amounts = np.where(missing[0] | ~passed, 0, replayed), np.where(missing[1], 0.0, late)
    rows = []
    for numbers in changes:
        first_ms = int(windows.change_ms[numbers[0]])
        rolled = np.isin(moved.change, numbers)
        replayed_sum, late_sum = (
            _by_seed(moved.seed[rolled], amount[rolled], unknown[rolled], seeds)
            for amount, unknown in zip(amounts, missing, strict=True)
        )
        suspended_ms = moved.idle_ms[rolled] - moved.gap_ms[rolled]
        last_ms = sums["last_ms"][numbers].max(axis=0)
        figures: dict[str, Any] = {
            "finish_ms": np.maximum(last_ms - first_ms, 0).tolist(),
            "orphan_queue_seconds": sums["orphan_ms"][numbers].sum(axis=0).tolist(),
            "double_queue_seconds": sums["double_ms"][numbers].sum(axis=0).tolist(),
            "read_again": replayed_sum,
            "late_queue_seconds": late_sum,
            "suspended_ms": np.bincount(moved.seed[rolled], suspended_ms, seeds).astype(np.int64),
        }
        to_ms = int(windows.change_ms[numbers[-1]] + windows.followed_ms[numbers[-1]])
        key = (timeline.cluster, timeline.consumer_group, first_ms, to_ms)
        rows.append(dict(zip(_KEY, key, strict=True)) | figures)
    return pa.Table.from_pylist(rows, TOTALS_PARTIAL_SCHEMA)


def _by_seed(seed: Ints, amount: Ints | Floats, unknown: Bools, seeds: int) -> list[int | None]:
    sums = np.rint(np.bincount(seed, amount, seeds)).astype(np.int64).tolist()
    gaps = np.bincount(seed[unknown], minlength=seeds).tolist()
    return [None if gap else total for total, gap in zip(sums, gaps, strict=True)]


def propagation_totals(partials: Iterable[pa.Table]) -> pa.Table:
    """Return the rows of ``propagation_totals`` from the parts of all seeds, in any partition.

    Quantiles use the nearest rank.
    """
    by_rollout: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for part in partials:
        for row in part.to_pylist():
            by_rollout.setdefault(tuple(row[name] for name in _KEY), []).append(row)
    rows = [
        dict(zip(_KEY, key, strict=True)) | _figures(parts)
        for key, parts in sorted(by_rollout.items())
    ]
    return pa.Table.from_pylist(rows, PROPAGATION_TOTALS.arrow_schema())


def _figures(parts: list[dict[str, Any]]) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    for name, unit in _UNITS.items():
        values = [value for part in parts for value in part[name]]
        figures["seeds"] = len(values)
        if None in values:
            continue  # null
        values.sort()
        figures[f"{name}_mean"] = sum(values) / (unit * len(values))
        for suffix, percent in _PERCENT.items():
            value = values[max(1, -(-len(values) * percent // 100)) - 1]
            figures[f"{name}_{suffix}"] = value if unit == 1 else value / unit
    return figures

"""Partial results for each change over a slice of seeds, which add up exactly over all seeds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa

from rebalance_core.contracts.propagation import PROPAGATION
from rebalance_core.kernels.segments import Ints
from rebalance_core.timing.extent import extent_of
from rebalance_core.timing.group_timeline import GroupTimeline
from rebalance_core.timing.handovers import Handovers
from rebalance_core.timing.message_facts import MILLI, UNKNOWN
from rebalance_core.timing.owner_times import OwnerTimes

CAUSES_JOINED_BY = " + "
MS_PER_SECOND = 1_000

_NUMBERS = pa.list_(pa.int64())
PARTIAL_SCHEMA: Final = pa.schema(
    [
        ("cluster", pa.string()),
        ("consumer_group", pa.string()),
        ("change_ms", pa.int64()),
        ("cause", pa.string()),
        ("delays", pa.string()),
        ("extrapolated", pa.string()),
        ("convergence_ms", _NUMBERS),
        ("convergence_seeds", _NUMBERS),
        ("gap_ms", _NUMBERS),
        ("gap_queues", _NUMBERS),
        ("orphan_queue_ms", pa.int64()),
        ("double_queue_ms", pa.int64()),
        ("read_again_milli", pa.int64()),
        ("rates_unknown", pa.int64()),
    ]
)
"""One row per change and part: histograms of convergence times and gaps in milliseconds, sums, and
the number of hand-overs whose messages are unknown.
"""
_KEYS = 6
"""The first columns, which are equal in all parts for a change."""
_SUMS = ("orphan_queue_ms", "double_queue_ms", "read_again_milli", "rates_unknown")
_SHARES = (("p50", 50), ("p95", 95), ("p99", 99), ("max", 100))


def partial_of(
    timeline: GroupTimeline, times: OwnerTimes, moved: Handovers, replayed: Ints, delays: str
) -> pa.Table:
    """Return the part for a slice of seeds, with `PARTIAL_SCHEMA`.

    Args:
        timeline: the played timeline.
        times: the times for every change and seed.
        moved: the hand-overs in all of these seeds.
        replayed: messages read again in each hand-over, as `read_again_milli` returns it.
        delays: the basis of the delays.
    """
    passed = moved.between_two
    unknown = passed & (replayed == UNKNOWN)
    has_rate = passed & ~unknown
    count = len(timeline.changes)
    gaps = _gaps_by_change(moved.change[passed], moved.unread_ms[passed], count)
    messages = np.zeros(count, np.int64)
    np.add.at(messages, moved.change[has_rate], replayed[has_rate])
    missing = np.bincount(moved.change[unknown], minlength=count)
    rows, extrapolated = [], extent_of(timeline).extrapolated
    for number, change in enumerate(timeline.changes):
        ms, seeds = np.unique(times.convergence_ms[number], return_counts=True)
        values = (
            timeline.cluster,
            timeline.consumer_group,
            change.change_ms,
            CAUSES_JOINED_BY.join(change.causes),
            delays,
            extrapolated,
            ms.tolist(),
            seeds.tolist(),
            *gaps[number],
            int(times.orphan_ms[number].sum()),
            int(times.double_ms[number].sum()),
            int(messages[number]),
            int(missing[number]),
        )
        rows.append(dict(zip(PARTIAL_SCHEMA.names, values, strict=True)))
    return pa.Table.from_pylist(rows, PARTIAL_SCHEMA)


def _gaps_by_change(change: Ints, gap_ms: Ints, count: int) -> list[tuple[list[int], list[int]]]:
    height = int(gap_ms.max(initial=0)) + 1
    cells, queues = np.unique(change * height + gap_ms, return_counts=True)
    bounds = np.searchsorted(cells, np.arange(count + 1) * height)
    return [
        ((cells[low:high] - number * height).tolist(), queues[low:high].tolist())
        for number, (low, high) in enumerate(pairwise(bounds))
    ]


def propagation(partials: Iterable[pa.Table]) -> pa.Table:
    """Return the rows of ``propagation`` from the parts of all seeds, in any partition.

    Quantiles use the nearest rank.
    """
    by_change: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for part in partials:
        for row in part.to_pylist():
            key = tuple(row[name] for name in PARTIAL_SCHEMA.names[:_KEYS])
            by_change.setdefault(key, []).append(row)
    rows = [
        _row(key, parts) for key, parts in sorted(by_change.items(), key=lambda item: item[0][:3])
    ]
    return pa.Table.from_pylist(rows, PROPAGATION.arrow_schema())


def _row(key: tuple[Any, ...], parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    seeds = sum(sum(part["convergence_seeds"]) for part in parts)
    total = {name: sum(part[name] for part in parts) for name in _SUMS}
    rates_known = not total["rates_unknown"]
    return {
        **dict(zip(PARTIAL_SCHEMA.names, key, strict=False)),
        **_quantiles("convergence_ms", "convergence_seeds", parts),
        **_quantiles("gap_ms", "gap_queues", parts),
        "orphan_queue_seconds": total["orphan_queue_ms"] / (MS_PER_SECOND * seeds),
        "double_queue_seconds": total["double_queue_ms"] / (MS_PER_SECOND * seeds),
        "read_again": total["read_again_milli"] / (MILLI * seeds) if rates_known else None,
    }


def _quantiles(name: str, counts: str, parts: Sequence[dict[str, Any]]) -> dict[str, int]:
    values = np.concatenate([np.array(part[name], np.int64) for part in parts])
    weights = np.concatenate([np.array(part[counts], np.int64) for part in parts])
    order = np.argsort(values, kind="stable")
    values, reached = values[order], np.cumsum(weights[order])
    if not len(values):
        return {f"{name}_{suffix}": 0 for suffix, _ in _SHARES}
    quantiles = {}
    for suffix, percent in _SHARES:
        rank = -(-int(reached[-1]) * percent // 100)
        quantiles[f"{name}_{suffix}"] = int(values[np.searchsorted(reached, max(1, rank))])
    return quantiles

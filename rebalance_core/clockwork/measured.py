"""How long each change takes, and how long queues have no owner or several meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rebalance_core.clockwork import holdings
from rebalance_core.clockwork.handovers import NO_TIME, Handovers, first_pulls_ms, handovers_of
from rebalance_core.clockwork.holdings import MeasuredHoldings, ReadableSpans, Windows
from rebalance_core.clockwork.messages import (
    MILLI,
    UNKNOWN,
    Consumption,
    MessageFacts,
    late_ms,
    replayed_milli,
)
from rebalance_core.clockwork.options import MS_US
from rebalance_core.clockwork.ownership_log import OwnershipLog
from rebalance_core.clockwork.script import Script
from rebalance_core.clockwork.ticks import Ticks
from rebalance_core.clockwork.totals import rollouts, totals_partial
from rebalance_core.contracts.propagation import HANDOVERS, PROPAGATION
from rebalance_core.kernels.segments import NONE, Bools, Ints, first_of_run, last_of_run
from rebalance_core.model.group_settings import BROADCASTING
from rebalance_core.replay.history import GroupHistory


@dataclass(frozen=True, eq=False)
class OwnerTimes:
    """Arrays of shape (changes, seeds), in milliseconds.

    Attributes:
        convergence_ms: from the change to the last queue given up or taken; 0: none was.
        last_ms: when that was, epoch ms; 0: none was.
        orphan_ms: time x readable queues without an owner, from the change to the next one, or as
            long as it is followed.
        double_ms: time x (owners - 1) of readable queues, over the same time.
    """

    convergence_ms: Ints
    last_ms: Ints
    orphan_ms: Ints
    double_ms: Ints


def owner_times(
    script: Script,
    log: OwnershipLog,
    readable: ReadableSpans,
    windows: Windows,
    seeds: int,
    *,
    count_owners: bool = True,
) -> OwnerTimes:
    """The times of every change in every future.

    Cost: linear in the log; where the readable queues change, seeds x queues beside it.

    Args:
        script: that was played.
        log: what came of it, in order.
        readable: of the script.
        windows: of the script.
        seeds: how many were played.
        count_owners: False where every client owns every queue: only convergence is measured.
    """
    shape = len(windows.change_ms), seeds
    times = OwnerTimes(*(np.zeros(shape, np.int64) for _ in range(4)))
    change, at_ms = windows.change_of(log.at_us), log.at_us // MS_US
    last = last_of_run(log.seed, change) & (change >= 0)
    times.last_ms[change[last], log.seed[last]] = at_ms[last]
    np.maximum(times.last_ms - windows.change_ms[:, None], 0, out=times.convergence_ms)
    if not count_owners:
        return times
    # What a change leads to may come before it, by the log; a queue has its owner from then on.
    since = np.maximum(np.searchsorted(windows.change_ms, at_ms, side="right") - 1, 0)
    order = holdings.in_order(since)
    bounds = np.searchsorted(since[order], np.arange(shape[0] + 1))
    owners = _Owners.at_first(script, seeds)
    masks = [readable.mask(change_ms) for change_ms in windows.change_ms.tolist()]
    begins = [n for n, each in enumerate(masks) if not n or (each != masks[n - 1]).any()]
    for begin, end in pairwise([*begins, shape[0]]):  # the same queues are readable
        rows = order[bounds[begin] : bounds[end]]
        number, seed = since[rows], log.seed[rows].astype(np.int64)
        owners.look_at(masks[begin])
        orphans, doubles = owners.step(seed, log.queue[rows].astype(np.int64), log.delta[rows])
        late_ms = np.maximum(at_ms[rows] - windows.change_ms[number], 0)
        left_ms = np.maximum(windows.followed_ms[number] - late_ms, 0)
        cell, followed_ms = (number - begin) * seeds + seed, windows.followed_ms[begin:end, None]
        for total_ms, now, more in (
            (times.orphan_ms, owners.orphans, orphans),
            (times.double_ms, owners.doubles, doubles),
        ):
            moved, moved_ms = _sums(cell, more, total_ms[begin:end]), more * left_ms
            before = now + np.cumsum(moved, axis=0) - moved
            total_ms[begin:end] = before * followed_ms + _sums(cell, moved_ms, before)
            now += moved.sum(axis=0)
    return times


def _sums(cell: Ints, values: Ints, like: Ints) -> Ints:
    # Whole numbers below 2 ** 53: the sums of floats are exact.
    return np.bincount(cell, values, like.size).astype(np.int64).reshape(like.shape)


@dataclass(eq=False)
class _Owners:
    """How many owners each queue has in each future, and the sums over those that are readable."""

    counts: NDArray[np.int32]
    looked_at: Bools
    orphans: Ints
    doubles: Ints

    @classmethod
    def at_first(cls, script: Script, seeds: int) -> _Owners:
        counts = np.zeros((seeds, len(script.queues)), np.int32)
        for held in script.initial:
            counts[:, sorted(held)] += 1
        none = np.zeros(len(script.queues), np.bool_)
        return cls(counts, none, np.zeros(seeds, np.int64), np.zeros(seeds, np.int64))

    def look_at(self, readable: Bools) -> None:
        """Count these queues from now on."""
        self.looked_at = readable
        counts = self.counts[:, readable]
        self.orphans = (counts == 0).sum(axis=1, dtype=np.int64)
        self.doubles = np.maximum(counts - 1, 0).sum(axis=1, dtype=np.int64)

    def step(self, seed: Ints, queue: Ints, delta: NDArray[np.int8]) -> tuple[Ints, Ints]:
        """Apply rows of a log, which are in order.

        Returns:
            The change that each makes to its seed's orphans, and to its doubles.
        """
        cell = seed * self.counts.shape[1] + queue
        order = holdings.in_order(seed, queue)
        cell, change = cell[order], delta[order].astype(np.int64)
        first, last = first_of_run(cell), last_of_run(cell)
        flat = self.counts.reshape(-1)
        total = np.cumsum(change)
        begin = np.maximum.accumulate(np.where(first, np.arange(len(cell)), 0))
        after = flat[cell] + total - (total - change)[begin]
        before = after - change
        flat[cell[last]] = after[last]
        seen = self.looked_at[queue[order]]
        orphans, doubles = np.zeros((2, len(cell)), np.int64)
        orphans[order] = seen * ((after == 0).astype(np.int64) - (before == 0))
        doubles[order] = seen * (np.maximum(after - 1, 0) - np.maximum(before - 1, 0))
        return orphans, doubles


# What some seeds say of each change, such that the parts of all seeds add up exactly.

CAUSES_JOINED_BY = " + "
MS_PER_SECOND = 1_000

_NUMBERS = pa.list_(pa.int64())
PARTIAL_SCHEMA: Final = pa.schema(
    [
        ("cluster", pa.string()),
        ("consumer_group", pa.string()),
        ("change_ms", pa.int64()),
        ("cause", pa.string()),
        ("convergence_ms", _NUMBERS),
        ("convergence_seeds", _NUMBERS),
        ("gap_ms", _NUMBERS),
        ("gap_queues", _NUMBERS),
        ("orphan_queue_ms", pa.int64()),
        ("double_queue_ms", pa.int64()),
        ("replayed_milli", pa.int64()),
        ("rates_unknown", pa.int64()),
    ]
)
"""One row a change and part: how many seeds converged in, and how many queues had a gap of, each
number of milliseconds; sums; and how many hand-overs are missing in that of messages."""
_SUMS = ("orphan_queue_ms", "double_queue_ms", "replayed_milli", "rates_unknown")
_SHARES = (("p50", 50), ("p95", 95), ("p99", 99), ("max", 100))


def partial_of(script: Script, times: OwnerTimes, moved: Handovers, replayed: Ints) -> pa.Table:
    """The part of some seeds, of `PARTIAL_SCHEMA`.

    Args:
        script: that was played.
        times: of every change and seed.
        moved: hand-overs of all of these seeds.
        replayed: of each hand-over, as `replayed_milli` gives it.
    """
    passed = moved.between_two
    unknown = passed & (replayed == UNKNOWN)
    known = passed & ~unknown
    count = len(script.changes)
    gaps = _gaps_by_change(moved.change[passed], moved.unread_ms[passed], count)
    messages = np.zeros(count, np.int64)
    np.add.at(messages, moved.change[known], replayed[known])
    missing = np.bincount(moved.change[unknown], minlength=count)
    rows = []
    for number, change in enumerate(script.changes):
        ms, seeds = np.unique(times.convergence_ms[number], return_counts=True)
        values = (
            script.cluster,
            script.consumer_group,
            change.change_ms,
            CAUSES_JOINED_BY.join(change.causes),
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
    """The rows of ``propagation`` out of the parts of all seeds, whatever the parts are.

    Quantiles are by nearest rank: the smallest value that so many per cent do not exceed.
    """
    by_change: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for part in partials:
        for row in part.to_pylist():
            key = tuple(row[name] for name in PARTIAL_SCHEMA.names[:4])
            by_change.setdefault(key, []).append(row)
    rows = [_row(key, parts) for key, parts in sorted(by_change.items())]
    return pa.Table.from_pylist(rows, PROPAGATION.arrow_schema())


def _row(key: tuple[Any, ...], parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    seeds = sum(sum(part["convergence_seeds"]) for part in parts)
    total = {name: sum(part[name] for part in parts) for name in _SUMS}
    known = not total["rates_unknown"]
    return {
        **dict(zip(PARTIAL_SCHEMA.names, key, strict=False)),
        **_quantiles("convergence_ms", "convergence_seeds", parts),
        **_quantiles("gap_ms", "gap_queues", parts),
        "orphan_queue_seconds": total["orphan_queue_ms"] / (MS_PER_SECOND * seeds),
        "double_queue_seconds": total["double_queue_ms"] / (MS_PER_SECOND * seeds),
        "replayed_messages": total["replayed_milli"] / (MILLI * seeds) if known else None,
    }


def _quantiles(name: str, counts: str, parts: Sequence[dict[str, Any]]) -> dict[str, int]:
    values = np.concatenate([np.array(part[name], np.int64) for part in parts])
    weights = np.concatenate([np.array(part[counts], np.int64) for part in parts])
    order = np.argsort(values, kind="stable")
    values, reached = values[order], np.cumsum(weights[order])
    if not len(values):
        return {f"{name}_{suffix}": 0 for suffix, _ in _SHARES}
    found = {}
    for suffix, percent in _SHARES:
        rank = -(-int(reached[-1]) * percent // 100)
        found[f"{name}_{suffix}"] = int(values[np.searchsorted(reached, max(1, rank))])
    return found


# One slice of seeds measured: rows of ``handovers``, and a part of ``propagation``.


@dataclass(frozen=True, eq=False)
class Measured:
    """Measures over some seeds.

    Attributes:
        handovers: rows of the contract's table, by seed, change, queue and time.
        partial: of `PARTIAL_SCHEMA`, one row a change.
        totals: of `TOTALS_PARTIAL_SCHEMA`, one row a rollout.
        ownerless_ms: of each row of ``handovers``, how long the queue had no owner.
    """

    handovers: pa.Table
    partial: pa.Table
    totals: pa.Table
    ownerless_ms: Ints


def measured(
    history: GroupHistory,
    ticks: Ticks,
    log: OwnershipLog,
    handovers_before_seed: int,
    counted_ms: tuple[int | None, int | None] = (None, None),
) -> Measured:
    """Measure what was played of one group.

    A group that broadcasts hands nothing over: only its convergence counts.

    Args:
        history: that the script is of; its offsets tell how many messages came.
        ticks: of the script, with the seeds that were played.
        log: what came of them, in order.
        handovers_before_seed: rows of ``handovers`` are wanted of smaller seeds.
        counted_ms: totals are of changes from, and before; None: of all.
    """
    script, seeds = ticks.script, len(ticks.seeds)
    windows, readable = holdings.windows_of(script), holdings.readable_of(script)
    shared = not broadcasts(script)
    times = owner_times(script, log, readable, windows, seeds, count_owners=shared)
    held = holdings.holdings_of(script, log.take(np.arange(len(log) if shared else 0)), seeds)
    moved = handovers_of(held, readable, windows, first_pulls_ms(script))
    facts = MessageFacts.of(script, history)
    reading = Consumption.of(moved, facts, script, ticks.options, windows.change_ms)
    replayed = replayed_milli(moved, held, reading, ticks)
    partial = partial_of(script, times, moved, replayed)
    sums = {"last_ms": times.last_ms, "orphan_ms": times.orphan_ms, "double_ms": times.double_ms}
    totals = totals_partial(
        script, windows, rollouts(windows, *counted_ms), sums, moved, replayed,
        late_ms(moved, reading),
    )  # fmt: skip
    wanted = np.flatnonzero(ticks.seeds[moved.seed] < handovers_before_seed)
    kept, replayed = moved.take(wanted), replayed[wanted]
    times_ms = np.where(kept.drop_ms == NO_TIME, kept.start_ms, kept.drop_ms), kept.start_ms
    order = np.lexsort((times_ms[1], times_ms[0], kept.queue, kept.change, kept.seed))
    kept = kept.take(order)
    rows = _rows(script, facts, ticks.seeds, held, kept, replayed[order])
    return Measured(rows, partial, totals, kept.gap_ms)


def broadcasts(script: Script) -> bool:
    """Each client has every queue for itself."""
    models = {member.message_model for life in script.lives for _, member in life.states}
    return BROADCASTING in models


def _rows(
    script: Script,
    facts: MessageFacts,
    seeds: NDArray[np.int64],
    held: MeasuredHoldings,
    moved: Handovers,
    replayed: Ints,
) -> pa.Table:
    count = len(moved.seed)
    changes = script.changes
    certain = moved.between_two & facts.has_stored(moved.queue, moved.start_ms)
    whole = (2 * replayed + MILLI) // (2 * MILLI)
    arrays = {
        "cluster": pa.repeat(script.cluster, count),
        "consumer_group": pa.repeat(script.consumer_group, count),
        "seed": pa.array(seeds[moved.seed]),
        "change_ms": _taken([each.change_ms for each in changes], moved.change, pa.int64()),
        "cause": _taken(
            [CAUSES_JOINED_BY.join(each.causes) for each in changes], moved.change, pa.string()
        ),
        "topic": _taken([queue.topic for queue in script.queues], moved.queue, pa.string()),
        "broker_name": _taken(
            [queue.broker_name for queue in script.queues], moved.queue, pa.string()
        ),
        "queue_id": _taken([queue.queue_id for queue in script.queues], moved.queue, pa.int32()),
        "from_client_id": _clients(script, held, moved.giver),
        "to_client_id": _clients(script, held, moved.taker),
        "drop_ms": pa.array(moved.drop_ms, mask=moved.drop_ms == NO_TIME),
        "start_ms": pa.array(moved.start_ms, mask=moved.start_ms == NO_TIME),
        "gap_ms": pa.array(moved.unread_ms),
        "overlap_ms": pa.array(moved.overlap_ms),
        "replayed": pa.array(whole, mask=replayed == UNKNOWN),
        "skipped": pa.array(np.zeros(count, np.int64), mask=~certain),
    }
    schema = HANDOVERS.arrow_schema()
    return pa.table([arrays[name] for name in schema.names], schema=schema)


def _taken(values: list[object], places: Ints, kind: pa.DataType) -> pa.Array:
    return pa.array(values, kind).take(pa.array(places))


def _clients(script: Script, held: MeasuredHoldings, rows: Ints) -> pa.Array:
    """The client ids of holdings; null for nobody."""
    life = np.where(rows >= 0, held.life[rows] if len(held.life) else NONE, 0)
    names = pa.array([each.client_id for each in script.lives], pa.string())
    return names.take(pa.array(life, mask=rows < 0))

"""Measures a slice of seeds: rows of ``handovers``, and a part of ``propagation``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rebalance_core.contracts.propagation import HANDOVERS
from rebalance_core.kernels.segments import NONE, Ints
from rebalance_core.model.group_settings import BROADCASTING
from rebalance_core.replay.history import GroupHistory
from rebalance_core.timing import holdings, readable_spans
from rebalance_core.timing.extent import delays_basis
from rebalance_core.timing.group_timeline import GroupTimeline
from rebalance_core.timing.handovers import NO_TIME, Handovers, first_pulls_ms, handovers_of
from rebalance_core.timing.holder_rows import NO_HOLDERS, holder_rows
from rebalance_core.timing.holdings import MeasuredHoldings
from rebalance_core.timing.message_facts import MILLI, UNKNOWN, MessageFacts
from rebalance_core.timing.messages import Consumption, late_ms, read_again_milli
from rebalance_core.timing.owner_times import owner_times
from rebalance_core.timing.ownership_log import OwnershipLog
from rebalance_core.timing.propagation_parts import CAUSES_JOINED_BY, partial_of
from rebalance_core.timing.suspensions import until_suspended
from rebalance_core.timing.ticks import Ticks
from rebalance_core.timing.totals import rollouts, totals_partial
from rebalance_core.timing.windows import windows_of


@dataclass(frozen=True, eq=False)
class Measured:
    """The measurements over a slice of seeds.

    Attributes:
        handovers: rows of the contract's table, ordered by seed, change, queue and time.
        partial: with `PARTIAL_SCHEMA`, one row per change.
        totals: with `TOTALS_PARTIAL_SCHEMA`, one row per rollout.
        ownerless_ms: how long the queue of each row of ``handovers`` had no owner.
        holders: rows of the contract's table.
    """

    handovers: pa.Table
    partial: pa.Table
    totals: pa.Table
    ownerless_ms: Ints
    holders: pa.Table


def measured(
    history: GroupHistory,
    ticks: Ticks,
    log: OwnershipLog,
    handovers_before_seed: int,
    counted_ms: tuple[int | None, int | None] = (None, None),
    holders_before_seed: int = 0,
) -> Measured:
    """Measure a played group.

    A broadcasting group never hands over a queue, so only its convergence is measured.

    Args:
        history: the history behind the timeline; its offsets show how many messages arrived.
        ticks: the ticks of the timeline, with the seeds that were played.
        log: the ownership log of these seeds, in order.
        handovers_before_seed: only smaller seeds get rows of ``handovers``.
        counted_ms: totals cover the changes from the first time up to, but excluding, the second;
            None sets no limit.
        holders_before_seed: only smaller seeds get rows of ``holders``.
    """
    timeline, seeds = ticks.timeline, len(ticks.seeds)
    windows, readable = windows_of(timeline), readable_spans.readable_of(timeline)
    shared = not broadcasts(timeline)
    times = owner_times(timeline, log, readable, windows, seeds, count_owners=shared)
    held = holdings.holdings_of(timeline, log.take(np.arange(len(log) if shared else 0)), seeds)
    facts = MessageFacts.from_history(timeline, history)
    held = until_suspended(held, ticks, facts)
    moved = handovers_of(held, readable, windows, first_pulls_ms(timeline))
    reading = Consumption.from_observations(
        moved, facts, timeline, ticks.options, windows.change_ms
    )
    replayed = read_again_milli(moved, held, reading, ticks)
    partial = partial_of(timeline, times, moved, replayed, delays_basis(ticks.options))
    sums = {"last_ms": times.last_ms, "orphan_ms": times.orphan_ms, "double_ms": times.double_ms}
    totals = totals_partial(
        timeline,
        windows,
        rollouts(windows, *counted_ms),
        sums,
        moved,
        replayed,
        late_ms(moved, reading),
    )
    wanted = np.flatnonzero(ticks.seeds[moved.seed] < handovers_before_seed)
    kept, replayed = moved.take(wanted), replayed[wanted]
    times_ms = np.where(kept.drop_ms == NO_TIME, kept.start_ms, kept.drop_ms), kept.start_ms
    order = np.lexsort((times_ms[1], times_ms[0], kept.queue, kept.change, kept.seed))
    kept = kept.take(order)
    rows = _rows(timeline, facts, ticks.seeds, held, kept, replayed[order])
    holders = NO_HOLDERS
    if int(ticks.seeds[0]) < holders_before_seed:
        everyone = held if shared else holdings.holdings_of(timeline, log, seeds)
        holders = holder_rows(timeline, everyone, ticks.seeds, holders_before_seed)
    return Measured(rows, partial, totals, kept.gap_ms, holders)


def broadcasts(timeline: GroupTimeline) -> bool:
    """Return whether every client owns every queue."""
    models = {
        member.message_model for lifetime in timeline.lifetimes for _, member in lifetime.states
    }
    return BROADCASTING in models


def _rows(
    timeline: GroupTimeline,
    facts: MessageFacts,
    seeds: NDArray[np.int64],
    held: MeasuredHoldings,
    moved: Handovers,
    replayed: Ints,
) -> pa.Table:
    count = len(moved.seed)
    changes = timeline.changes
    certain = moved.between_two & facts.has_stored(moved.queue, moved.start_ms)
    whole = (2 * replayed + MILLI) // (2 * MILLI)
    arrays = {
        "cluster": pa.repeat(timeline.cluster, count),
        "consumer_group": pa.repeat(timeline.consumer_group, count),
        "seed": pa.array(seeds[moved.seed]),
        "change_ms": _taken([each.change_ms for each in changes], moved.change, pa.int64()),
        "cause": _taken(
            [CAUSES_JOINED_BY.join(each.causes) for each in changes], moved.change, pa.string()
        ),
        "topic": _taken([queue.topic for queue in timeline.queues], moved.queue, pa.string()),
        "broker_name": _taken(
            [queue.broker_name for queue in timeline.queues], moved.queue, pa.string()
        ),
        "queue_id": _taken([queue.queue_id for queue in timeline.queues], moved.queue, pa.int32()),
        "from_client_id": _clients(timeline, held, moved.giver),
        "to_client_id": _clients(timeline, held, moved.taker),
        "drop_ms": pa.array(moved.drop_ms, mask=moved.drop_ms == NO_TIME),
        "start_ms": pa.array(moved.start_ms, mask=moved.start_ms == NO_TIME),
        "gap_ms": pa.array(moved.unread_ms),
        "overlap_ms": pa.array(moved.overlap_ms),
        "read_again": pa.array(whole, mask=replayed == UNKNOWN),
        "skipped": pa.array(np.zeros(count, np.int64), mask=~certain),
    }
    schema = HANDOVERS.arrow_schema()
    return pa.table([arrays[name] for name in schema.names], schema=schema)


def _taken(values: list[object], places: Ints, kind: pa.DataType) -> pa.Array:
    return pa.array(values, kind).take(pa.array(places))


def _clients(timeline: GroupTimeline, held: MeasuredHoldings, rows: Ints) -> pa.Array:
    """Return the client id of each holding; null for row -1."""
    lifetime = np.where(rows >= 0, held.lifetime[rows] if len(held.lifetime) else NONE, 0)
    names = pa.array([each.client_id for each in timeline.lifetimes], pa.string())
    return names.take(pa.array(lifetime, mask=rows < 0))

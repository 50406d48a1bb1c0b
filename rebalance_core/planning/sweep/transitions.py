"""Costs until a group has settled, step by step: the pass `TRANSITIONS` of a sweep.

The steps of a plan are simulated over time, in any number of futures. In a history that has not
happened, the phases of timers are unknown, so all of them are random, and edited events happen at
exactly their millisecond. Messages keep arriving at their average rate. A client that two variants
have in common has the same timers in both, so they differ by the change and not by chance.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.contracts.propagation import HANDOVERS
from rebalance_core.engine.fan_out import GROUP
from rebalance_core.engine.propagation import (
    PropagationOptions,
    is_unknown,
    played,
    played_timelines,
)
from rebalance_core.kernels.segments import Ints
from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.times import HOUR_MS, SECOND_MS
from rebalance_core.replay.history import GroupHistory, QueueOffset
from rebalance_core.timing.extent import StartUp, start_up_of
from rebalance_core.timing.holder_rows import NO_HOLDERS, held_from
from rebalance_core.timing.measured import Measured
from rebalance_core.timing.message_facts import MILLI
from rebalance_core.timing.options import RANDOM_PHASES, ClockOptions
from rebalance_core.timing.propagation_parts import propagation
from rebalance_core.timing.timeline_builder import build_timeline
from rebalance_core.timing.vectorized.checkpoints import Checkpoints

TRANSITIONS = "transitions"
"""The pass that supplements those in `passes`."""
HOLDERS = "holders"
"""The rows of the contract's table that accompany it."""
FUTURES = 20
"""The number of futures: sums over a deploy of 24 steps were within 8 % of those with 1,000
futures, mostly within 1 % (docs/planning.md).
"""
CLOCK = ClockOptions(phases=RANDOM_PHASES, exact_times=True)

GAPS, OVERLAPS, READ_AGAIN = SUMS = (
    "orphan_queue_seconds",
    "double_queue_seconds",
    "read_again",
)
"""Columns of the pass that are summed over counted steps and over groups."""
SLOWEST = "convergence_ms_p99"
START_UP, BROKERS = "start_up_ms_p50", "start_up_brokers"
"""The median duration of ``start()`` over the futures, and the number of brokers that it registers
with.
"""
MOST = (SLOWEST, START_UP, BROKERS)
"""Columns of which a summary over groups reports the maximum."""
FIGURES = {name: pa.float64() for name in SUMS} | {name: pa.int64() for name in MOST}
"""The columns of ``plan_summary`` that the pass makes, with their types."""
NO_OWNER, READ_AGAIN_BY_SEED, LATE = OF_FUTURES = ("no_owner_s", "read_again_by_seed", "late_s")
"""Columns with one value per future: queues x seconds without an owner; messages read again; queues
x seconds over 1 s behind. Null where a future's value is unknown.
"""
TRANSITION_SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in GROUP),
        *FIGURES.items(),
        *((name, pa.list_(pa.float64())) for name in OF_FUTURES),
    ]
)

Row = dict[str, Any]

MOST_BYTES = 100_000_000
"""Once the futures kept for later histories take this much memory, those of further groups are not
kept.
"""


@dataclass(eq=False)
class SharedCheckpoints:
    """Checkpoints of futures before the first edits, for as many groups as fit into memory.

    Attributes:
        cuts_us: by cluster, the first edits of a plan's histories.
    """

    cuts_us: Mapping[str, Sequence[int]]
    _of: dict[tuple[str, str], Checkpoints] = field(default_factory=dict)
    _last: Checkpoints = field(default_factory=Checkpoints)
    _bytes: int = 0
    """The size of all parts but the last."""

    def checkpoints_of(self, cluster: str, consumer_group: str) -> Checkpoints | None:
        """Return the checkpoints of a group, or None if there is no room."""
        key = cluster, consumer_group
        if key not in self._of and self._bytes + self._last.bytes < MOST_BYTES:
            self._bytes += self._last.bytes
            self._of[key] = self._last = Checkpoints(self.cuts_us.get(cluster, ()))
        return self._of.get(key)


@dataclass(frozen=True)
class Transitions:
    """Groups to simulate over time, and how; small enough to be sent to every task.

    Attributes:
        futures: the number for each group; 0 for none.
        groups: (cluster, group) pairs to simulate; None for all.
        holder_futures: the number of futures that yield `HOLDERS`.
        clock: the assumptions about timers.
    """

    futures: int = 0
    groups: frozenset[tuple[str, str]] | None = None
    clock: ClockOptions = CLOCK
    holder_futures: int = 0

    def wants(self, cluster: str, consumer_group: str) -> bool:
        """Return True if this group is simulated."""
        if not self.futures:
            return False
        return self.groups is None or (cluster, consumer_group) in self.groups

    def rows(
        self,
        history: GroupHistory,
        strategies: Iterable[tuple[int, str | None]],
        first_ms: Mapping[str, int],
        shared: SharedCheckpoints | None = None,
    ) -> Iterator[tuple[int, Row, pa.Table]]:
        """Yield (number of the strategy, the group's row of `TRANSITION_SCHEMA`, its holders).

        Args:
            history: the group's history.
            strategies: (number, text) of RocketMQ's; None keeps every member's own.
            first_ms: by cluster, the first edit; earlier steps do not count.
            shared: state shared with the other histories of the plan, or None if there are none.
        """
        first, group = first_ms.get(history.cluster, -1), (history.cluster, history.consumer_group)
        checkpoints = None if shared is None else shared.checkpoints_of(*group)
        numbered = list(strategies)
        histories = [_under(history, text) for _, text in numbered]
        made = transitions(
            histories, self.futures, first, self.clock, checkpoints, self.holder_futures
        )
        for (number, _), (row, holders) in zip(numbered, made, strict=True):
            yield number, row, holders


def transitions(
    histories: Sequence[GroupHistory],
    futures: int,
    first_ms: int = -1,
    clock: ClockOptions = CLOCK,
    checkpoints: Checkpoints | None = None,
    holder_futures: int = 0,
) -> list[tuple[Row, pa.Table]]:
    """Return a group's sums over its steps from a time on, for each of its histories, as means over
    futures.

    A queue counts from its drop to its next start, however many steps lie in between, because the
    steps of a deploy overlap. A queue that no client takes does not count; it is
    ``orphaned_after``. Topics whose queues members share, and retry topics, are left out. For a
    group whose owners are unknown, the sums are unknown. Cost: that of the replay, and linear in
    futures; histories that differ only in strategies are played together.

    Args:
        histories: the group's history, under each strategy.
        futures: the number of futures, with the seeds 0 to futures - 1.
        first_ms: the time before which steps do not count; -1: all count.
        clock: the assumptions about timers.
        checkpoints: as in `timing.vectorized.play.play_seeds`.
        holder_futures: the number of futures for which the rows of ``holders`` are also returned.
    """
    options = PropagationOptions(
        seeds=futures,
        handover_seeds=futures,
        holder_seeds=holder_futures,
        clock=clock,
        from_ms=first_ms,
    )
    known = [number for number, history in enumerate(histories) if not is_unknown(history)]
    timelines = [build_timeline(histories[number], clock) for number in known]
    wanted = [
        (with_rates_going_on(histories[number]), timeline)
        for number, timeline in zip(known, timelines, strict=True)
    ]
    parts: list[list[_Part]] = [[] for _ in known]
    for place, measures in played_timelines(wanted, options, range(futures), checkpoints):
        parts[place].append(_Part.of(measures, futures, first_ms))
    made: list[tuple[Row, pa.Table]] = [
        ({"cluster": each.cluster, "consumer_group": each.consumer_group}, NO_HOLDERS)
        for each in histories
    ]
    for number, timeline, its in zip(known, timelines, parts, strict=True):
        figures = _figures_of(its, start_up_of(timeline, clock), futures)
        holders = pa.concat_tables([NO_HOLDERS, *(part.holders for part in its)])
        made[number] = made[number][0] | figures, holders
    return made


@dataclass(frozen=True, eq=False)
class _Part:
    """The contribution of a slice of futures to a row.

    Attributes:
        gaps_ms: (futures,) the sums of gaps.
        overlap_ms: the sum of overlaps.
        partial: the counted rows of `Measured.partial`.
        read_again: the messages read again in each future of the slice, or None if one is unknown.
        late_s: the lateness in each future, or None if one is unknown.
        holders: the counted rows of `HOLDERS`.
    """

    gaps_ms: Ints
    overlap_ms: int
    partial: pa.Table
    read_again: list[float] | None
    late_s: list[float] | None
    holders: pa.Table

    @classmethod
    def of(cls, measures: Measured, futures: int, first_ms: int) -> "_Part":
        """Reduce a slice's measurements to the steps from a time on."""
        return cls(
            *_between(measures, futures, first_ms),
            measures.partial.filter(pc.field("change_ms") >= first_ms),
            _of_futures(measures, "read_again"),
            _of_futures(measures, "late_queue_seconds"),
            held_from(measures.holders, first_ms),
        )


def _figures_of(parts: Sequence[_Part], start_up: StartUp | None, futures: int) -> Row:
    """Return the figures of a history's row."""
    steps = propagation(part.partial for part in parts).to_pylist()
    gaps_ms = sum((part.gaps_ms for part in parts), np.zeros(futures, np.int64))
    overlap_ms = sum(part.overlap_ms for part in parts)
    return {
        GAPS: int(gaps_ms.sum()) / (SECOND_MS * futures),
        OVERLAPS: overlap_ms / (SECOND_MS * futures),
        READ_AGAIN: _sum([row["read_again"] for row in steps]),
        SLOWEST: max((row[SLOWEST] for row in steps), default=0),
        START_UP: start_up and start_up.median_ms,
        BROKERS: start_up and start_up.brokers,
        NO_OWNER: (gaps_ms / SECOND_MS).tolist(),
        READ_AGAIN_BY_SEED: _in_succession([part.read_again for part in parts], futures),
        LATE: _in_succession([part.late_s for part in parts], futures),
    }


def simulated_handovers(history: GroupHistory, futures: int) -> pa.Table:
    """Return the ``handovers`` of a planned history in all futures, as in `transitions`."""
    options = PropagationOptions(seeds=futures, handover_seeds=futures, clock=CLOCK)
    slices = played(with_rates_going_on(history), options, range(futures))
    tables = [each.handovers for each in slices]
    return pa.concat_tables([HANDOVERS.arrow_schema().empty_table(), *tables])


def _between(measures: Measured, futures: int, first_ms: int) -> tuple[Ints, int]:
    """Return the sum of gaps in each future, and the sum of overlaps over all futures, in ms."""
    gaps_ms, rows = np.zeros(futures, np.int64), measures.handovers
    taken = pc.and_(pc.is_valid(rows["start_ms"]), pc.greater_equal(rows["change_ms"], first_ms))
    counted = rows.append_column("ownerless_ms", pa.array(measures.ownerless_ms)).filter(taken)
    np.add.at(gaps_ms, counted["seed"].to_numpy(), counted["ownerless_ms"].to_numpy())
    return gaps_ms, pc.sum(counted["overlap_ms"]).as_py() or 0


def _of_futures(measures: Measured, figure: str) -> list[float] | None:
    """Return a figure for each future, summed over all rollouts, or None if one is unknown."""
    of_rollouts = measures.totals[figure].to_pylist()
    if any(None in values for values in of_rollouts):
        return None
    return (np.sum(of_rollouts, axis=0) / MILLI).tolist() if of_rollouts else []


def _in_succession(slices: Sequence[list[float] | None], futures: int) -> list[float] | None:
    """Return a figure for all futures from its slices, or None if one is unknown."""
    values: list[float] = []
    for each in slices:
        if each is None:
            return None
        values += each
    return values or [0.0] * futures


def with_rates_going_on(history: GroupHistory) -> GroupHistory:
    """Return the history with messages that keep arriving, at each queue's mean rate."""
    observed: dict[MessageQueue, list[QueueOffset]] = {}
    for row in sorted(history.queue_offsets or (), key=lambda row: row.observed_ms):
        observed.setdefault(row.queue, []).append(row)
    end_ms = max((event.event_ms for event in history.events), default=0) + HOUR_MS
    later = []
    for rows in observed.values():
        first, last = rows[0], rows[-1]
        if first.observed_ms < last.observed_ms < end_ms:
            rate = (last.max_offset - first.max_offset) / (last.observed_ms - first.observed_ms)
            come = max(0, round(rate * (end_ms - last.observed_ms)))
            later.append(replace(last, observed_ms=end_ms, max_offset=last.max_offset + come))
    if not later:
        return history
    return replace(history, queue_offsets=(*(history.queue_offsets or ()), *later))


def _under(history: GroupHistory, strategy: str | None) -> GroupHistory:
    """Return the history with this strategy for all members, or unchanged if it is None."""
    if strategy is None:
        return history
    return replace(
        history,
        settings=replace(history.settings, strategy=strategy),
        events=tuple(replace(event, strategy=None) for event in history.events),
        sharing_groups=tuple(
            _under(sharing_group, strategy) for sharing_group in history.sharing_groups
        ),
    )


def _sum(values: Sequence[float | None]) -> float | None:
    """Return the sum, or null if a value is unknown."""
    known_values = [value for value in values if value is not None]
    return float(sum(known_values)) if len(known_values) == len(values) else None

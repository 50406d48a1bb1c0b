"""Propagation of changes through groups in many futures, for a single process and for Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from heapq import nsmallest
from math import fsum
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from rebalance_core.checks.expected_values import MAX_QUEUE_NUMS
from rebalance_core.contracts import REJECTED
from rebalance_core.model.clients import profile_at
from rebalance_core.model.events import CONSUMER_JOIN
from rebalance_core.model.group_settings import BROADCASTING
from rebalance_core.replay.group_replay import rejected_row
from rebalance_core.replay.history import GroupHistory
from rebalance_core.timing.extent import Extent, StartUp, extent_of, start_up_of
from rebalance_core.timing.group_timeline import GroupTimeline
from rebalance_core.timing.measured import Measured, broadcasts, measured
from rebalance_core.timing.options import MS_US, ClockOptions
from rebalance_core.timing.ticks import Ticks
from rebalance_core.timing.timeline_builder import build_timeline
from rebalance_core.timing.timer_periods import NEVER
from rebalance_core.timing.vectorized import play_timelines, reason_of
from rebalance_core.timing.vectorized.checkpoints import Checkpoints
from rebalance_core.timing.vectorized.reference_only import REGULAR

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import PropagationRow, RejectedRow

SEEDS = 1_000
"""The default number of futures, of which ten lie beyond p99."""
HANDOVER_SEEDS = 10
"""The default number of futures with rows of their own, a hundredth of the rows of 1,000
futures.
"""


@dataclass(frozen=True)
class PropagationOptions:
    """Options for simulations over time.

    Attributes:
        seeds: The number of futures.
        first_seed: The seed of the first future; the others are numbered consecutively.
        handover_seeds: The number of futures, starting with the first, that have rows in
            ``handovers``.
        holder_seeds: The number of futures, starting with the first, that have rows in ``holders``.
        group: A glob (``*``, ``?``) for the selected groups; None for all.
        max_queue_nums: The maximum number of queues that a topic may have on a broker.
        from_ms: Totals cover changes at or after this; None for all.
        to_ms: Totals cover changes before this; None for all.
        clock: The assumptions about timers, notices, name servers and handlers.
    """

    seeds: int = SEEDS
    first_seed: int = 0
    handover_seeds: int = HANDOVER_SEEDS
    holder_seeds: int = 0
    group: str | None = None
    max_queue_nums: int = MAX_QUEUE_NUMS
    from_ms: int | None = None
    to_ms: int | None = None
    clock: ClockOptions = field(default_factory=ClockOptions)

    @property
    def handovers_before_seed(self) -> int:
        """The first seed without rows in ``handovers``."""
        return self.first_seed + min(self.handover_seeds, self.seeds)

    @property
    def holders_before_seed(self) -> int:
        """The first seed without rows in ``holders``."""
        return self.first_seed + min(self.holder_seeds, self.seeds)

    def part(self, number: int, parts: int) -> range:
        """Return the seeds of part ``number`` of ``parts``; the range may be empty."""
        begin, end = (self.seeds * place // parts for place in (number, number + 1))
        return range(self.first_seed + begin, self.first_seed + end)


PIECE_STEPS = 500_000
"""Changes x members x seeds per piece, which takes a few seconds."""
STEPS_ONE_BY_ONE = 30
"""The relative cost of a step in futures that are played one by one."""
SLICE_ROWS = 1_000_000
"""The estimated number of rows of an ownership log that are measured at once; 200 MB with all
arrays.
"""


NO_EXTENT = Extent(0, 0, 0)


@dataclass(frozen=True)
class Survey:
    """The amount of simulation that a group needs.

    Attributes:
        cluster: Its cluster.
        consumer_group: Its name.
        changes: The number of simulated changes; 0 if all queues are shared or a member's
            subscriptions are unknown.
        steps: The sum, over the changes, of the number of members at that time.
        shared_topics: Topics left out because members share their queues.
        broadcasts: Whether it broadcasts, in which case no queue is handed over.
        unknown: Whether a member's subscriptions are unknown.
        reason: Why its futures are played one by one; `REGULAR` if they are played together.
        extent: The sizes that determine its costs.
        start_up: How long ``start()`` takes; None without members.
        rejected: Rows of ``rejected`` for events that name a process that does not exist.
    """

    cluster: str
    consumer_group: str
    changes: int
    steps: int
    shared_topics: tuple[str, ...]
    broadcasts: bool
    unknown: bool
    reason: str
    extent: Extent = NO_EXTENT
    start_up: StartUp | None = None
    rejected: tuple[RejectedRow, ...] = field(default=(), repr=False)

    def parts(self, options: PropagationOptions) -> int:
        """Return the number of pieces into which the group's seeds are divided."""
        cost = self.steps * (1 if self.reason == REGULAR else STEPS_ONE_BY_ONE)
        wanted = -(-cost * options.seeds // PIECE_STEPS)
        return max(1, min(wanted, options.seeds))


def is_unknown(history: GroupHistory) -> bool:
    """Return whether the owners are unknown, because a member's subscriptions or its way of
    allocating are unknown.
    """
    settings = history.settings
    joins = [event for event in history.events if event.event_type == CONSUMER_JOIN]
    unstated = settings.subscriptions is None and any(join.subscriptions is None for join in joins)
    return unstated or any(
        not profile_at(settings, join).share_known(join.strategy or settings.strategy)
        and (join.message_model or settings.message_model) != BROADCASTING
        for join in joins
    )


def surveyed(history: GroupHistory, options: PropagationOptions) -> Survey:
    """Survey a group without playing a seed; the cost grows with its events."""
    timeline = build_timeline(history, options.clock)
    return Survey(
        cluster=history.cluster,
        consumer_group=history.consumer_group,
        changes=len(timeline.changes) if timeline.queues and not is_unknown(history) else 0,
        steps=int(_members(timeline).sum()),
        shared_topics=timeline.popped,
        broadcasts=broadcasts(timeline),
        unknown=is_unknown(history),
        reason=reason_of(timeline),
        extent=extent_of(timeline),
        start_up=start_up_of(timeline, options.clock),
        rejected=tuple(map(rejected_row, timeline.unknown_members)),
    )


def played(
    history: GroupHistory,
    options: PropagationOptions,
    seeds: range,
    timeline: GroupTimeline | None = None,
    checkpoints: Checkpoints | None = None,
) -> Iterator[Measured]:
    """Yield the measurements of some futures of a group, played one slice of seeds at a time.

    Args:
        history: The group's history.
        options: Assumptions, and the seeds with rows in ``handovers``.
        seeds: The futures to play.
        timeline: The timeline of the history and clock; None builds it.
        checkpoints: As in `play_timelines`.
    """
    if is_unknown(history):
        return
    if timeline is None:
        timeline = build_timeline(history, options.clock)
    for _, measures in played_timelines([(history, timeline)], options, seeds, checkpoints):
        yield measures


def played_timelines(
    wanted: Sequence[tuple[GroupHistory, GroupTimeline]],
    options: PropagationOptions,
    seeds: range,
    checkpoints: Checkpoints | None = None,
) -> Iterator[tuple[int, Measured]]:
    """Yield (index, measurements) of some futures of a group's histories and their timelines, as
    `played` does for one; histories that differ only in strategies are played together. No history
    may be `is_unknown`.
    """
    simulated = [
        number
        for number, (_, timeline) in enumerate(wanted)
        if timeline.changes and timeline.queues
    ]
    if not simulated:
        return
    timelines = [wanted[number][1] for number in simulated]
    size = max(1, SLICE_ROWS // sum(len(each.changes) * len(each.queues) for each in timelines))
    if checkpoints is not None:
        size = checkpoints.slice_size("measure", len(timelines), size)
    for begin in range(seeds.start, seeds.stop, size):
        numbers = np.arange(begin, min(begin + size, seeds.stop), dtype=np.int64)
        logs = play_timelines(timelines, numbers, options.clock, checkpoints)
        for number, timeline, log in zip(simulated, timelines, logs, strict=True):
            yield (
                number,
                measured(
                    wanted[number][0],
                    Ticks(timeline, numbers, options.clock),
                    log,
                    options.handovers_before_seed,
                    (options.from_ms, options.to_ms),
                    options.holders_before_seed,
                ),
            )


def rejected_rows(surveys: Iterable[Survey]) -> pa.Table:
    """Return the rows of ``rejected`` for some groups."""
    rows = [row for survey in surveys for row in survey.rejected]
    return pa.Table.from_pylist(rows, REJECTED.arrow_schema())


def _members(timeline: GroupTimeline) -> np.ndarray:
    """Return (changes,) the number of live processes at each change."""
    at_us = np.array([change.change_ms * MS_US for change in timeline.changes], np.int64)
    joins = np.sort([lifetime.joined.event_us for lifetime in timeline.lifetimes])
    ends = np.sort(
        [
            NEVER if lifetime.ending is None else lifetime.ending.moment.event_us
            for lifetime in timeline.lifetimes
        ]
    )
    return np.searchsorted(joins, at_us, side="right") - np.searchsorted(ends, at_us)


SLOWEST = 10
"""Maximum number of changes that a summary lists."""
DIGITS = 3
"""The number of decimal places in sums of seconds, which runtimes add in different orders."""
SUMMARY_COLUMNS = (
    "cluster",
    "consumer_group",
    "change_ms",
    "cause",
    "convergence_ms_p50",
    "convergence_ms_p99",
    "gap_ms_p99",
    "orphan_queue_seconds",
    "double_queue_seconds",
    "read_again",
)

OF_CAUSE = ("convergence_ms_p99", "orphan_queue_seconds", "double_queue_seconds")
"""The figures of a cause's changes: a maximum, and sums."""


class PropagationFacts:
    """Totals by cause, and the slowest changes."""

    def __init__(self) -> None:
        self._causes: dict[str, list[tuple[Any, ...]]] = {}
        """`OF_CAUSE` of each change."""
        self._slowest: list[PropagationRow] = []

    def add(self, rows: pa.Table) -> None:
        """Add rows of ``propagation`` to the totals."""
        listed = rows.select(SUMMARY_COLUMNS).to_pylist()
        for row in listed:
            figures = tuple(row[name] for name in OF_CAUSE)
            self._causes.setdefault(row["cause"], []).append(figures)
        self._slowest = nsmallest(SLOWEST, [*self._slowest, *listed], key=slowness)

    def merge(self, other: PropagationFacts) -> None:
        """Add the totals of other rows."""
        for name, changes in other._causes.items():
            self._causes.setdefault(name, []).extend(changes)
        self._slowest = nsmallest(SLOWEST, [*self._slowest, *other._slowest], key=slowness)

    def totals(self) -> dict[str, object]:
        """Return the totals ``causes`` and ``slowest``, worst first."""
        causes = []
        for name, changes in self._causes.items():
            p99, orphan, double = zip(*changes, strict=True)
            figures = dict(zip(OF_CAUSE, (max(p99), fsum(orphan), fsum(double)), strict=True))
            causes.append((-max(p99), name, len(changes), figures))
        return {
            "causes": [
                _rounded({"cause": name, "changes": changes, **figures})
                for _, name, changes, figures in sorted(causes, key=itemgetter(0, 1))
            ],
            "slowest": [_rounded(row) for row in self._slowest],
        }


def slowness(row: PropagationRow) -> tuple[object, ...]:
    """Return the sort key that puts changes with the slowest 99th percentile first."""
    return (
        -row["convergence_ms_p99"],
        -row["orphan_queue_seconds"],
        row["cluster"],
        row["consumer_group"],
        row["change_ms"],
    )


def survey_facts(surveys: Iterable[Survey]) -> dict[str, object]:
    """Return the amount of simulation, and what is left out, over all groups."""
    all_surveys = list(surveys)
    reasons = Counter(survey.reason for survey in all_surveys if survey.reason != REGULAR)
    return {
        "groups": len(all_surveys),
        "changes": sum(survey.changes for survey in all_surveys),
        "groups_with_shared_topics": sum(bool(survey.shared_topics) for survey in all_surveys),
        "groups_that_broadcast": sum(survey.broadcasts for survey in all_surveys),
        "groups_of_unknown_subscriptions": sum(survey.unknown for survey in all_surveys),
        "played_one_by_one": dict(sorted(reasons.items())),
        **start_up_facts(all_surveys),
    }


def start_up_facts(surveys: Sequence[Survey]) -> dict[str, object]:
    """Return ``start_up`` for the group with the most brokers, and ``extrapolated``: the sizes that
    exceed the measured range in any group, each with its maximum.
    """
    starts = [(survey.start_up, survey) for survey in surveys if survey.start_up is not None]
    slowest = max(
        starts,
        key=lambda each: (each[0].brokers, each[0].median_ms, each[1].consumer_group),
        default=None,
    )
    extents = [survey.extent for survey in surveys]
    largest = Extent(
        *(
            max((getattr(extent, name) for extent in extents), default=0)
            for name in ("brokers", "members", "queues_a_member")
        )
    )
    return {
        "start_up": slowest
        and {
            **asdict(slowest[0]),
            "consumer_group": slowest[1].consumer_group,
        },
        "extrapolated": largest.extrapolated,
        "groups_extrapolated": sum(extent.extrapolated is not None for extent in extents),
    }


def _rounded(row: Mapping[str, object]) -> dict[str, object]:
    return {
        name: round(value, DIGITS) if isinstance(value, float) else value
        for name, value in row.items()
    }

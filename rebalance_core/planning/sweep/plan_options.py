"""Options of a plan other than its variants, its results, and reasons why some figures are not
meaningful.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rebalance_core.checks.digest import TableWritten
from rebalance_core.checks.expected_values import MAX_QUEUE_NUMS
from rebalance_core.checks.row_counts import RowCounts
from rebalance_core.checks.row_limits import BadRowLimits
from rebalance_core.engine.options import SimulationOptions
from rebalance_core.model.errors import InputRefused
from rebalance_core.planning.movement import MovementFigures
from rebalance_core.planning.sweep.transitions import CLOCK, FUTURES, MOST
from rebalance_core.planning.sweep.transitions import SUMS as TIMED_SUMS
from rebalance_core.planning.variants import Variants
from rebalance_core.timing.fit import Fit
from rebalance_core.timing.options import ClockOptions

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import ExpectationsRow, LossesRow, PlanLeagueRow


@dataclass(frozen=True)
class SweepOptions:
    """The options of a sweep.

    ``group`` is a glob of the selected groups, ``partitions`` as in `simulate`. ``plan_ownership``
    contains the first ``ownership_groups`` groups by name or, with ``group``, all selected groups.
    The same groups are simulated over time, in ``futures`` futures; 0 for none. ``handler_ms``,
    ``start_up_ms``, ``rtt_us`` and ``fit`` are as in `timing.options.ClockOptions`.
    ``plan_holders`` contains rows for the first ``holder_futures`` of these futures.
    """

    include_retry_topics: bool = True
    group: str | None = None
    ownership_groups: int = 20
    futures: int = FUTURES
    handler_ms: int = 0
    start_up_ms: int | None = None
    rtt_us: int = 0
    fit: Fit | None = None
    partitions: int | None = None
    holder_futures: int = 0

    @property
    def clock(self) -> ClockOptions:
        """The options for simulations over time."""
        return replace(
            CLOCK,
            handler_ms=self.handler_ms,
            start_up_ms=self.start_up_ms,
            rtt_us=self.rtt_us,
            fit=self.fit,
        )


@dataclass(frozen=True)
class PlanConfig(SweepOptions):
    """The options of a plan: those of its sweep, and the tolerance for bad input.

    ``max_queue_nums`` is as in `SimulationOptions`; with ``partitions`` None, there are as many as
    the rows need.
    """

    max_queue_nums: int = MAX_QUEUE_NUMS
    bad_rows: BadRowLimits = field(default_factory=BadRowLimits)


def recorded_history(options: PlanConfig) -> SimulationOptions:
    """Return the simulation of the recorded history, without a change."""
    return SimulationOptions(
        group=options.group,
        include_retry_topics=options.include_retry_topics,
        max_queue_nums=options.max_queue_nums,
        partitions=options.partitions,
    )


@dataclass(frozen=True)
class PlanResult:
    """The files that a plan wrote, and a summary of its results.

    Attributes:
        tables: The rows and digest of every table written.
        inputs: The number of rows read, by table.
        rejected: How often each issue code occurs in ``rejected``.
        scenarios: One row for each scenario and strategy, over all groups and seeds.
        league: The rows of ``plan_league``.
        warnings: Scenario patterns without a match, and parts that edits could not apply.
        expectations: The rows of ``expectations``.
        losses: The rows of ``losses``.
        variants: The planned variants; a scenario with ``each`` has one variant per object.
    """

    tables: Mapping[str, TableWritten]
    inputs: Mapping[str, RowCounts]
    rejected: Mapping[str, int]
    scenarios: list[ScenarioRow]
    league: list[PlanLeagueRow]
    warnings: tuple[str, ...]
    expectations: list[ExpectationsRow]
    losses: list[LossesRow]
    variants: Variants


class ScenarioRow(MovementFigures):
    """A row of the summary that a plan prints: a scenario under a strategy, all groups and seeds.

    ``left_out`` counts the groups (per seed) that ``minimum_moves``, ``amplification`` and the peak
    ratios leave out; the latter also leave out groups with unowned queues.
    """

    scenario: str
    seeds: int
    groups: int
    timed: int
    left_out: int
    caveats: list[str]
    cannot_pop: int
    rebalances: int
    minimum_moves: int | None
    amplification: float | None
    idle_before: int
    idle_after: int
    orphaned_before: int
    orphaned_after: int
    skipped_messages: int | None
    left_unread: int | None
    pop_queues_after: int
    unreached: int | None
    proxy_clients: int | None
    orphan_queue_seconds: float | None
    double_queue_seconds: float | None
    read_again: float | None
    min_clients_per_queue: int | None
    max_clients_per_queue: int | None
    min_redelivery_s: float | None
    max_redelivery_s: float | None
    proxy_wait_s: float | None
    proxy_repeat_s: float | None
    convergence_ms_p99: int | None
    start_up_ms_p50: int | None
    start_up_brokers: int | None
    mean_peak_ratio_before: float | None
    worst_peak_ratio: float | None
    peak_messages_per_second: float | None


VARIANT = ("scenario", "strategy")
SUMS = (
    "rebalances",
    "moved",
    "idle_before",
    "idle_after",
    "orphaned_before",
    "orphaned_after",
    "skipped_messages",
    "left_unread",
    "pop_queues_after",
    "unreached",
    "proxy_clients",
    *TIMED_SUMS,
)
"""Columns of ``plan_summary`` that are summed."""
EXTREMES = {
    "min_clients_per_queue": "min",
    "max_clients_per_queue": "max",
    "min_redelivery_s": "min",
    "max_redelivery_s": "max",
    "proxy_wait_s": "max",
    "proxy_repeat_s": "max",
    **dict.fromkeys(MOST, "max"),
}
"""Columns of ``plan_summary`` with the smallest or largest value."""


FROZEN_CAVEAT = "frozen: members keep their queues"
UNEVEN_CAVEAT = "members broadcast or subscribe differently"
ORPHANED_CAVEAT = "queues without an owner"
SHARED_CAVEAT = "members share queues"
CANNOT_POP_CAVEAT = "cannot pop and is unchanged: %s"
"""Caveat for a group that cannot pop under a strategy POP (`contracts.planning.CANNOT_POP`)."""

LEFT_OUT = "amplification leaves out %d of %d groups (per variant), the means %d of %d steps: %s"
"""Caveat for the league: excluded groups, out of how many; excluded steps, out of how many; the
caveats.
"""
STAY = "%d of %d groups (per variant) cannot pop and are unchanged: %s"
"""Caveat for the league under a strategy POP: groups, out of how many, and the counts by reason."""
STAY_COUNT = "%d %s"
BETWEEN_COUNTS = ", "
BETWEEN_CAVEATS = "; "


MOST_REASONS = 3
"""Maximum number of reasons of each kind in the message."""


def refuse_bad_rates(table: str, issues: Iterable[str], rates: Iterable[float]) -> None:
    """Raise `InputRefused` if a row of ``queue_rates`` is invalid.

    The table has few rows, so a missing rate would otherwise go unnoticed.

    Args:
        table: The table's name in the message.
        issues: The first `MOST_REASONS` reports from row checks.
        rates: The first `MOST_REASONS` rates that are negative or NaN.
    """
    reasons = [*issues, *(f"messages_per_second is {rate}; expected 0 or more" for rate in rates)]
    if reasons:
        raise InputRefused(f"{table}: {'; '.join(dict.fromkeys(reasons))}")

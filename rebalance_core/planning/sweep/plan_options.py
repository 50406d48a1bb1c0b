"""What may be chosen about a plan, beside its variants."""

from __future__ import annotations

from dataclasses import dataclass, field

from rebalance_core.checks.row_limits import BadRowLimits
from rebalance_core.checks.rules import MAX_QUEUE_NUMS
from rebalance_core.engine.options import SimulationOptions
from rebalance_core.planning.sweep.transitions import FUTURES


@dataclass(frozen=True)
class SweepOptions:
    """The options of a sweep.

    ``group`` is a glob of the groups wanted, ``partitions`` as of `simulate`. ``plan_ownership``
    has the first ``ownership_groups`` groups by name; with ``group`` all of those wanted. The same
    groups are simulated over time, in ``futures`` futures; 0: none is.
    """

    include_retry_topics: bool = True
    group: str | None = None
    ownership_groups: int = 20
    futures: int = FUTURES
    partitions: int | None = None


@dataclass(frozen=True)
class PlanConfig(SweepOptions):
    """The options of a plan: those of its sweep, and how bad its input may be.

    ``max_queue_nums`` is as of `SimulationOptions`; ``partitions`` None: as many as the rows need.
    """

    max_queue_nums: int = MAX_QUEUE_NUMS
    bad_rows: BadRowLimits = field(default_factory=BadRowLimits)


def recorded_history(options: PlanConfig) -> SimulationOptions:
    """The simulation of the recorded history, without a change."""
    return SimulationOptions(
        group=options.group,
        include_retry_topics=options.include_retry_topics,
        max_queue_nums=options.max_queue_nums,
        partitions=options.partitions,
    )

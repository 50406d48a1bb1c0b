"""Plans for a group with growing traffic: more consumers, twice as many queues, other
strategies.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from math import inf
from typing import Any

from rebalance_core.model.errors import UsageError
from rebalance_core.planning.known_strategies import planning_strategy
from rebalance_core.planning.sizing import fewest_consumers
from rebalance_core.planning.what_if.what_if import WhatIf, what_if

FACTORS = (1, 2)
"""The factor by which the queues of each topic are multiplied."""
STICKY = "STICKY_BALANCED"

BrokerQueues = Mapping[str, Mapping[str, int]]
"""Topic -> broker -> readable queues."""


@dataclass(frozen=True, slots=True)
class GrowthPlan:
    """A number of queues and consumers, divided by a strategy.

    Attributes:
        queues: The number of queues over all topics.
        consumers: The number of consumers in the group, including one to spare.
        strategy: The strategy text.
        of_rocketmq: Whether RocketMQ has it.
        peak: The number of queues of the busiest consumer.
        limit: The maximum number of these queues that a consumer can carry.
        one_missing: The largest peak when any one consumer is missing.
        fits: Whether that is within the limit.
        idle: The number of consumers without a queue.
        moved: The number of queues that the change moves.
        fewest: The minimum number that a balanced result must move; None: there is no balanced
            result.
        moved_per_rebalance: The strategy's moves per rebalance in a fleet; None: unknown.
    """

    queues: int
    consumers: int
    strategy: str
    of_rocketmq: bool
    peak: int
    limit: float
    one_missing: int
    fits: bool
    idle: int
    moved: int
    fewest: int | None
    moved_per_rebalance: float | None


FIGURES = tuple(field.name for field in fields(GrowthPlan))


@dataclass(frozen=True, eq=False)
class GrowthPlans:
    """Plans for a group that must read `growth` times as much.

    Attributes:
        queues: Topic -> broker -> current readable queues.
        strategy: The group's current strategy.
        growth: Expected messages / current messages.
        members: The current number of consumers.
        today_peak: The current number of queues of the busiest consumer.
        limits: Queue factor -> the maximum number of queues that a consumer can carry.
        consumers: Queue factor -> consumers, including one to spare; None: no number is enough.
        plans: The plans that were compared.
        trap: The effect of having more consumers than queues.
        changes: (factor, strategy) -> the change that the plan makes.
    """

    queues: BrokerQueues
    strategy: str
    growth: float
    members: int
    today_peak: int
    limits: Mapping[int, float]
    consumers: Mapping[int, int | None]
    plans: tuple[GrowthPlan, ...]
    trap: WhatIf
    changes: Mapping[tuple[int, str], WhatIf]

    @property
    def ranked(self) -> list[GrowthPlan]:
        """The plans with RocketMQ's strategies that fit, best first.

        The criteria are idle consumers, then the queues that the strategy moves per rebalance, if
        known, then those that this change moves.
        """
        fitting = [plan for plan in self.plans if plan.of_rocketmq and plan.fits]
        return sorted(fitting, key=_cost)

    def rows(self) -> list[dict[str, Any]]:
        """Return the plans as rows with the attributes of `GrowthPlan`."""
        return [{name: getattr(plan, name) for name in FIGURES} for plan in self.plans]


def _cost(plan: GrowthPlan) -> tuple[float, ...]:
    per_rebalance = inf if plan.moved_per_rebalance is None else plan.moved_per_rebalance
    return plan.idle, per_rebalance, plan.moved


def growth_plans(
    members: Collection[str],
    queues: BrokerQueues,
    strategy: str,
    growth: float,
    strategies: Iterable[str] = (),
    *,
    capacity: float | None = None,
    moved_per_rebalance: Mapping[str, float] | None = None,
) -> GrowthPlans:
    """Return plans that carry `growth` times the messages while any one consumer is missing.

    The queues stay, or each topic gets twice as many; in either case, there are as many consumers
    as AVG needs, plus one to spare. Equal plans appear once.

    Args:
        members: The current client ids.
        queues: Topic -> broker -> current readable queues.
        strategy: The group's current strategy.
        growth: Expected messages / current messages, more than 0.
        strategies: Other strategies to compare, which may be hypothetical.
        capacity: The maximum number of today's queues, with today's messages, that a consumer can
            carry; None: those of the busiest consumer.
        moved_per_rebalance: Strategy -> queues that it moves per rebalance, e.g. of the league.

    Raises:
        UsageError: The input is invalid.

    >>> of = growth_plans(["10.0.0.1@1", "10.0.0.2@1"], {"T": {"a": 4, "b": 4}}, "AVG", 2)
    >>> of.consumers, of.ranked[0].queues, of.ranked[0].consumers, of.ranked[0].one_missing
    ({1: 5, 2: 5}, 8, 5, 2)
    """
    if not 0 < growth < inf:
        raise UsageError(f"growth = {growth!r}: expected more than 0")
    members = sorted(members)
    more = 1 + max((sum(of.values()) for of in queues.values()), default=0)
    trap = what_if(members, queues, strategy, {"add_consumers": max(1, more + 1 - len(members))})
    peak = trap.before.peak
    carried = peak if capacity is None else capacity
    limits = {factor: factor * carried / growth for factor in FACTORS}
    consumers = {
        factor: fewest_consumers(_in_total(_times(queues, factor)), limit)
        for factor, limit in limits.items()
    }
    changes: dict[tuple[int, str], WhatIf] = {}
    plans: dict[tuple[int, str], GrowthPlan] = {}
    for factor, count in consumers.items():
        for name in () if count is None else dict.fromkeys((strategy, *strategies)):
            assert count is not None
            change: dict[str, object] = {"add_consumers": max(0, count - len(members))}
            if factor > 1:
                change["queues"] = _times(queues, factor)
            if name != strategy:
                change["strategy"] = name
            after = changes[factor, name] = what_if(members, queues, strategy, change)
            plan = _plan(after, limits[factor], name, _times(queues, factor), moved_per_rebalance)
            plans.setdefault((plan.queues, name), plan)
    return GrowthPlans(
        queues=queues,
        strategy=strategy,
        growth=growth,
        members=len(members),
        today_peak=peak,
        limits=limits,
        consumers=consumers,
        plans=tuple(plans.values()),
        trap=trap,
        changes=changes,
    )


def _plan(
    change: WhatIf,
    limit: float,
    name: str,
    queues: BrokerQueues,
    moved_per_rebalance: Mapping[str, float] | None,
) -> GrowthPlan:
    after = change.after
    one_missing = max(
        what_if(after.client_ids, queues, after.strategy, {"remove_consumers": [client]}).after.peak
        for client in after.client_ids
    )
    return GrowthPlan(
        queues=len(after.owners),
        consumers=len(after.client_ids),
        strategy=name,
        of_rocketmq=planning_strategy(name).of_rocketmq,
        peak=after.peak,
        limit=limit,
        one_missing=one_missing,
        fits=one_missing <= limit,
        idle=len(after.idle),
        moved=change.moves,
        fewest=change.minimum,
        moved_per_rebalance=(moved_per_rebalance or {}).get(name),
    )


def _times(queues: BrokerQueues, factor: int) -> dict[str, dict[str, int]]:
    return {topic: {b: factor * n for b, n in of.items()} for topic, of in queues.items()}


def _in_total(queues: BrokerQueues) -> dict[str, int]:
    return {topic: sum(of.values()) for topic, of in queues.items()}


def recommendation(found: GrowthPlans, group: str) -> list[str]:
    """Return sentences on what a consumer can carry, what to do, what it costs, and what not to do.

    Args:
        found: The plans.
        group: The name of the group.
    """
    limits, total = found.limits, sum(_in_total(found.queues).values())
    words = [
        f"Today {found.members} consumers share {total} queues of {group} under {found.strategy}; "
        f"the busiest has {found.today_peak}. {found.growth:.3g} times the messages leave room for "
        f"{limits[1]:.3g} of today's queues each, or {limits[2]:.3g} if there are twice as many."
    ]
    ranked = found.ranked
    if not ranked:
        words[0] += " No plan of RocketMQ's strategies fits: reduce the load of a queue first."
        return words
    best = ranked[0]
    return [*words, *_of_best(found, best), *_others(found, best, ranked[1:])]


def _of_best(found: GrowthPlans, best: GrowthPlan) -> Iterator[str]:
    topics = "the topic" if len(found.queues) == 1 else f"the {len(found.queues)} topics"
    queues = f"leave {topics} at {best.queues} queues"
    if best.queues > sum(_in_total(found.queues).values()):
        queues = f"scale {topics} to {best.queues} queues first"
    more = best.consumers - found.members
    yield (
        f"RECOMMENDATION: start {more} more consumer{'s' if more != 1 else ''} "
        f"({best.consumers} in all), {queues} and "
        f"{'keep' if best.strategy == found.strategy else 'change to'} {best.strategy}."
    )
    yield (
        f"The busiest consumer then has {best.peak} (limit {best.limit:.3g}), {best.idle} are "
        f"idle; with any one of them missing it has {best.one_missing}. The change moves "
        f"{best.moved} queues; no balanced result needs fewer than {best.fewest}."
    )


def _others(
    found: GrowthPlans, best: GrowthPlan, other_plans: Sequence[GrowthPlan]
) -> Iterator[str]:
    for other in other_plans:
        if other.strategy == best.strategy:
            yield (
                f"With {other.queues} queues instead {other.consumers} consumers would do, but "
                f"{other.idle} of them would be idle until another fails."
            )
    alike = [plan for plan in found.plans if plan.queues == best.queues]
    for plan in alike:
        if plan.of_rocketmq and not plan.fits:
            yield (
                f"{plan.strategy} does not fit: its busiest consumer would have {plan.peak}, "
                f"{plan.one_missing} with one missing."
            )
    idle = found.trap.after.idle
    yield (
        f"Not {len(found.trap.after.client_ids)} consumers on today's queues: {len(idle)} would be "
        f"idle ({', '.join(idle)})."
    )
    for plan in alike:
        if plan.strategy == STICKY:
            yield (
                f"{STICKY}, which RocketMQ does not have, would move {plan.moved}: that is what "
                f"{best.strategy} costs."
            )

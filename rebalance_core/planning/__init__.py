"""Capacity planning: changes to a group, strategies, and numbers of consumers and queues. Does not
use Spark.

`what_if` (a change to a group), `planning_strategy` (RocketMQ's strategies and hypothetical ones),
`movement` (movement and balance), `consumer_counts` and `queues_needed` (how many),
`load_per_consumer` and `backlog` (if the message rates of queues are known), `growth_plans` (what a
multiple of the messages requires). For whole clusters: `scenario` (edits of a history), `variants`
and `known_strategies`, and `sweep`, the parts of a plan that are the same in-process and on Spark;
`process.plan` runs them. `table_keys` reads the keys in a planner's files: a change, a scenario, a
rollout or a model; `client_ids` makes ids for clients that are not running yet.

May import: `engine` and all below; numpy and pyarrow in `sweep`, elsewhere only the standard
library. Begin with `what_if.what_if`.
"""

from rebalance_core.planning.growth import GrowthPlan, GrowthPlans, growth_plans
from rebalance_core.planning.known_strategies import PLANNING_NAMES, planning_strategy
from rebalance_core.planning.movement import Movement, StepMovement, movement
from rebalance_core.planning.sizing import (
    Backlog,
    ConsumerCount,
    backlog,
    consumer_counts,
    fewest_consumers,
    load_per_consumer,
    queues_needed,
    rates_at,
)
from rebalance_core.planning.strategies import PlanningStrategy
from rebalance_core.planning.what_if.allocation import Allocation
from rebalance_core.planning.what_if.change import (
    Change,
    add_consumers,
    lose_broker,
    remove_consumers,
    set_queues,
    set_request_mode,
    switch_strategy,
)
from rebalance_core.planning.what_if.what_if import WhatIf, what_if

__all__ = [
    "PLANNING_NAMES",
    "Allocation",
    "Backlog",
    "Change",
    "ConsumerCount",
    "GrowthPlan",
    "GrowthPlans",
    "Movement",
    "PlanningStrategy",
    "StepMovement",
    "WhatIf",
    "add_consumers",
    "backlog",
    "consumer_counts",
    "fewest_consumers",
    "growth_plans",
    "load_per_consumer",
    "lose_broker",
    "movement",
    "planning_strategy",
    "queues_needed",
    "rates_at",
    "remove_consumers",
    "set_queues",
    "set_request_mode",
    "switch_strategy",
    "what_if",
]

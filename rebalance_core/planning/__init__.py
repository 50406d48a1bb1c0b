"""Capacity planning: what if, which strategy, how many. No Spark.

`what_if` (one change of one group), `planning_strategy` (RocketMQ's strategies and hypothetical
ones), `movement` (movement beside balance), `consumer_counts` and `queues_needed` (how many),
`load_per_consumer` and `backlog` (where the message rates of queues are known). For whole
clusters: `scenario` (edits of a history), `variants` and `known_strategies`, and `sweep`, what
of a plan is the same in a process and on Spark; `process.plan` runs them. What a planner writes,
a change, a scenario, a rollout or a model, is read by the keys of `table_keys`; ids of clients that
do not run yet are made in `client_ids`.

May import: `engine` and all below; numpy and pyarrow in `sweep`, elsewhere the standard library.
Begin with `what_if.what_if`.
"""

from rebalance_core.planning.known_strategies import PLANNING_NAMES, planning_strategy
from rebalance_core.planning.movement import Movement, StepMovement, movement
from rebalance_core.planning.sizing import (
    Backlog,
    ConsumerCount,
    backlog,
    consumer_counts,
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
    "Movement",
    "PlanningStrategy",
    "StepMovement",
    "WhatIf",
    "add_consumers",
    "backlog",
    "consumer_counts",
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

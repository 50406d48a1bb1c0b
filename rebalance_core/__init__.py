"""Simulate and audit RocketMQ consumer groups: who owns each queue, when, and where owners start.

Begin with docs/architecture.md, then `model`. tests/unit/test_layers.py defines which package may
import which.
"""

from __future__ import annotations

import sys

# Checked before any import of this package, in syntax that Python 3.8 parses: a cluster may be
# older.
if sys.version_info < (3, 11):  # noqa: UP036  # a zip on a cluster has no requires-python
    _TOO_OLD = (
        "rebalance-core needs Python 3.11 or newer, but this is Python "
        f"{sys.version_info[0]}.{sys.version_info[1]} ({sys.executable}); on Spark set "
        "PYSPARK_PYTHON and PYSPARK_DRIVER_PYTHON to a newer Python"
    )
    if sys.argv[:1] == ["-m"]:  # `python -m rebalance_core.…` would print a traceback
        print(f"rebalance: {_TOO_OLD}", file=sys.stderr)
        raise SystemExit(2)
    raise ImportError(_TOO_OLD)

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from rebalance_core.version import LIBRARY_VERSION

if TYPE_CHECKING:
    from pathlib import Path

    from rebalance_core.checks.input_tables import read_input_tables as read_input_tables
    from rebalance_core.cli.in_python import Answer, Audit, Tables
    from rebalance_core.client.one_pass import rebalance_pass
    from rebalance_core.engine.options import SimulationOptions
    from rebalance_core.model.queue import MessageQueue
    from rebalance_core.planning import consumer_counts as consumer_counts
    from rebalance_core.planning import growth_plans as growth_plans
    from rebalance_core.planning import movement as movement
    from rebalance_core.planning import planning_strategy as planning_strategy
    from rebalance_core.planning.growth import recommendation as _growth_recommendation
    from rebalance_core.planning.producer_model import read_model as _read_producer_model
    from rebalance_core.planning.rollout.choice import DEFAULT_PLAN as _DEFAULT_ROLLOUT
    from rebalance_core.planning.rollout.search import read_search as read_search
    from rebalance_core.planning.rollout.words import recommendation as _rollout_recommendation
    from rebalance_core.planning.rollout.words import texts_of as _rollout_texts
    from rebalance_core.planning.scenario.file import read_scenarios as read_scenarios
    from rebalance_core.planning.sweep.plan_options import PlanConfig as PlanConfig
    from rebalance_core.planning.sweep.transitions import simulated_handovers as simulated_handovers
    from rebalance_core.planning.variants import read_strategies as read_strategies
    from rebalance_core.planning.variants import variants_of as _plan_variants
    from rebalance_core.planning.what_if.what_if import WhatIf
    from rebalance_core.process.generate import generate_and_write as generate_and_write
    from rebalance_core.process.plan import planned_histories as planned_histories
    from rebalance_core.process.plan import run_plan as run_plan
    from rebalance_core.process.producers import simulate_producers as simulate_producers
    from rebalance_core.process.rollouts import run_search as run_search
    from rebalance_core.producers.model import variants_of as _producer_variants
    from rebalance_core.protocol.broker_offset_reply import broker_offset_reply
    from rebalance_core.protocol.start_offset import compute_pull_from_where
    from rebalance_core.report import draw_convergence as draw_convergence
    from rebalance_core.report import draw_league as draw_league
    from rebalance_core.report import draw_load as draw_load
    from rebalance_core.report import draw_moves as draw_moves
    from rebalance_core.report import draw_ownership as draw_ownership
    from rebalance_core.report import draw_producers as draw_producers
    from rebalance_core.report import draw_rollouts as draw_rollouts
    from rebalance_core.report import draw_what_if as draw_what_if
    from rebalance_core.report import draw_worst_future as draw_worst_future
    from rebalance_core.report import save_picture as save_picture
    from rebalance_core.strategies import allocate_group, make_strategy, parse_strategy
    from rebalance_core.strategies.registry import (
        register_hash_function,
        register_room_resolver,
        register_strategy,
    )
    from rebalance_core.synthetic.fleet import FleetPlan as FleetPlan

    read_producer_model = _read_producer_model
    DEFAULT_ROLLOUT = _DEFAULT_ROLLOUT
    growth_recommendation = _growth_recommendation
    rollout_recommendation = _rollout_recommendation
    rollout_texts = _rollout_texts
    plan_variants = _plan_variants
    producer_variants = _producer_variants

__version__ = LIBRARY_VERSION

__all__ = [
    "MessageQueue",
    "__version__",
    "allocate_group",
    "audit_collection",
    "broker_offset_reply",
    "compute_pull_from_where",
    "explain_queue",
    "make_strategy",
    "parse_strategy",
    "plan",
    "read_tables",
    "rebalance_pass",
    "register_hash_function",
    "register_room_resolver",
    "register_strategy",
    "simulate",
    "size",
    "sketch",
    "what_if",
]

_LAZY_EXPORTS = {
    "checks.input_tables": ["read_input_tables"],
    "client.one_pass": ["rebalance_pass"],
    "model.queue": ["MessageQueue"],
    "planning": ["consumer_counts", "growth_plans", "movement", "planning_strategy"],
    "planning.growth": ["growth_recommendation=recommendation"],
    "planning.producer_model": ["read_producer_model=read_model"],
    "planning.rollout.choice": ["DEFAULT_ROLLOUT=DEFAULT_PLAN"],
    "planning.rollout.search": ["read_search"],
    "planning.rollout.words": ["rollout_recommendation=recommendation", "rollout_texts=texts_of"],
    "planning.scenario.file": ["read_scenarios"],
    "planning.sweep.plan_options": ["PlanConfig"],
    "planning.sweep.transitions": ["simulated_handovers"],
    "planning.variants": ["plan_variants=variants_of", "read_strategies"],
    "process.generate": ["generate_and_write"],
    "process.plan": ["planned_histories", "run_plan"],
    "process.producers": ["simulate_producers"],
    "process.rollouts": ["run_search"],
    "producers.model": ["producer_variants=variants_of"],
    "protocol.broker_offset_reply": ["broker_offset_reply"],
    "protocol.start_offset": ["compute_pull_from_where"],
    "report": [
        "draw_convergence",
        "draw_league",
        "draw_load",
        "draw_moves",
        "draw_ownership",
        "draw_producers",
        "draw_rollouts",
        "draw_what_if",
        "draw_worst_future",
        "save_picture",
    ],
    "strategies": ["allocate_group", "make_strategy", "parse_strategy"],
    "strategies.registry": [
        "register_hash_function",
        "register_room_resolver",
        "register_strategy",
    ],
    "synthetic.fleet": ["FleetPlan"],
}
"""Exported names by module, with ``=`` and the module's own name where it differs.

Names are imported on first use, because ``--help`` needs none of them. Type checkers see the
imports above, one for each name.
"""


def __getattr__(name: str) -> Any:
    for module, names in _LAZY_EXPORTS.items():
        for entry in names:
            exported, _, original = entry.partition("=")
            if exported == name:
                value = getattr(import_module(f"{__name__}.{module}"), original or exported)
                return globals().setdefault(name, value)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


# The functions below import their modules when called, because importing pyarrow takes a while.
def read_tables(source: Any) -> Tables:
    """Read the input tables from a folder, or from Arrow tables, pandas frames or lists of dicts by
    name.

    See `rebalance_core.cli.in_python.read_tables`. The result is a mapping with a rich display in
    notebooks; ``to_pandas()`` returns frames.
    """
    from rebalance_core.cli.in_python import read_tables as call

    return call(source)


def sketch(
    topics: Mapping[str, Mapping[str, int]],
    members: int | Sequence[str],
    strategy: Any = "AVG",
    *,
    group: str = "group",
    cluster: str = "cluster",
) -> Tables:
    """Return the input tables of a group described by a planner, for `simulate` and `plan`.

    See `rebalance_core.cli.in_python.sketch`.

    Args:
        topics: topic -> broker -> number of queues.
        members: the number of consumers, or their client ids.
        strategy: its text, or a custom object.
        group: its name.
        cluster: name of its cluster.
    """
    from rebalance_core.cli.in_python import sketch as call

    return call(topics, members, strategy, group=group, cluster=cluster)


def simulate(
    inputs: Any,
    /,
    options: SimulationOptions | None = None,
    *,
    state: str | Path | None = None,
    **more: Any,
) -> Tables:
    """Replay groups in this process, without Spark; return the ledger's tables, also as attributes.

    See `rebalance_core.process.simulate.simulate`; for fleets, `rebalance_core.spark.simulate`.

    Args:
        inputs: as in `read_tables`: ``cluster_events`` and, if known, ``consumer_groups``,
            ``queue_offsets`` and ``committed_offsets``, with the contract's columns.
        options: `rebalance_core.engine.options.SimulationOptions`.
        state: folder that a run of simulate, ingest or audit wrote; the simulation begins at that
            run's end and returns only rows that begin after it.
        more: fields of the options instead: group, strategy, from_ms, to_ms; tables, the names of
            those to return besides ``rejected`` …
    """
    from rebalance_core.cli.in_python import simulate as call

    return call(inputs, options, state=state, **more)


def audit_collection(collection: str | Path, **options: Any) -> Audit:
    """Audit a collection as `rebalance audit` does; return findings, verdicts, coverage and ledger.

    Args:
        collection: its folder.
        options: those of the job: ``group``, ``from_ms``, ``to_ms``, ``fail_on``, ``accepted`` …
    """
    from rebalance_core.cli.in_python import audit_collection as call

    return call(collection, **options)


def plan(
    tables: Any, scenarios: Sequence[str | Path] = (), strategies: Any = (), **options: Any
) -> Tables:
    """Plan as `rebalance plan` does; return ``plan_summary``, ``plan_steps`` and the other tables.

    Args:
        tables: as in `read_tables`.
        scenarios: files, or names of bundled scenarios (`rebalance plan --list-scenarios`).
        strategies: strategies for all, texts or custom objects, or ``league``.
        options: those of the job: ``group``, ``seeds`` …
    """
    from rebalance_core.cli.in_python import plan as call

    return call(tables, scenarios, strategies, **options)


def size(tables: Any, **options: Any) -> Tables:
    """Size every group as `rebalance size` does; return the table ``sizes`` and ``rejected``.

    Args:
        tables: as in `read_tables`.
        options: those of the job: ``service_time`` (ms), ``threads``, ``growth``, ``group`` …
    """
    from rebalance_core.cli.in_python import size as call

    return call(tables, **options)


def what_if(
    members: Any, queues: Any, strategy: Any, change: Mapping[str, object], **more: Any
) -> WhatIf:
    """Return a change's effect on a group: owners before and after, what moves, how even it is.

    See `rebalance_core.planning.what_if.what_if.what_if`.

    Args:
        members: client ids, or client id -> the topics that it subscribes to.
        queues: topic -> broker -> number of queues.
        strategy: its text, or a custom object.
        change: the change, named as in scenarios' edits: add_consumers, remove_consumers,
            lose_broker, scale_queues, switch_strategy, switch_request_mode …
        more: message_model, request_modes, rebalance_mode, invisible_time_s, ordered.
    """
    from rebalance_core.planning.what_if.what_if import what_if as call

    return call(members, queues, strategy, change, **more)


def explain_queue(
    ledger: Any, group: str, queue: str | MessageQueue, at: str | int, cluster: str | None = None
) -> Answer:
    """Explain why a client holds a queue at a given time: lists, formula, offset rule.

    Args:
        ledger: the result of `simulate` or `audit_collection`, or the folder that a job wrote.
        group: the consumer group.
        queue: ``TOPIC/BROKER/ID``.
        at: epoch milliseconds, or RFC 3339 text.
        cluster: needed if several clusters have the group.
    """
    from rebalance_core.cli.in_python import explain_queue as call

    return call(ledger, group, queue, at, cluster)

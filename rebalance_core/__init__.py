"""Which consumer of a RocketMQ group owns which queue, when, and where it starts to read.

Begin with docs/architecture.md, then `model`. tests/unit/test_layers.py says which package may
import which.
"""

from __future__ import annotations

import sys

# Before anything of ours is imported, in words that Python 3.8 parses: a cluster may be older.
if sys.version_info < (3, 11):  # noqa: UP036  # a zip on a cluster has no requires-python
    _TOO_OLD = (
        "rebalance-core needs Python 3.11 or newer, and this is Python "
        f"{sys.version_info[0]}.{sys.version_info[1]} ({sys.executable}); on Spark set "
        "PYSPARK_PYTHON and PYSPARK_DRIVER_PYTHON to a newer one"
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

    from rebalance_core.cli.in_python import Answer, Audit, Tables
    from rebalance_core.client.one_pass import rebalance_pass
    from rebalance_core.engine.options import SimulationOptions
    from rebalance_core.model.queue import MessageQueue
    from rebalance_core.planning.what_if.what_if import WhatIf
    from rebalance_core.protocol.broker_offset_reply import broker_offset_reply
    from rebalance_core.protocol.start_offset import compute_pull_from_where
    from rebalance_core.strategies import allocate_group, make_strategy, parse_strategy
    from rebalance_core.strategies.registry import (
        register_hash_function,
        register_room_resolver,
        register_strategy,
    )

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
    "sketch",
    "what_if",
]

_LAZY_EXPORTS = {
    "checks.input_tables": ["read_input_tables"],
    "client.one_pass": ["rebalance_pass"],
    "model.queue": ["MessageQueue"],
    "planning": ["consumer_counts", "movement", "planning_strategy"],
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
"""Names by module, with their names there; imported when asked for: ``--help`` needs none."""


def __getattr__(name: str) -> Any:
    for module, names in _LAZY_EXPORTS.items():
        for one in names:
            exported, _, original = one.partition("=")
            if exported == name:
                found = getattr(import_module(f"{__name__}.{module}"), original or exported)
                return globals().setdefault(name, found)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


# The functions below import what they need when they are called: pyarrow takes a while.


def read_tables(source: Any) -> Tables:
    """The input tables of a folder, or of Arrow tables, pandas frames or lists of dicts by name.

    See `rebalance_core.cli.in_python.read_tables`. What it returns is a mapping that shows itself
    in a notebook; ``to_pandas()`` gives frames.
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
    """The input tables of a group that a planner draws, for `simulate` and `plan`.

    See `rebalance_core.cli.in_python.sketch`.

    Args:
        topics: topic -> broker -> number of queues.
        members: how many consumers, or their client ids.
        strategy: its text, or an own object.
        group: its name.
        cluster: name of its cluster.
    """
    from rebalance_core.cli.in_python import sketch as call

    return call(topics, members, strategy, group=group, cluster=cluster)


def simulate(tables: Any, options: SimulationOptions | None = None, **more: Any) -> Tables:
    """Replay groups in this process, without Spark; the tables of the ledger, also as attributes.

    See `rebalance_core.process.simulate.simulate`; for fleets, `rebalance_core.spark.simulate`.

    Args:
        tables: as of `read_tables`: ``cluster_events`` and, if known, ``consumer_groups``,
            ``queue_offsets`` and ``committed_offsets``, with the contract's columns.
        options: `rebalance_core.engine.options.SimulationOptions`.
        more: its fields instead: group, strategy, from_ms, to_ms …
    """
    from rebalance_core.cli.in_python import simulate as call

    return call(tables, options, **more)


def audit_collection(collection: str | Path, **options: Any) -> Audit:
    """Audit a collection as `rebalance audit` does; findings, verdicts, coverage and ledger.

    Args:
        collection: its folder.
        options: those of the job: ``group``, ``from_ms``, ``to_ms``, ``fail_on``, ``accepted`` …
    """
    from rebalance_core.cli.in_python import audit_collection as call

    return call(collection, **options)


def plan(
    tables: Any, scenarios: Sequence[str | Path] = (), strategies: Any = (), **options: Any
) -> Tables:
    """Plan as `rebalance plan` does; ``plan_summary``, ``plan_steps`` and the other tables.

    Args:
        tables: as of `read_tables`.
        scenarios: files, or names of bundled scenarios (`rebalance plan --list-scenarios`).
        strategies: strategies for all, texts or own objects, or ``league``.
        options: those of the job: ``group``, ``seeds`` …
    """
    from rebalance_core.cli.in_python import plan as call

    return call(tables, scenarios, strategies, **options)


def what_if(
    members: Any, queues: Any, strategy: Any, change: Mapping[str, Any], **more: Any
) -> WhatIf:
    """Return a change's effect on a group: owners before and after, what moves, how even it is.

    See `rebalance_core.planning.what_if.what_if.what_if`.

    Args:
        members: client ids, or client id -> the topics that it subscribes.
        queues: topic -> broker -> number of queues.
        strategy: its text, or an own object.
        change: by the names of scenarios' edits: add_consumers, remove_consumers, lose_broker,
            scale_queues, switch_strategy, switch_request_mode …
        more: message_model, request_modes, rebalance_mode, invisible_time_s, ordered.
    """
    from rebalance_core.planning.what_if.what_if import what_if as call

    return call(members, queues, strategy, change, **more)


def explain_queue(
    ledger: Any, group: str, queue: str | MessageQueue, at: str | int, cluster: str | None = None
) -> Answer:
    """Return why a queue is with a client at a time: lists, formula, offset rule.

    Args:
        ledger: what `simulate` or `audit_collection` returned, or the folder that a job wrote.
        group: the consumer group.
        queue: ``TOPIC/BROKER/ID``.
        at: epoch milliseconds, or RFC 3339 text.
        cluster: where several have the group.
    """
    from rebalance_core.cli.in_python import explain_queue as call

    return call(ledger, group, queue, at, cluster)

"""The passes of a sweep: what each makes of the ledger's rows of some groups.

A strategy costs no copy of the rows: it is the engine's override, and the engine runs on the same
rows once per strategy. Under hypothetical strategies each group is replayed instead.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from rebalance_core.contracts import LEDGER_TABLES
from rebalance_core.contracts.planning import PLAN_STEPS
from rebalance_core.engine.options import SimulationOptions, engine_options
from rebalance_core.engine.units import GROUP
from rebalance_core.kernels.codes.coded_groups import EngineOptions
from rebalance_core.model.group_settings import RequestMode
from rebalance_core.planning.hypothetical import OWNERSHIP, STEPS, HypotheticalStrategies
from rebalance_core.planning.sweep.member_settings import Group
from rebalance_core.planning.sweep.plan_options import SweepOptions
from rebalance_core.planning.sweep.shared_figures import with_shared_figures
from rebalance_core.planning.sweep.sweep_rows import counted, marked, start_sums, step_rows
from rebalance_core.planning.sweep.transitions import (
    TRANSITION_SCHEMA,
    TRANSITIONS,
    Transitions,
)
from rebalance_core.planning.variants import Variants

STARTS = "starts"
"""The pass of messages read twice and never read; the others are `STEPS` and `OWNERSHIP`."""
LEDGER_OF = {
    STEPS: ("epochs", "group_metrics", "pop_metrics"),
    OWNERSHIP: ("ownership",),
    STARTS: ("pull_starts",),
}
"""Which tables of the ledger each pass is made of."""

_OF_VARIANT = ("scenario", "strategy", "of_rocketmq", "seed")
_STEP = [column for column in PLAN_STEPS.columns if column.name not in _OF_VARIANT]
_SUMS = ("replayed_messages", "skipped_messages")


@dataclass(frozen=True)
class Sweep:
    """What is computed for every group; small enough to be sent to every task.

    Attributes:
        strategies: (number, text) of RocketMQ's; None keeps every member's own.
        hypothetical: the others.
        transitions: what is simulated over time.
        popped: (number, request mode) of those under which groups pop; their `STARTS` are not
            known.
        options: of the engine; its override is not used.
        first_ms: by cluster: the first edit of a history. The state before it is the last epoch
            that began earlier; without one it is the first epoch.
        ownership_of: (cluster, group) whose ownership is wanted; None: of all.
    """

    strategies: Sequence[tuple[int, str | None]]
    hypothetical: HypotheticalStrategies
    options: EngineOptions
    first_ms: Mapping[str, int]
    ownership_of: frozenset[tuple[str, str]] | None = None
    popped: Sequence[tuple[int, RequestMode]] = ()
    transitions: Transitions = field(default_factory=Transitions)


def sweep_of(
    variants: Variants,
    options: SweepOptions,
    given: Container[str],
    first_ms: Mapping[str, int],
    ownership_of: frozenset[tuple[str, str]] | None,
    transitions_of: frozenset[tuple[str, str]] | None,
) -> Sweep:
    """The sweep of all strategies.

    Args:
        variants: what to compute.
        options: see `SweepOptions`.
        given: names of the input tables there are.
        first_ms: as of `Sweep`.
        ownership_of: as of `Sweep`.
        transitions_of: (cluster, group) that are simulated over time; None: all.
    """
    retry = options.include_retry_topics
    return Sweep(
        strategies=variants.of_rocketmq(),
        hypothetical=HypotheticalStrategies(variants.hypothetical(), retry),
        options=engine_options(given, SimulationOptions(include_retry_topics=retry)),
        first_ms=first_ms,
        ownership_of=ownership_of,
        popped=variants.popped(),
        transitions=Transitions(options.futures, transitions_of),
    )


def schema_of(made: str) -> pa.Schema:
    """The columns of a pass, without the strategy's number."""
    if made == STEPS:
        types = PLAN_STEPS.arrow_schema()
        return pa.schema([types.field(column.name) for column in _STEP])
    if made == OWNERSHIP:
        return LEDGER_TABLES["ownership"].arrow_schema()
    if made == TRANSITIONS:
        return TRANSITION_SCHEMA
    fields = [pa.field(name, pa.string()) for name in GROUP]
    return pa.schema([*fields, *(pa.field(name, pa.int64()) for name in _SUMS)])


def pass_rows(
    made: str,
    ledger: Mapping[str, pa.Table],
    first_ms: Mapping[str, int],
    given: Mapping[str, pa.Table],
    cannot_pop: Mapping[Group, str] | None = None,
) -> pa.Table:
    """The rows of a pass.

    Args:
        made: the pass.
        ledger: the tables `LEDGER_OF` it, with the rows of whole groups.
        first_ms: as of `Sweep`.
        given: the events and settings that the ledger is made of.
        cannot_pop: as of `PoppedGroups`.
    """
    if made == STEPS:
        steps = step_rows(*(ledger[name] for name in LEDGER_OF[STEPS]))
        rows = with_shared_figures(marked(steps, first_ms), given, cannot_pop or {})
    elif made == STARTS:
        starts = ledger["pull_starts"]
        rows = start_sums(starts.filter(counted(starts, first_ms)))
    else:
        rows = ledger["ownership"]
    schema = schema_of(made)
    return rows.select(schema.names).cast(schema)


def hypothetical_rows(
    made: str,
    rows: Iterable[Mapping[str, Any]],
    first_ms: Mapping[str, int],
    given: Mapping[str, pa.Table],
) -> pa.Table:
    """The rows of a pass, not `STARTS`, of groups under a hypothetical strategy.

    Args:
        made: the pass.
        rows: as `HypotheticalStrategies` gives them.
        first_ms: as of `Sweep`.
        given: the group's events and settings.
    """
    schema = schema_of(made)
    table = pa.Table.from_pylist(list(rows), schema)
    if made != STEPS:
        return table
    steps = with_shared_figures(marked(table, first_ms), given, {})
    return steps.select(schema.names).cast(schema)

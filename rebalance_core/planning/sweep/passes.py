"""Rows of a sweep's passes, derived from ledger rows: pure Arrow, one chunk at a time."""

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.contracts import LEDGER_TABLES
from rebalance_core.contracts.planning import PLAN_STEPS
from rebalance_core.engine.fan_out import GROUP
from rebalance_core.engine.options import SimulationOptions, engine_options
from rebalance_core.kernels.engine_options import EngineOptions
from rebalance_core.model.group_settings import BROKER_REBALANCE, PROXY_REBALANCE
from rebalance_core.model.request_mode import RequestMode
from rebalance_core.model.verdicts import UNKNOWN
from rebalance_core.planning.hypothetical_groups import OWNERSHIP, STEPS, HypotheticalStrategies
from rebalance_core.planning.movement import STEP_FIGURES
from rebalance_core.planning.sweep.member_settings import (
    Group,
    MemberSettings,
    broadcasting_groups,
    member_settings,
)
from rebalance_core.planning.sweep.plan_options import SweepOptions
from rebalance_core.planning.sweep.transitions import (
    TRANSITION_SCHEMA,
    TRANSITIONS,
    Transitions,
)
from rebalance_core.planning.variants import Variants
from rebalance_core.planning.what_if.allocation import Redelivery, redelivery_after_death
from rebalance_core.protocol.start_offset import STORED

_OF_EPOCH = ("causes", "status", "orphaned", "shared", "pop_queues")
_EPOCH = (*GROUP, "epoch")
OF_OWNED = (
    "moved", "voluntary_moves", "minimum_moves", "amplification", "stickiness", "max_queues",
    "min_queues", "peak_ratio",
)  # fmt: skip
"""Figures of owned queues, which are meaningless where members share all of the group's queues."""
SHARED = {
    "min_clients_per_queue": ("min_clients_per_queue", "min"),
    "max_clients_per_queue": ("max_clients_per_queue", "max"),
    "unreached": ("unreached", "sum"),
}
"""For the shared topics of an epoch: the column of ``pop_metrics``, and how topics are combined."""


def step_rows(epochs: pa.Table, metrics: pa.Table, shared: pa.Table) -> pa.Table:
    """Return the rows of ``plan_steps``, without the variant's columns and ``counted``, in order.

    Args:
        epochs: the ledger's epochs.
        metrics: ``group_metrics``.
        shared: ``pop_metrics``.
    """
    keys = [(name, "ascending") for name in _EPOCH]
    whole = metrics.filter(pc.is_null(metrics["topic"])).sort_by(keys)
    epochs = epochs.take(pc.sort_indices(epochs, sort_keys=keys))
    assert epochs.num_rows == whole.num_rows
    columns = {name: epochs[name] for name in _EPOCH}
    columns |= {"change_ms": epochs["from_ms"]}
    columns |= {name: epochs[name] for name in _OF_EPOCH} | {n: whole[n] for n in STEP_FIGURES}
    # metrics count subscribers of owned queues only
    everyone = pc.if_else(all_shared(columns), epochs["distinct_members"], whole["members"])
    columns |= {"members": everyone}
    return pa.table(columns | _of_shared_topics(epochs, shared))


def _of_shared_topics(epochs: pa.Table, shared: pa.Table) -> dict[str, pa.ChunkedArray]:
    """Combine all shared topics of each epoch; null where none has a readable queue."""
    shared = shared.filter(pc.greater(shared["queues"], 0))
    grouped = shared.group_by(list(_EPOCH), use_threads=False).aggregate(list(SHARED.values()))
    names = {f"{column}_{how}": name for name, (column, how) in SHARED.items()}
    grouped = grouped.rename_columns([names.get(name, name) for name in grouped.column_names])
    rows = epochs.select(_EPOCH).append_column("_row", pa.array(np.arange(epochs.num_rows)))
    joined = rows.join(grouped, keys=list(_EPOCH), join_type="left outer", use_threads=False)
    joined = joined.sort_by("_row")
    return {name: joined[name] for name in SHARED}


def all_shared(steps: Mapping[str, pa.ChunkedArray] | pa.Table) -> pa.ChunkedArray:
    """Return whether members share all of the group's queues in a step."""
    popped = pc.fill_null(pc.greater(steps["pop_queues"], 0), False)
    return pc.and_(popped, pc.fill_null(pc.equal(steps["queues"], 0), False))


def marked(steps: pa.Table, first_ms: Mapping[str, int]) -> pa.Table:
    """Return the rows with ``counted``; meaningless figures become null. Rows must be in order."""
    shared = all_shared(steps)
    for name in set(OF_OWNED) & set(steps.column_names):
        values = pc.if_else(shared, pa.scalar(None, steps[name].type), steps[name])
        steps = steps.set_column(steps.column_names.index(name), name, values)
    number = steps.column_names.index("amplification")
    owned = pc.equal(steps["orphaned"], 0)
    nothing = pa.scalar(None, pa.float64())
    sound = pc.if_else(owned, steps["amplification"], nothing)
    steps = steps.set_column(number, "amplification", sound)
    if "counted" in steps.column_names:
        steps = steps.drop_columns(["counted"])
    return steps.append_column("counted", counted(steps, first_ms))


def start_sums(starts: pa.Table, broadcasting: Container[Group] = ()) -> pa.Table:
    """Return how many messages below the commit owners start at, and how many are never read, by
    group; null where unknown.

    A broker whose queue lost messages sends an owner back behind the commit (rocketmq.md §5.5). The
    previous owner had read the messages between the newest observed commit and a hand-over commit.
    A group has no sums if no observation shows where one of its owners starts; otherwise new queues
    in a scenario would look as if nothing were skipped. A broadcasting group has none either: each
    member reads for itself, so no start causes a message to be read twice or lost.

    Args:
        starts: rows of ``pull_starts`` of whole groups.
        broadcasting: groups with a member that broadcasts.
    """
    begin = pc.coalesce(starts["corrected_offset"], starts["start_offset"])
    handed_over = pc.fill_null(pc.equal(starts["rule"], STORED), False)
    there = pc.min_element_wise(starts["stored_offset"], starts["max_offset"])
    below = pc.max_element_wise(pc.subtract(there, begin), 0, skip_nulls=False)
    below = pc.if_else(handed_over, below, pc.multiply(below, 0))
    nothing = pc.multiply(starts["skipped"], 0)  # null stays null
    never = pc.if_else(handed_over, nothing, starts["skipped"])
    rows = starts.select(list(GROUP)).append_column("rewound", below)
    rows = rows.append_column("skipped", never)
    rows = rows.append_column("unknown", pc.equal(starts["status"], UNKNOWN))
    sums = rows.group_by(list(GROUP)).aggregate(
        [("rewound", "sum"), ("skipped", "sum"), ("unknown", "any")]
    )
    groups = zip(*(sums[name].to_pylist() for name in GROUP), strict=True)
    divided = pa.array([group not in broadcasting for group in groups], pa.bool_())
    summable = pc.and_(pc.invert(pc.fill_null(sums["unknown_any"], False)), divided)
    columns = {name: sums[name] for name in GROUP}
    for name in ("rewound", "skipped"):
        values = sums[f"{name}_sum"]
        columns[f"{name}_messages"] = pc.if_else(summable, values, pa.scalar(None, values.type))
    return pa.table(columns)


def counted(rows: pa.Table, first_ms: Mapping[str, int]) -> pa.Array:
    """Return whether the change is at or after the first edit, and not part of the initial
    state.
    """
    clusters = rows["cluster"].combine_chunks().dictionary_encode()
    if isinstance(clusters, pa.ChunkedArray):
        clusters = clusters.combine_chunks()
    firsts = [first_ms.get(name, -1) for name in clusters.dictionary.to_pylist()]
    first = np.array([*firsts, -1], np.int64)[clusters.indices.to_numpy()]
    change_ms, epoch = (rows[name].to_numpy() for name in ("change_ms", "epoch"))
    return pa.array(np.where(first < 0, epoch > 0, change_ms >= first))


REDELIVERY = ("min_redelivery_s", "max_redelivery_s")


def with_shared_figures(
    steps: pa.Table, inputs: Mapping[str, pa.Table], cannot_pop: Mapping[Group, str]
) -> pa.Table:
    """Return the rows with `REDELIVERY` and ``cannot_pop``.

    The seconds cover all kinds of members that the group ever has; they are the same in every step.

    Args:
        steps: Rows of ``plan_steps``; these columns are replaced if present.
        inputs: The events and settings of the groups.
        cannot_pop: As in `PoppedGroups`.
    """
    shared = pc.fill_null(pc.greater(steps["pop_queues"], 0), False)
    members = member_settings(inputs) if pc.any(shared).as_py() else {}
    groups = list(zip(*(steps[name].to_pylist() for name in GROUP), strict=True))
    costs = {group: redelivery_of(kinds) for group, kinds in members.items()}
    ranges = [costs.get(group) for group in groups]
    for name, seconds in zip(
        REDELIVERY, ([of and of[0] for of in ranges], [of and of[1] for of in ranges]), strict=True
    ):
        values = pa.array(seconds, pa.float64())
        steps = _with(steps, name, pc.if_else(shared, values, pa.scalar(None, pa.float64())))
    reasons = [cannot_pop.get(group) for group in groups]
    return _with(steps, "cannot_pop", pa.array(reasons, pa.string()))


def redelivery_of(members: Collection[MemberSettings]) -> tuple[float, float] | None:
    """Return the minimum and maximum number of seconds until a dead member's messages are
    redelivered, or None.
    """
    costs: list[Redelivery] = []
    if any(member.rebalance_mode == PROXY_REBALANCE for member in members):
        costs.append(redelivery_after_death(PROXY_REBALANCE))
    if any(member.asks_broker for member in members):
        costs.append(redelivery_after_death(BROKER_REBALANCE))
    if not costs:
        return None
    return min(cost.from_s for cost in costs), max(cost.to_s for cost in costs)


def _with(rows: pa.Table, name: str, values: pa.Array | pa.ChunkedArray) -> pa.Table:
    if name in rows.column_names:
        rows = rows.drop_columns([name])
    return rows.append_column(name, values)


# A strategy requires no copy of the rows: it is the engine's override, and the engine runs on the
# same rows once per strategy. Under hypothetical strategies, each group is replayed instead.
STARTS = "starts"
"""The pass for messages that starts repeat or skip; others are `STEPS` and `OWNERSHIP`."""
LEDGER_OF = {
    STEPS: ("epochs", "group_metrics", "pop_metrics"),
    OWNERSHIP: ("ownership",),
    STARTS: ("pull_starts",),
}
"""The ledger tables from which each pass is made."""

_OF_VARIANT = ("scenario", "strategy", "of_rocketmq", "seed")
_STEP = [column for column in PLAN_STEPS.columns if column.name not in _OF_VARIANT]
_SUMS = ("rewound_messages", "skipped_messages")


@dataclass(frozen=True)
class Sweep:
    """The inputs and options of a sweep over all groups; small enough to be sent to every task.

    Attributes:
        strategies: (number, text) of RocketMQ's; None keeps every member's own.
        hypothetical: the hypothetical strategies.
        transitions: what is simulated over time.
        popped: (number, request mode) of the strategies under which groups pop; their `STARTS` are
            unknown.
        options: the engine's options; its override is not used.
        first_ms: by cluster, the first edit of a history. The state before it is the last epoch
            that began earlier; without an edit, it is the first epoch.
        ownership_of: (cluster, group) pairs whose ownership is wanted; None: all.
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
    input_names: Container[str],
    first_ms: Mapping[str, int],
    ownership_of: frozenset[tuple[str, str]] | None,
    transitions_of: frozenset[tuple[str, str]] | None,
) -> Sweep:
    """Return the sweep of all strategies.

    Args:
        variants: what to compute.
        options: see `SweepOptions`.
        input_names: names of the existing input tables.
        first_ms: as in `Sweep`.
        ownership_of: as in `Sweep`.
        transitions_of: (cluster, group) pairs that are simulated over time; None: all.
    """
    retry = options.include_retry_topics
    return Sweep(
        strategies=variants.of_rocketmq(),
        hypothetical=HypotheticalStrategies(variants.hypothetical(), retry),
        options=engine_options(input_names, SimulationOptions(include_retry_topics=retry)),
        first_ms=first_ms,
        ownership_of=ownership_of,
        popped=variants.popped(),
        transitions=Transitions(
            options.futures,
            transitions_of,
            options.clock,
            options.holder_futures,
        ),
    )


def schema_of(made: str) -> pa.Schema:
    """Return the columns of a pass, without the strategy's number."""
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
    inputs: Mapping[str, pa.Table],
    cannot_pop: Mapping[Group, str] | None = None,
) -> pa.Table:
    """Return the rows of a pass.

    Args:
        made: the pass.
        ledger: the tables `LEDGER_OF` it, with the rows of whole groups.
        first_ms: as in `Sweep`.
        inputs: the events and settings behind the ledger.
        cannot_pop: as in `PoppedGroups`.
    """
    if made == STEPS:
        steps = step_rows(*(ledger[name] for name in LEDGER_OF[STEPS]))
        rows = with_shared_figures(marked(steps, first_ms), inputs, cannot_pop or {})
    elif made == STARTS:
        starts = ledger["pull_starts"]
        rows = start_sums(starts.filter(counted(starts, first_ms)), broadcasting_groups(inputs))
    else:
        rows = ledger["ownership"]
    schema = schema_of(made)
    return rows.select(schema.names).cast(schema)


def hypothetical_rows(
    made: str,
    rows: Iterable[Mapping[str, object]],
    first_ms: Mapping[str, int],
    inputs: Mapping[str, pa.Table],
) -> pa.Table:
    """Return the rows of a pass, except `STARTS`, of groups under a hypothetical strategy.

    Args:
        made: the pass.
        rows: as returned by `HypotheticalStrategies`.
        first_ms: as in `Sweep`.
        inputs: the group's events and settings.
    """
    schema = schema_of(made)
    table = pa.Table.from_pylist(list(rows), schema)
    if made != STEPS:
        return table
    steps = with_shared_figures(marked(table, first_ms), inputs, {})
    return steps.select(schema.names).cast(schema)

"""Computes a plan's rows for a set of groups, history by history and strategy by strategy."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from rebalance_core.checks.packed_rows import pack, unpack
from rebalance_core.contracts import LEDGER_TABLES, planning
from rebalance_core.contracts.table import Table
from rebalance_core.engine.fan_out import ROWS_PER_CHUNK, GroupedRows, fan_out
from rebalance_core.engine.group_history import history_of
from rebalance_core.engine.ledger_pass import (
    HistoriesOfSharedInstances,
    LedgerRows,
    prepare_tables,
    rows_of,
)
from rebalance_core.engine.options import like_pattern
from rebalance_core.kernels.engine_options import EngineOptions
from rebalance_core.planning.hypothetical_groups import OWNERSHIP, STEPS
from rebalance_core.planning.sweep.left_unread import WaitingMessages, lost_queues
from rebalance_core.planning.sweep.member_settings import Group, popped_groups
from rebalance_core.planning.sweep.passes import (
    LEDGER_OF,
    STARTS,
    Sweep,
    hypothetical_rows,
    pass_rows,
    sweep_of,
)
from rebalance_core.planning.sweep.plan_edits import EVENTS, GROUPS, EditPlan
from rebalance_core.planning.sweep.plan_options import SweepOptions
from rebalance_core.planning.sweep.proxy_restarts import proxy_figures
from rebalance_core.planning.sweep.transitions import (
    HOLDERS,
    TRANSITION_SCHEMA,
    TRANSITIONS,
    SharedCheckpoints,
)
from rebalance_core.planning.sweep.transitions import Row as StepRow
from rebalance_core.planning.variants import Variants
from rebalance_core.process.plan_expectations import judged_rows
from rebalance_core.process.plan_histories import Histories, HistoryTables, first_groups
from rebalance_core.process.plan_summary import (
    SoundSteps,
    as_table,
    of_variant,
    owners,
    peak_rates,
    plan_summary,
)

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import ExpectationsRow


@dataclass(frozen=True, eq=False)
class SweptGroups:
    """The complete rows of a set of groups under one strategy.

    Attributes:
        strategy: Its number.
        passes: Rows of each pass, with the schema of `schema_of`; passes that were not requested or
            are unknown are missing.
        done: Groups that are complete once the rows of all strategies exist.
    """

    strategy: int
    passes: Mapping[str, pa.Table]
    done: int


def swept_groups(
    grouped: GroupedRows,
    sweep: Sweep,
    *,
    rows_per_chunk: int = ROWS_PER_CHUNK,
    timed_next: Callable[[str], object] | None = None,
    histories: HistoriesOfSharedInstances | None = None,
    shared: SharedCheckpoints | None = None,
) -> Iterator[SweptGroups]:
    """Yield the rows of all groups under all strategies.

    Args:
        grouped: The rows of one history.
        sweep: What to compute; ``ownership_of`` also selects the intervals.
        rows_per_chunk: Number of input rows handled at once.
        timed_next: Called with each group before it is simulated over time.
        histories: The histories of the groups and of groups that share their instances; None
            simulates nothing over time.
        shared: Checkpoints shared with the other histories of the plan, if any.
    """
    for begin, end in grouped.chunks(rows_per_chunk):
        columns = (
            column.slice(begin, end - begin) for column in (grouped.clusters, grouped.groups)
        )
        names = list(zip(*(column.to_pylist() for column in columns), strict=True))
        passes, shown = [STEPS], sweep.ownership_of
        if shown is None or any(pair in shown for pair in names):
            passes.append(OWNERSHIP)
        kernels = [*passes, STARTS] if sweep.options.committed_offsets_given else passes
        tables = grouped.tables_of(begin, end)
        timed = _transitions(names, sweep, timed_next, histories, shared)
        for number, text in sweep.strategies:
            options = replace(sweep.options, strategy_override=text)
            made = _engine_passes(kernels, tables, options, sweep)
            yield SweptGroups(number, made | timed.get(number, {}), end)
        for number, mode in sweep.popped:
            popped = popped_groups(tables, mode)
            options = replace(sweep.options, strategy_override=None)
            made = _engine_passes(passes, popped.tables, options, sweep, popped.cannot_pop)
            yield SweptGroups(number, made, end)
        if sweep.hypothetical.strategies:
            yield from _hypothetical(grouped, begin, end, passes, sweep)


def _transitions(
    names: Iterable[tuple[str, str]],
    sweep: Sweep,
    timed_next: Callable[[str], object] | None,
    histories: HistoriesOfSharedInstances | None,
    shared: SharedCheckpoints | None,
) -> dict[int, dict[str, pa.Table]]:
    """Return, by strategy, the cost of changes until they settled and the holders of queues until
    then, for simulated groups.
    """
    rows: dict[int, list[StepRow]] = {}
    held: dict[int, list[pa.Table]] = {}
    for pair in names:
        if histories is not None and sweep.transitions.wants(*pair):
            if timed_next is not None:
                timed_next("/".join(pair))
            costs = sweep.transitions.rows(
                histories.history(pair), sweep.strategies, sweep.first_ms, shared
            )
            for number, row, holders in costs:
                rows.setdefault(number, []).append(row)
                held.setdefault(number, []).append(holders)
    return {
        number: {
            TRANSITIONS: pa.Table.from_pylist(made, TRANSITION_SCHEMA),
            HOLDERS: pa.concat_tables(held[number]),
        }
        for number, made in rows.items()
    }


def _engine_passes(
    passes: Collection[str],
    tables: Mapping[str, pa.Table],
    options: EngineOptions,
    sweep: Sweep,
    cannot_pop: Mapping[Group, str] | None = None,
) -> dict[str, pa.Table]:
    wanted = [name for made in passes for name in LEDGER_OF[made]]
    parts: dict[str, list[pa.RecordBatch]] = {name: [] for name in wanted}
    for name, rows in rows_of(prepare_tables(tables, options, wanted), wanted):
        if name in parts:
            parts[name].append(rows)
    ledger = {
        name: pa.Table.from_batches(batches, LEDGER_TABLES[name].arrow_schema())
        for name, batches in parts.items()
    }
    return {made: pass_rows(made, ledger, sweep.first_ms, tables, cannot_pop) for made in passes}


def _hypothetical(
    grouped: GroupedRows, begin: int, end: int, passes: Sequence[str], sweep: Sweep
) -> Iterator[SweptGroups]:
    """Yield the groups in turn, replaying each once for all strategies and passes."""
    made: dict[int, list[dict[str, pa.Table]]] = {}
    for group in range(begin, end):
        tables = grouped.tables_of(group, group + 1)
        inputs = {name: rows for name, rows in tables.items() if name in (EVENTS, GROUPS)}
        history = history_of(inputs, sweep.options)
        for number, rows in sweep.hypothetical.tables(passes, history):
            tables_of_group = {
                p: hypothetical_rows(p, rows[p], sweep.first_ms, inputs) for p in passes
            }
            made.setdefault(number, []).append(tables_of_group)
    for number, parts in made.items():
        joined = {p: pa.concat_tables([part[p] for part in parts]) for p in passes}
        yield SweptGroups(number, joined, end)


Progress = Callable[[int, int, str | None], object]
OF_GROUPS = (
    planning.PLAN_STEPS.name,
    planning.PLAN_SUMMARY.name,
    planning.PLAN_OWNERSHIP.name,
    planning.PLAN_HOLDERS.name,
)
"""The tables of a plan whose rows each belong to one group."""


class PlanFacts:
    """Facts about a plan besides its tables; the facts of parts are merged."""

    def __init__(self) -> None:
        self.sound = SoundSteps()
        self.expected: list[ExpectationsRow] = []
        """Rows of ``expectations``."""
        self.warnings: set[str] = set()
        """Warnings about edits to groups that could not be applied."""
        self._summary: list[bytes] = []

    def add_summary(self, rows: pa.Table) -> None:
        """Add rows of ``plan_summary``."""
        self._summary.append(pack(rows))

    def summary(self) -> pa.Table:
        """Return the rows of ``plan_summary``, in any order."""
        schema = planning.PLAN_SUMMARY.arrow_schema()
        return pa.concat_tables([schema.empty_table(), *map(unpack, self._summary)])

    def merge(self, other: PlanFacts) -> None:
        """Add the facts of other groups, or of other histories of the same groups."""
        self.sound.merge(other.sound)
        self.expected += other.expected
        self.warnings |= other.warnings
        self._summary += other._summary


@dataclass(frozen=True, eq=False)
class PlanPass:
    """The computation of a plan's variants; small enough to be sent to every task.

    Attributes:
        variants: The variants to compute.
        edits: The edits of the histories.
        sweep: The sweep over all histories; its ``first_ms`` is not used.
        group_pattern: SQL LIKE pattern for the selected groups; None for all.
        shown: (cluster, group) in ``plan_ownership``; None for all.
        rates: `last_rates` of queues; None if unknown.
    """

    variants: Variants
    edits: EditPlan
    sweep: Sweep
    group_pattern: str | None
    shown: Collection[tuple[str, str]] | None
    rates: pa.Table | None

    def histories(self, tables: Mapping[str, pa.Table]) -> Histories:
        """Return the histories of the given rows."""
        return Histories(tables, self.edits, self.group_pattern)

    def rows(
        self,
        tables: Mapping[str, pa.Table],
        facts: PlanFacts,
        numbers: range,
        *,
        progress: Progress | None = None,
    ) -> LedgerRows:
        """Yield the rows of `OF_GROUPS`. Memory: the events of one history and the rows of some
        groups.

        Args:
            tables: All used rows that concern the groups in any history.
            facts: Collects the facts of the groups; complete once all rows are yielded.
            numbers: The numbers of the histories to compute.
            progress: Called with the number of finished groups, the number of all groups, and the
                group that is simulated over time; a group counts once per history.

        Raises:
            InputRefused: An edit makes too many events at the same instant.
        """
        histories, done, all_done = self.histories(tables), 0, 0
        shared, waiting = histories.shared_checkpoints(numbers), WaitingMessages(tables)

        def tell(group: str | None = None) -> None:
            if progress is not None:
                progress(all_done, total, group)

        for to_come, number in zip(range(len(numbers), 0, -1), numbers, strict=True):
            history = histories.history(number)
            facts.warnings |= history.warnings
            left = waiting.left_unread(lost_queues(history.tables[EVENTS], history.first_ms))
            scenario = self.variants.histories[number].scenario
            proxies = proxy_figures(history.tables[EVENTS], scenario)
            grouped = fan_out(history.tables, self.group_pattern)
            total = done + to_come * len(grouped)
            sweep = replace(self.sweep, first_ms=history.first_ms)
            timed = None
            if sweep.transitions.futures:
                timed = HistoriesOfSharedInstances.of_tables(
                    history.tables, sweep.options, self.group_pattern
                )
            for swept in swept_groups(
                grouped, sweep, timed_next=tell, histories=timed, shared=shared
            ):
                for table, rows in self._tables(number, history, swept, facts.sound, left, proxies):
                    if table is planning.PLAN_SUMMARY:
                        facts.add_summary(rows)
                        timed_rows = swept.passes.get(TRANSITIONS)
                        facts.expected += self._judged(number, rows, timed_rows)
                    yield from ((table.name, batch) for batch in rows.to_batches())
                all_done = done + swept.done
                tell()
            done += len(grouped)

    def _judged(
        self, history: int, summary: pa.Table, timed: pa.Table | None
    ) -> Iterator[ExpectationsRow]:
        """Yield the results of a history's expectations for the given groups."""
        scenario = self.variants.histories[history].scenario
        if scenario is not None and scenario.expectations:
            yield from judged_rows(scenario.expectations, summary, timed)

    def _tables(
        self,
        number: int,
        history: HistoryTables,
        swept: SweptGroups,
        sound: SoundSteps,
        left: pa.Table,
        proxies: pa.Table,
    ) -> Iterator[tuple[Table, pa.Table]]:
        """Yield the rows of the given groups in one history under one strategy."""

        def named(made: pa.Table) -> pa.Table:
            return of_variant(made, self.variants, number, swept.strategy)

        steps = as_table(named(swept.passes[STEPS]), planning.PLAN_STEPS)
        yield planning.PLAN_STEPS, steps
        sound.add(steps)
        intervals = swept.passes.get(OWNERSHIP)
        starts, timed = swept.passes.get(STARTS), swept.passes.get(TRANSITIONS)
        loads = None
        if timed is not None and swept.passes[HOLDERS].num_rows:
            holders = swept.passes[HOLDERS]
            futures = ["future" if name == "seed" else name for name in holders.column_names]
            holders = named(holders.rename_columns(futures))
            yield planning.PLAN_HOLDERS, as_table(holders, planning.PLAN_HOLDERS)
        if intervals is not None:
            held = owners(intervals, history.first_ms, self.shown)
            yield planning.PLAN_OWNERSHIP, as_table(named(held), planning.PLAN_OWNERSHIP)
            if self.rates is not None:
                loads = named(peak_rates(intervals, self.rates))
        yield (
            planning.PLAN_SUMMARY,
            plan_summary(
                steps,
                None if starts is None else named(starts),
                loads,
                None if timed is None else named(timed),
                left,
                proxies,
            ),
        )


def plan_pass(
    variants: Variants,
    edits: EditPlan,
    members: pa.Table,
    input_names: Container[str],
    options: SweepOptions,
    rates: pa.Table | None,
    timed: Collection[tuple[str, str]] = (),
) -> PlanPass:
    """Return the pass that computes a plan.

    Args:
        variants: The variants to compute.
        edits: The edits of its histories.
        members: Rows that each name a group with consumer events.
        input_names: Names of the input tables that exist.
        options: See `SweepOptions`.
        rates: `last_rates` of queues; None if unknown.
        timed: (cluster, group) to simulate over time besides those in ``plan_ownership``.
    """
    shown = None if options.group else first_groups(members, options.ownership_groups)
    # rates need the holders of every queue
    held = shown if rates is None else None
    simulated = None if shown is None else shown.union(timed)
    sweep = sweep_of(variants, options, input_names, {}, held, simulated)
    pattern = None if options.group is None else like_pattern(options.group)
    return PlanPass(variants, edits, sweep, pattern, shown, rates)

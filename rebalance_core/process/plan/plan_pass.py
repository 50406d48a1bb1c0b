"""One pass over some groups: the rows of the tables of a plan, history by history."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from rebalance_core.contracts.planning import PLAN_OWNERSHIP, PLAN_STEPS, PLAN_SUMMARY
from rebalance_core.contracts.table import Table
from rebalance_core.engine.fan_out import fan_out
from rebalance_core.engine.ledger_pass import Rows
from rebalance_core.engine.options import like_pattern
from rebalance_core.planning.hypothetical import OWNERSHIP, STEPS
from rebalance_core.planning.sweep.passes import STARTS, Sweep, sweep_of
from rebalance_core.planning.sweep.plan_edits import PlanEdits
from rebalance_core.planning.sweep.plan_options import SweepOptions
from rebalance_core.planning.sweep.transitions import TRANSITIONS
from rebalance_core.planning.variants import Variants
from rebalance_core.process.plan.histories import Histories, HistoryTables, first_groups
from rebalance_core.process.plan.loads import peak_rates
from rebalance_core.process.plan.plan_league import SoundSteps, plan_league
from rebalance_core.process.plan.plan_ownership import owners
from rebalance_core.process.plan.plan_summary import plan_summary
from rebalance_core.process.plan.scenario_rows import scenario_rows
from rebalance_core.process.plan.sweep import SweptGroups, swept_groups
from rebalance_core.process.plan.totals import Row
from rebalance_core.process.plan.variant_columns import as_table, of_variant

Progress = Callable[[int, int], object]
OF_GROUPS = (PLAN_STEPS.name, PLAN_SUMMARY.name, PLAN_OWNERSHIP.name)
"""The tables of a plan whose rows are of single groups."""


@dataclass(frozen=True, eq=False)
class PlanSums:
    """What is made of the whole ``plan_summary``: rows of ``plan_league``, and what is printed."""

    league: pa.Table
    scenarios: list[Row]


def summed_up(summary: pa.Table, sound: SoundSteps) -> PlanSums:
    """Add all groups up; rows of ``plan_summary`` in any order."""
    return PlanSums(plan_league(summary, sound), scenario_rows(summary))


class PlanFacts:
    """What is told of a plan beside its tables; those of its parts are merged."""

    def __init__(self) -> None:
        self.sound = SoundSteps()
        self.warnings: set[str] = set()
        """What the edits of groups could not do."""

    def merge(self, other: PlanFacts) -> None:
        """Add the facts of other groups, or of other histories of the same."""
        self.sound.merge(other.sound)
        self.warnings |= other.warnings


@dataclass(frozen=True, eq=False)
class PlanPass:
    """What is planned; small enough to be sent to every task.

    Attributes:
        variants: What is computed.
        edits: What the histories change.
        sweep: Of all histories; its ``first_ms`` is not used.
        group_pattern: SQL LIKE pattern of the groups wanted; None: all.
        shown: (cluster, group) that ``plan_ownership`` has; None: all.
        rates: `last_rates` of queues; None: they are not known.
    """

    variants: Variants
    edits: PlanEdits
    sweep: Sweep
    group_pattern: str | None
    shown: Collection[tuple[str, str]] | None
    rates: pa.Table | None

    def histories(self, tables: Mapping[str, pa.Table]) -> Histories:
        """The histories of some rows."""
        return Histories(tables, self.edits, self.group_pattern)

    def rows(
        self,
        tables: Mapping[str, pa.Table],
        facts: PlanFacts,
        numbers: range,
        *,
        progress: Progress | None = None,
    ) -> Rows:
        """Rows of the tables `OF_GROUPS`. Memory: the events of one history, rows of some groups.

        Args:
            tables: The used rows: all that concerns the groups in any history.
            facts: Gets those of the groups; complete once all rows are made.
            numbers: Of the histories wanted.
            progress: Told how many groups are done, of how many; one counts in every history.

        Raises:
            InputRefused: An edit makes too many events at one instant.
        """
        histories, done = self.histories(tables), 0
        for left, number in zip(range(len(numbers), 0, -1), numbers, strict=True):
            history = histories.of(number)
            facts.warnings |= history.warnings
            grouped = fan_out(history.tables, self.group_pattern)
            total = done + left * len(grouped)
            sweep = replace(self.sweep, first_ms=history.first_ms)
            for swept in swept_groups(grouped, sweep):
                for table, rows in self._tables(number, history, swept, facts.sound):
                    yield from ((table.name, batch) for batch in rows.to_batches())
                if progress is not None:
                    progress(done + swept.done, total)
            done += len(grouped)

    def _tables(
        self, number: int, history: HistoryTables, swept: SweptGroups, sound: SoundSteps
    ) -> Iterator[tuple[Table, pa.Table]]:
        """The rows of some groups of one history under one strategy."""

        def named(made: pa.Table) -> pa.Table:
            return of_variant(made, self.variants, number, swept.strategy)

        steps = as_table(named(swept.passes[STEPS]), PLAN_STEPS)
        yield PLAN_STEPS, steps
        sound.add(steps)
        intervals = swept.passes.get(OWNERSHIP)
        starts, timed = swept.passes.get(STARTS), swept.passes.get(TRANSITIONS)
        loads = None
        if intervals is not None:
            held = owners(intervals, history.first_ms, self.shown)
            yield PLAN_OWNERSHIP, as_table(named(held), PLAN_OWNERSHIP)
            if self.rates is not None:
                loads = named(peak_rates(intervals, self.rates))
        yield (
            PLAN_SUMMARY,
            plan_summary(
                steps,
                None if starts is None else named(starts),
                loads,
                None if timed is None else named(timed),
            ),
        )


def plan_pass(
    variants: Variants,
    edits: PlanEdits,
    members: pa.Table,
    given: Container[str],
    options: SweepOptions,
    rates: pa.Table | None,
) -> PlanPass:
    """The pass that makes a plan.

    Args:
        variants: What to compute.
        edits: What its histories change.
        members: Rows, each naming a group that has consumer events.
        given: Names of the input tables there are.
        options: See `SweepOptions`.
        rates: `last_rates` of queues; None: they are not known.
    """
    shown = None if options.group else first_groups(members, options.ownership_groups)
    # with rates the holders of every queue are wanted
    sweep = sweep_of(variants, options, given, {}, shown if rates is None else None, shown)
    pattern = None if options.group is None else like_pattern(options.group)
    return PlanPass(variants, edits, sweep, pattern, shown, rates)

"""The tables of a plan, written while the rows of the sweep come in."""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa

from rebalance_core.contracts.planning import (
    PLAN_LEAGUE,
    PLAN_OWNERSHIP,
    PLAN_STEPS,
    PLAN_SUMMARY,
)
from rebalance_core.contracts.table import Table
from rebalance_core.engine.table_writer import TableWriters
from rebalance_core.planning.hypothetical import OWNERSHIP, STEPS
from rebalance_core.planning.sweep.passes import STARTS
from rebalance_core.planning.sweep.transitions import TRANSITIONS
from rebalance_core.planning.variants import Variants
from rebalance_core.process.plan.histories import HistoryTables
from rebalance_core.process.plan.loads import last_rates, peak_rates
from rebalance_core.process.plan.plan_league import SoundSteps, plan_league
from rebalance_core.process.plan.plan_ownership import owners
from rebalance_core.process.plan.plan_summary import plan_summary
from rebalance_core.process.plan.scenario_rows import scenario_rows
from rebalance_core.process.plan.sweep import SweptGroups
from rebalance_core.process.plan.totals import Row
from rebalance_core.process.plan.variant_columns import as_table, of_variant


class PlanTables:
    """Makes the rows of every table. Memory: ``plan_summary``.

    Args:
        writers: Of the tables of a plan.
        variants: What is computed.
        shown: (cluster, group) that ``plan_ownership`` has; None: all.
        queue_rates: Rows of the table; None: they are not known.
    """

    def __init__(
        self,
        writers: TableWriters,
        variants: Variants,
        shown: Collection[tuple[str, str]] | None,
        queue_rates: pa.Table | None,
    ) -> None:
        self._writers = writers
        self._variants = variants
        self._shown = shown
        self._rates = None if queue_rates is None else last_rates(queue_rates)
        self._summary = [PLAN_SUMMARY.arrow_schema().empty_table()]
        self._sound = SoundSteps()

    def add(self, number: int, history: HistoryTables, rows: SweptGroups) -> None:
        """The rows of some groups of one history under one strategy."""

        def named(made: pa.Table) -> pa.Table:
            return of_variant(made, self._variants, number, rows.strategy)

        steps = as_table(named(rows.passes[STEPS]), PLAN_STEPS)
        self._write(PLAN_STEPS, steps)
        self._sound.add(steps)
        intervals = rows.passes.get(OWNERSHIP)
        starts, timed = rows.passes.get(STARTS), rows.passes.get(TRANSITIONS)
        loads = None
        if intervals is not None:
            held = owners(intervals, history.first_ms, self._shown)
            self._write(PLAN_OWNERSHIP, as_table(named(held), PLAN_OWNERSHIP))
            if self._rates is not None:
                loads = named(peak_rates(intervals, self._rates))
        summary = plan_summary(
            steps,
            None if starts is None else named(starts),
            loads,
            None if timed is None else named(timed),
        )
        self._write(PLAN_SUMMARY, summary)
        self._summary.append(summary)

    def finish(self) -> tuple[list[Row], list[Row]]:
        """Write the league; what a summary shows of the scenarios, and the rows of the league."""
        summary = pa.concat_tables(self._summary)
        league = plan_league(summary, self._sound)
        self._write(PLAN_LEAGUE, league)
        return scenario_rows(summary), league.to_pylist()

    def _write(self, table: Table, rows: pa.Table) -> None:
        for batch in rows.to_batches():
            self._writers.write(table.name, batch)

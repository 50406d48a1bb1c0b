"""What tasks do for a plan, each with the rows of whole groups (`routed_rows`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from rebalance_core.contracts import REJECTED
from rebalance_core.engine.ledger_pass import with_events
from rebalance_core.process.plan.plan_pass import PlanFacts, PlanPass
from rebalance_core.spark.engine.routed_rows import routed_tables
from rebalance_core.spark.tables.task_tables import Rows

Batches = Iterable[pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class PlanWork:
    """Rows of the tables of a plan that are of single groups; the note is their `PlanFacts`.

    Attributes:
        planned: What is planned.
        copies: How many tasks have the rows of a group; each takes every so many-th history.
    """

    planned: PlanPass
    copies: int

    def __call__(self, batches: Batches) -> tuple[Rows, object]:
        """`Work` of `task_tables`."""
        facts = PlanFacts()
        return self._rows(batches, facts), facts

    def _rows(self, batches: Batches, facts: PlanFacts) -> Iterator[tuple[str, pa.RecordBatch]]:
        histories = len(self.planned.variants.histories)
        for number, tables in routed_tables(batches):
            numbers = range(number % self.copies, histories, self.copies)
            yield from self.planned.rows(_used(tables), facts, numbers)

    def warnings(self, batches: Batches) -> Iterator[str]:
        """What the edits of the groups cannot do."""
        for _, tables in routed_tables(batches):
            yield from self.planned.histories(_used(tables)).warnings()


def _used(tables: dict[str, pa.Table]) -> Any:
    return with_events({name: rows for name, rows in tables.items() if name != REJECTED.name})

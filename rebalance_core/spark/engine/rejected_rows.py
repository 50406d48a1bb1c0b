"""Rows of ``rejected`` without the ledger: bad ones, and events about a process not there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame

from rebalance_core.contracts import REJECTED
from rebalance_core.engine.facts import LedgerFacts
from rebalance_core.engine.ledger_pass import with_events
from rebalance_core.engine.options import SimulationOptions
from rebalance_core.engine.routing import Routing
from rebalance_core.process.simulate import unknown_members
from rebalance_core.spark.engine.routed_rows import routed_rows, routed_tables
from rebalance_core.spark.tables.quarantine import Quarantined
from rebalance_core.spark.tables.task_tables import Rows

Batches = Iterable[pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class RejectedWork:
    """`Work` over `routed_rows` of whole groups; the note is the `LedgerFacts` of the rows.

    Attributes:
        options: Of the simulation that rejects.
    """

    options: SimulationOptions

    def __call__(self, batches: Batches) -> tuple[Rows, LedgerFacts]:
        """The rows of a task."""
        facts = LedgerFacts()
        return self._rows(batches, facts), facts

    def _rows(self, batches: Batches, facts: LedgerFacts) -> Iterator[tuple[str, pa.RecordBatch]]:
        nothing = REJECTED.arrow_schema().empty_table()
        for _, tables in routed_tables(batches):
            bad = tables.pop(REJECTED.name, nothing).to_batches()
            for rows in (*bad, *unknown_members(with_events(tables), self.options)):
                facts.add(REJECTED.name, rows)
                yield REJECTED.name, rows


def rejected_rows(checked: Quarantined, routing: Routing, options: SimulationOptions) -> DataFrame:
    """The rows as a frame; lazy.

    Args:
        checked: The input.
        routing: Where its rows go; no group is divided.
        options: Of the simulation that rejects.
    """
    work = RejectedWork(options)

    def run(batches: Batches) -> Iterator[pa.RecordBatch]:
        rows, _ = work(batches)
        for _, batch in rows:
            yield batch

    return routed_rows(checked, routing).mapInArrow(run, REJECTED.plain_ddl)

"""What a task does with the rows of its groups: their ledger, and what a summary tells of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from rebalance_core.contracts import LEDGER_TABLES, REJECTED
from rebalance_core.engine.bucket_pass import Giants, bucket_pass
from rebalance_core.engine.facts import LedgerFacts
from rebalance_core.engine.ledger_pass import Rows
from rebalance_core.engine.options import SimulationOptions
from rebalance_core.kernels.codes.coded_groups import EngineOptions
from rebalance_core.spark.engine.routed_rows import routed_tables

_NO_ROWS = REJECTED.arrow_schema().empty_table()


@dataclass(frozen=True, slots=True)
class LedgerWork:
    """`Work` of `task_tables`: the ledger of some buckets; the note is its facts.

    Attributes:
        giants: The parts of divided groups, by bucket.
        engine: See `EngineOptions`.
        options: Of the simulation.
    """

    giants: Mapping[int, Giants]
    engine: EngineOptions
    options: SimulationOptions

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> tuple[Rows, LedgerFacts]:
        """From rows of `routed_rows`."""
        facts = LedgerFacts()
        return _counted(self._rows(batches), facts), facts

    def _rows(self, batches: Iterable[pa.RecordBatch]) -> Rows:
        for bucket, tables in routed_tables(batches):
            for rejected in tables.pop(REJECTED.name, _NO_ROWS).to_batches():
                yield REJECTED.name, rejected
            if tables:
                giants = self.giants.get(bucket, {})
                yield from bucket_pass(tables, giants, self.engine, self.options)


def _counted(rows: Rows, facts: LedgerFacts) -> Rows:
    """The rows of tables; what is noted of others is a fact too."""
    for name, batch in rows:
        facts.add(name, batch)
        if name in LEDGER_TABLES:
            yield name, batch

"""One pass that writes every table of the ledger from the tasks (`task_files`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame

from rebalance_core.contracts import LEDGER_TABLES, REJECTED
from rebalance_core.engine.bucket_pass import Giants, bucket_pass
from rebalance_core.engine.facts import LedgerFacts
from rebalance_core.engine.ledger_pass import Rows
from rebalance_core.engine.options import SimulationOptions
from rebalance_core.kernels.codes.coded_groups import EngineOptions
from rebalance_core.spark.engine.routed_rows import routed_tables
from rebalance_core.spark.tables.task_files import TaskFiles, one_attempt
from rebalance_core.storage.locations import Location
from rebalance_core.storage.place import Place

_NO_ROWS = REJECTED.arrow_schema().empty_table()


@dataclass(frozen=True, slots=True)
class LedgerTask:
    """Writes the ledger of one bucket.

    Attributes:
        folder: For the files of attempts.
        giants: The parts of divided groups, by bucket.
        engine: See `EngineOptions`.
        options: Of the simulation.
    """

    folder: Place
    giants: Mapping[int, Giants]
    engine: EngineOptions
    options: SimulationOptions

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """As `one_attempt`; the note is the facts of what was written."""
        facts = LedgerFacts()
        rows = _counted(self._rows(batches), facts)
        return one_attempt(self.folder, tuple(LEDGER_TABLES), rows, facts)

    def _rows(self, batches: Iterable[pa.RecordBatch]) -> Rows:
        for bucket, tables in routed_tables(batches):
            for rejected in tables.pop(REJECTED.name, _NO_ROWS).to_batches():
                yield REJECTED.name, rejected
            if tables:
                giants = self.giants.get(bucket, {})
                yield from bucket_pass(tables, giants, self.engine, self.options)


class LedgerFolder(TaskFiles):
    """Where the tables of a ledger are written, and the facts of what was; see `TaskFiles`."""

    def __init__(self, folder: Location) -> None:
        super().__init__(folder, tuple(LEDGER_TABLES))
        self.facts = LedgerFacts()

    def write_ledger(self, rows: DataFrame, task: LedgerTask) -> None:
        """`write`, and add up the facts."""
        for facts in self.write(rows, task):
            self.facts.merge(facts)


def _counted(rows: Rows, facts: LedgerFacts) -> Rows:
    """The rows of tables; what is noted of others is a fact too."""
    for name, batch in rows:
        facts.add(name, batch)
        if name in LEDGER_TABLES:
            yield name, batch

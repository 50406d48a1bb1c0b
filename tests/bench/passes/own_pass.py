"""The pass of `rebalance simulate` on Spark, for one table: tasks make its rows and write them."""

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame

from rebalance_core.checks.digest import TableWritten
from rebalance_core.engine.interests import Interests, interests_of
from rebalance_core.engine.options import SimulationOptions, engine_options
from rebalance_core.engine.routing import Routing, routing_of
from rebalance_core.kernels.codes.coded_groups import EngineOptions
from rebalance_core.spark.engine.routed_rows import routed_rows
from rebalance_core.spark.engine.write_pass import LedgerFolder, LedgerTask
from rebalance_core.spark.tables.check_rows import check_and_note
from rebalance_core.spark.tables.read import InputTables


@dataclass(frozen=True)
class OwnPass:
    """Checked rows in the tasks of their groups, packed as the job moves them, and kept.

    Attributes:
        rows: As `routed_rows`.
        routing: Where they went.
        engine: See `EngineOptions`.
        options: Of the simulation.
    """

    rows: DataFrame
    routing: Routing
    engine: EngineOptions
    options: SimulationOptions

    def run(self, table: str) -> tuple[float, TableWritten]:
        """Seconds of wall time from these rows to a written table, and what was written."""
        with tempfile.TemporaryDirectory() as folder:
            begin = time.perf_counter()
            with LedgerFolder(Path(folder)) as ledger:
                task = LedgerTask(
                    ledger.attempts, self.routing.giants, self.engine, self.options, (table,)
                )
                ledger.write(self.rows, task)
                taken = time.perf_counter() - begin
                return taken, ledger.close()[table]


def own_pass(inputs: InputTables, tasks: int) -> OwnPass:
    """What is ready when the pass begins; it stays in the session's memory.

    Args:
        inputs: The day.
        tasks: How many share the groups.
    """
    options = SimulationOptions(partitions=tasks)
    checked, counted = check_and_note(inputs, options.max_queue_nums, interests_of)
    found = Interests.merged(part for part in counted.notes if part is not None)
    routing = routing_of(found, tasks, None)
    rows = routed_rows(checked, routing).persist()
    rows.count()
    return OwnPass(rows, routing, engine_options(checked.tables, options), options)

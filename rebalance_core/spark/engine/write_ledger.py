"""A whole simulation: check the input, replay it, write the ledger, sum it up."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from rebalance_core.checks.row_counts import RowCounts
from rebalance_core.checks.row_limits import refuse_bad_rows, with_unknown_members
from rebalance_core.contracts import LEDGER_TABLES, REJECTED
from rebalance_core.engine.facts import LedgerFacts
from rebalance_core.engine.ledger_pass import Giants, Rows, bucket_pass
from rebalance_core.engine.options import (
    REFERENCE,
    LedgerConfig,
    SimulationOptions,
    check_options,
    engine_options,
    group_pattern,
)
from rebalance_core.engine.routing import (
    GIANT_CELLS,
    UNDIVIDED,
    Interests,
    interests_of,
    refuse_no_group,
    routing_of,
)
from rebalance_core.engine.table_writer import LedgerWritten, ledger_written
from rebalance_core.kernels.codes.coded_groups import EngineOptions
from rebalance_core.replay.group_replay import UNKNOWN_MEMBER
from rebalance_core.spark.engine.routed_rows import routed_rows, routed_tables
from rebalance_core.spark.tables.check_rows import Counted, check_and_note, complaints
from rebalance_core.spark.tables.quarantine import Quarantined
from rebalance_core.spark.tables.read import InputTables
from rebalance_core.spark.tables.task_tables import task_tables
from rebalance_core.spark.tables.written import read_written
from rebalance_core.spark.task_count import task_count

_NO_ROWS = REJECTED.arrow_schema().empty_table()


def simulate_and_write(
    session: SparkSession,
    inputs: InputTables,
    output: str,
    options: SimulationOptions | None = None,
    config: LedgerConfig | None = None,
    *,
    before_writing: Callable[[], object] | None = None,
    warn: Callable[[str], object] | None = None,
) -> LedgerWritten:
    """Simulate, and write the ledger.

    Args:
        session: Any session; its default parallelism is asked for.
        inputs: The input tables.
        output: Path or URI of a folder, which gets the tables of the ledger; none of them may be
            there.
        options: What to simulate; ``partitions`` None: as many as the rows need.
        config: See `LedgerConfig`.
        before_writing: Called once few enough rows are bad, before the first table is written.
        warn: Gets a text for whatever was passed over.

    Raises:
        UsageError: An unknown engine, or a strategy text that does not parse.
        InputRefused: The input has no event or too many bad rows. Events that name a member who is
            not there count too, and are known only once ``rejected`` is written.
        OutputExists: A table is in the folder already.
    """
    options, config = options or SimulationOptions(), config or LedgerConfig()
    checked, counted = check_and_note(inputs, options.max_queue_nums, (interests_of,), warn)
    counts = counted.rows
    with closing(checked):
        check_options(options)
        refuse_bad_rows(counts, config.bad_rows, lambda: complaints(checked.rejected))
        refuse_no_group(options.group, counted.noted(Interests))
        if before_writing is not None:
            before_writing()
        rows, work = ledger_tasks(session, checked, counted, options)
        facts = LedgerFacts()
        with task_tables(session, output, tuple(LEDGER_TABLES)) as tables:
            for note in tables.make(rows, work, tuple(LEDGER_TABLES)):
                facts.merge(note)
            written = tables.finish()
    with_unknown = with_unknown_members(counts, facts.rejected[UNKNOWN_MEMBER])
    if with_unknown != counts:
        rejected = read_written(session, output.rstrip("/"), REJECTED.name)
        refuse_bad_rows(with_unknown, config.bad_rows, lambda: complaints(rejected))
    return ledger_written(written, facts, counts, config.worst_groups)


def ledger_tasks(
    session: SparkSession,
    checked: Quarantined,
    counted: Counted,
    options: SimulationOptions,
    wanted: Collection[str] = LEDGER_TABLES,
) -> tuple[DataFrame, LedgerWork]:
    """The checked rows in the tasks of their groups, and what these make of them; lazy.

    Args:
        session: Its default parallelism is asked for.
        checked: The input.
        counted: Of it, with its `Interests`.
        options: Of the simulation.
        wanted: As of `LedgerWork`.
    """
    options = sized(options, counted.rows, session)
    whole = UNDIVIDED if options.engine == REFERENCE else GIANT_CELLS
    tasks, pattern = options.partitions or 1, group_pattern(options)
    routing = routing_of(counted.noted(Interests), tasks, pattern, giant_cells=whole)
    engine = engine_options(checked.tables, options)
    work = LedgerWork(routing.giants, engine, options, tuple(wanted))
    return routed_rows(checked, routing), work


def sized(
    options: SimulationOptions, counts: Mapping[str, RowCounts], session: SparkSession
) -> SimulationOptions:
    """The options with as many tasks as an input of that many rows needs, if none are chosen."""
    if options.partitions is not None:
        return options
    rows = sum(count.rows for count in counts.values())
    return replace(options, partitions=task_count(rows, session))


@dataclass(frozen=True, slots=True)
class LedgerWork:
    """`Work` of `task_tables`: the ledger of some buckets; the note is its facts.

    Attributes:
        giants: The parts of divided groups, by bucket.
        engine: See `EngineOptions`.
        options: Of the simulation.
        wanted: The tables whose rows are handed on, of the ledger's and `REPLAYED`.
    """

    giants: Mapping[int, Giants]
    engine: EngineOptions
    options: SimulationOptions
    wanted: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> tuple[Rows, LedgerFacts]:
        """From rows of `routed_rows`."""
        facts = LedgerFacts()
        return self._counted(batches, facts), facts

    def _counted(self, batches: Iterable[pa.RecordBatch], facts: LedgerFacts) -> Rows:
        for name, batch in self._rows(batches):
            facts.add(name, batch)
            if name in self.wanted:
                yield name, batch

    def _rows(self, batches: Iterable[pa.RecordBatch]) -> Rows:
        for bucket, tables in routed_tables(batches):
            for rejected in tables.pop(REJECTED.name, _NO_ROWS).to_batches():
                yield REJECTED.name, rejected
            if tables:
                giants = self.giants.get(bucket, {})
                yield from bucket_pass(tables, giants, self.engine, self.options)

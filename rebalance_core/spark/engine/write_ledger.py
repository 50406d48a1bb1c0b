"""A whole simulation: check the input, replay it, write the ledger, sum it up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from rebalance_core.checks.digest import TableWritten
from rebalance_core.checks.row_counts import RowCounts
from rebalance_core.checks.row_limits import refuse_bad_rows, with_unknown_members
from rebalance_core.contracts import REJECTED
from rebalance_core.engine.facts import COUNTED, LedgerFacts
from rebalance_core.engine.interests import Interests, interests_of
from rebalance_core.engine.options import (
    VECTORIZED,
    LedgerConfig,
    SimulationOptions,
    check_options,
    engine_options,
    group_pattern,
)
from rebalance_core.engine.prepared import REPLAYED
from rebalance_core.engine.routing import routing_of
from rebalance_core.engine.written import LedgerWritten, ledger_written
from rebalance_core.replay.group_replay import UNKNOWN_MEMBER
from rebalance_core.spark.engine.routed_rows import routed_rows
from rebalance_core.spark.engine.simulate import simulate_checked
from rebalance_core.spark.engine.summary import facts_of
from rebalance_core.spark.engine.work_units import task_count
from rebalance_core.spark.engine.write_pass import LedgerFolder, LedgerTask
from rebalance_core.spark.tables.check_rows import check_and_note, complaints
from rebalance_core.spark.tables.quarantine import Quarantined
from rebalance_core.spark.tables.read import InputTables
from rebalance_core.spark.tables.write import write_table
from rebalance_core.spark.tables.written import read_written
from rebalance_core.storage.locations import is_here


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

    folder = output.rstrip("/")
    with closing(checked):
        check_options(options)
        refuse_bad_rows(counts, config.bad_rows, lambda: complaints(checked.rejected))
        if before_writing is not None:
            before_writing()
        run = _Run(session, checked, folder, sized(options, counts, session))
        by_tasks = options.engine == VECTORIZED and is_here(folder)
        tables, facts = run.by_tasks(counted.noted(Interests)) if by_tasks else run.by_spark()
    with_unknown = with_unknown_members(counts, facts.rejected.get(UNKNOWN_MEMBER, 0))
    if with_unknown != counts:
        rejected = read_written(session, folder, REJECTED.name)
        refuse_bad_rows(with_unknown, config.bad_rows, lambda: complaints(rejected))
    return ledger_written(tables, facts, counts, config.worst_groups)


@dataclass(frozen=True)
class _Run:
    """One ledger on its way into a folder."""

    session: SparkSession
    checked: Quarantined
    folder: str
    options: SimulationOptions

    def by_tasks(self, interests: Interests) -> tuple[Mapping[str, TableWritten], LedgerFacts]:
        """One pass whose tasks write every table."""
        engine = engine_options(self.checked.tables, self.options)
        tasks = self.options.partitions or 1
        routing = routing_of(interests, tasks, group_pattern(self.options))
        with LedgerFolder(self.folder) as folder:
            task = LedgerTask(folder.attempts, routing.giants, engine, self.options)
            folder.write_ledger(routed_rows(self.checked, routing), task)
            return folder.close(), folder.facts

    def by_spark(self) -> tuple[Mapping[str, TableWritten], LedgerFacts]:
        """A pass for each table, through Spark's writer."""
        with simulate_checked(self.checked, self.options) as ledger:
            frames = ledger.frames()
            written = {n: write_table(frame, self.folder, n) for n, frame in frames.items()}
            counted = {n: read_written(self.session, self.folder, n) for n in COUNTED}
            if ledger.replayed is not None:
                counted[REPLAYED] = ledger.replayed
            return written, facts_of(counted)


def sized(
    options: SimulationOptions, counts: Mapping[str, RowCounts], session: SparkSession
) -> SimulationOptions:
    """The options with as many tasks as an input of that many rows needs, if none are chosen."""
    if options.partitions is not None:
        return options
    rows = sum(count.rows for count in counts.values())
    return replace(options, partitions=task_count(rows, session.sparkContext.defaultParallelism))

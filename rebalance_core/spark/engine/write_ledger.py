"""A whole simulation: check the input, replay it, write the ledger, sum it up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace

from pyspark.sql import SparkSession

from rebalance_core.checks.row_counts import RowCounts
from rebalance_core.checks.row_limits import refuse_bad_rows, with_unknown_members
from rebalance_core.contracts import LEDGER_TABLES, REJECTED
from rebalance_core.engine.facts import LedgerFacts
from rebalance_core.engine.interests import Interests, interests_of, refuse_no_group
from rebalance_core.engine.options import (
    REFERENCE,
    LedgerConfig,
    SimulationOptions,
    check_options,
    engine_options,
    group_pattern,
)
from rebalance_core.engine.routing import GIANT_CELLS, UNDIVIDED, routing_of
from rebalance_core.engine.written import LedgerWritten, ledger_written
from rebalance_core.replay.group_replay import UNKNOWN_MEMBER
from rebalance_core.spark.engine.ledger_work import LedgerWork
from rebalance_core.spark.engine.routed_rows import routed_rows
from rebalance_core.spark.engine.work_units import task_count
from rebalance_core.spark.tables.check_rows import check_and_note, complaints
from rebalance_core.spark.tables.read import InputTables
from rebalance_core.spark.tables.task_tables import task_tables
from rebalance_core.spark.tables.written import read_written


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
        options = sized(options, counts, session)
        whole = UNDIVIDED if options.engine == REFERENCE else GIANT_CELLS
        tasks, pattern = options.partitions or 1, group_pattern(options)
        routing = routing_of(counted.noted(Interests), tasks, pattern, giant_cells=whole)
        work = LedgerWork(routing.giants, engine_options(checked.tables, options), options)
        facts = LedgerFacts()
        with task_tables(session, output, tuple(LEDGER_TABLES)) as tables:
            for note in tables.make(routed_rows(checked, routing), work, tuple(LEDGER_TABLES)):
                facts.merge(note)
            written = tables.finish()
    with_unknown = with_unknown_members(counts, facts.rejected[UNKNOWN_MEMBER])
    if with_unknown != counts:
        rejected = read_written(session, output.rstrip("/"), REJECTED.name)
        refuse_bad_rows(with_unknown, config.bad_rows, lambda: complaints(rejected))
    return ledger_written(written, facts, counts, config.worst_groups)


def sized(
    options: SimulationOptions, counts: Mapping[str, RowCounts], session: SparkSession
) -> SimulationOptions:
    """The options with as many tasks as an input of that many rows needs, if none are chosen."""
    if options.partitions is not None:
        return options
    rows = sum(count.rows for count in counts.values())
    return replace(options, partitions=task_count(rows, session.sparkContext.defaultParallelism))

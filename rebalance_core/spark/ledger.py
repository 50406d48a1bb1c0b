"""A whole simulation on a cluster: input tables checked, groups replayed in tasks, the ledger
written or kept.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from typing import Any, Self

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from rebalance_core.checks.row_checks import Rejections
from rebalance_core.checks.row_limits import BadRowLimits, RowCounts
from rebalance_core.contracts import LEDGER_TABLES, REJECTED
from rebalance_core.engine.ledger_pass import (
    REPLAYED,
    Giants,
    LedgerRows,
    bucket_pass,
    with_empty_events_if_missing,
)
from rebalance_core.engine.options import (
    REFERENCE,
    LedgerConfig,
    RowForecast,
    SimulationOptions,
    check_options,
    engine_options,
    group_pattern,
    refuse_rejected,
    row_forecast,
)
from rebalance_core.engine.routing import (
    GIANT_CELLS,
    UNDIVIDED,
    Interests,
    interests_of,
    refuse_no_consumer,
    refuse_no_group,
    refuse_no_member,
    routing_of,
)
from rebalance_core.engine.table_writer import LedgerFacts, Written, ledger_written
from rebalance_core.kernels.coded_groups import EngineOptions
from rebalance_core.model.errors import InputRefused
from rebalance_core.process.simulate import unknown_members
from rebalance_core.spark.checks import CheckedFrames, check_and_count
from rebalance_core.spark.read_tables import InputTables
from rebalance_core.spark.routed_rows import routed_rows, routed_tables
from rebalance_core.spark.sources import run_folder, task_count
from rebalance_core.spark.task_tables import kept_tables, make_unwritten, task_tables
from rebalance_core.storage.run_folder import counted_rows, read_version

# The result of a simulation: its tables as DataFrames by attribute.


@dataclass(frozen=True, eq=False)
class Ledger:
    """One DataFrame per ledger table, with the contract's columns; lazy.

    A simulation's ledger is a context manager: the rows of its tables, and the input's, are kept in
    memory and on disk until it is closed. Afterwards its tables can still be used; they are made
    anew. Ledgers of one and the same input share its checked rows, and with the same options all
    of theirs: the first one closed releases them.
    """

    epochs: DataFrame
    ownership: DataFrame
    diffs: DataFrame
    pull_starts: DataFrame
    memberships: DataFrame
    consumer_load: DataFrame
    group_metrics: DataFrame
    pop_reach: DataFrame
    pop_metrics: DataFrame
    queue_states: DataFrame
    rejected: DataFrame
    replayed: DataFrame | None = None
    """Groups the kernels left to the replay (cluster, consumer_group, reason); None if read."""
    kept: tuple[DataFrame, ...] = ()
    """What the tables are computed from and is kept until `close`."""

    @classmethod
    def read(cls, spark: SparkSession, path: str) -> Ledger:
        """The ledger a finished run wrote into ``path``.

        Columns that an older contract did not have are null, its missing tables empty.

        Raises:
            InputRefused: the folder is not a finished result, its contract is newer than this
                library's or older than the one before, or a table is missing or has other rows
                than its run wrote.
        """
        folder = str(path).rstrip("/")
        written = run_folder(spark, folder)
        record = read_version(written)
        written_by: int = record["contract_version"]
        counted_rows(written, record, LEDGER_TABLES)
        try:
            tables: dict[str, Any] = {
                name: spark.read.schema(table.ddl).parquet(f"{folder}/{name}")
                if table.since <= written_by
                else spark.createDataFrame([], table.plain_ddl)
                for name, table in LEDGER_TABLES.items()
            }
            return cls(**tables)
        except AnalysisException as error:
            first_line = str(error).strip().splitlines()[0]
            raise InputRefused(f"{folder} lacks a table of the ledger: {first_line}") from error

    def frames(self) -> dict[str, DataFrame]:
        """The DataFrames by table name, in the contract's order."""
        return {name: getattr(self, name) for name in LEDGER_TABLES}

    def close(self) -> None:
        """Release what is kept."""
        for frame in self.kept:
            frame.unpersist()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


# A whole simulation: check the input, replay it, write the ledger, sum it up.

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
) -> Written:
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
    checked = check_and_count(inputs, options.max_queue_nums, (interests_of,), warn)
    with closing(checked):
        check_options(options)
        checked.refuse(config.bad_rows)
        refuse_no_consumer(checked.stats(Interests), checked.rejections.complaints)
        refuse_no_group(options.group, checked.stats(Interests))
        if before_writing is not None:
            before_writing()
        rows, work = ledger_tasks(session, checked, options)
        with task_tables(session, output, tuple(LEDGER_TABLES)) as tables:
            facts = tables.make(rows, work, LedgerFacts, tuple(LEDGER_TABLES))
            written = tables.finish()
    refuse_rejected(checked.counts, facts.rejected, config.bad_rows)
    refuse_no_member(options.group, checked.stats(Interests), facts.rejected)
    return ledger_written(written, facts, checked.counts, config.worst_groups)


def ledger_tasks(
    session: SparkSession,
    checked: CheckedFrames,
    options: SimulationOptions,
    wanted: Collection[str] = LEDGER_TABLES,
) -> tuple[DataFrame, LedgerTask]:
    """The checked rows in the tasks of their groups, and what these make of them; lazy.

    Args:
        session: Its default parallelism is asked for.
        checked: The input, with its `Interests`.
        options: Of the simulation.
        wanted: As of `LedgerTask`.
    """
    options = sized(options, checked.counts, session)
    whole = UNDIVIDED if options.engine == REFERENCE else GIANT_CELLS
    tasks, pattern = options.partitions or 1, group_pattern(options)
    routing = routing_of(checked.stats(Interests), tasks, pattern, giant_cells=whole)
    engine = engine_options(checked.tables, options)
    work = LedgerTask(routing.giants, engine, options, tuple(wanted))
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
class LedgerTask:
    """`Work` of `task_tables`: the ledger of some buckets; its facts are `LedgerFacts`.

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

    def __call__(self, batches: Iterable[pa.RecordBatch], facts: LedgerFacts) -> LedgerRows:
        """From rows of `routed_rows`."""
        for name, batch in self._rows(batches):
            facts.add(name, batch)
            if name in self.wanted:
                yield name, batch

    def _rows(self, batches: Iterable[pa.RecordBatch]) -> LedgerRows:
        for bucket, tables in routed_tables(batches):
            for rejected in tables.pop(REJECTED.name, _NO_ROWS).to_batches():
                yield REJECTED.name, rejected
            if tables:
                giants = self.giants.get(bucket, {})
                yield from bucket_pass(tables, giants, self.engine, self.options)


# From input tables to the ledger as DataFrames, for notebooks and applications.

_TABLES = {**LEDGER_TABLES, REPLAYED.name: REPLAYED}


def simulate(inputs: InputTables, options: SimulationOptions | None = None) -> Ledger:
    """Replay every group of the input, in any session there is (notebook, Connect).

    The call checks the rows, which is one job; the first use of a table makes all tables, which is
    another. Checked rows and the rows of all tables are kept, packed, until `Ledger.close`, or the
    end of ``with simulate(...) as ledger:``.

    Raises:
        UsageError: An unknown engine, or a strategy text that does not parse.
        InputRefused: An input lacks columns, has no event, too many bad rows or no group. Events
            that name a member who is not there are known only in ``rejected``.
    """
    options = options or SimulationOptions()
    check_options(options)
    with ExitStack() as released:
        checked = check_and_count(inputs, options.max_queue_nums, (interests_of,))
        released.callback(checked.close)
        checked.refuse(options.bad_rows)
        refuse_no_consumer(checked.stats(Interests), checked.rejections.complaints)
        refuse_no_group(options.group, checked.stats(Interests))
        rows, work = ledger_tasks(checked.chunks.sparkSession, checked, options, _TABLES)
        made = kept_tables(rows, work, LedgerFacts, _TABLES)
        released.pop_all()
    return Ledger(
        **{name: made.rows(name) for name in LEDGER_TABLES},
        replayed=made.rows(REPLAYED.name),
        kept=(made.chunks, checked.chunks),
    )


# Rows of ``rejected`` without the ledger: bad ones, and events about a process not there.

Batches = Iterable[pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class RejectedTask:
    """`Work` over `routed_rows` of whole groups; its facts are the `Rejections` of the rows.

    Attributes:
        options: Of the simulation that rejects.
    """

    options: SimulationOptions

    def __call__(self, batches: Batches, rejections: Rejections) -> LedgerRows:
        """The rows of a task."""
        for _, tables in routed_tables(batches):
            bad = tables.pop(REJECTED.name, _NO_ROWS).to_batches()
            unknown = unknown_members(with_empty_events_if_missing(tables), self.options)
            for rows in (*bad, *unknown):
                rejections.add(rows)
                yield REJECTED.name, rows


# How a run on Spark would end for the rows of its input; for dry runs.


def simulation_forecast(
    spark: SparkSession,
    tables: InputTables,
    options: SimulationOptions,
    limits: BadRowLimits,
    *,
    warn: Callable[[str], object],
) -> RowForecast:
    """Foretell how `simulate_and_write` would end for its input; `warn` hears of columns."""
    checked = check_and_count(tables, options.max_queue_nums, (interests_of,), warn)
    with closing(checked):
        interests = checked.stats(Interests)
        tasks = sized(options, checked.counts, spark).partitions or 1
        rows = routed_rows(checked, routing_of(interests, tasks, group_pattern(options), UNDIVIDED))

        def refuse() -> None:
            refuse_no_consumer(interests, checked.rejections.complaints)
            refuse_no_group(options.group, interests)

        def rejections() -> Rejections:
            found = make_unwritten(rows, RejectedTask(options), Rejections)
            refuse_no_member(options.group, interests, found)
            return found

        return row_forecast(
            checked.counts,
            checked.rejections,
            limits,
            refuse,
            rejections,
        )

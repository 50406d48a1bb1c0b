"""A whole simulation on a cluster: check the input tables, replay groups in tasks, and keep the
ledger.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, Self

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from rebalance_core.checks.opening_state import state_folder
from rebalance_core.contracts import LEDGER_TABLES
from rebalance_core.engine.options import (
    SimulationOptions,
    check_options,
    chosen_tables,
)
from rebalance_core.engine.replayed import REPLAYED
from rebalance_core.engine.routing import (
    Interests,
    interests_of,
    refuse_no_consumer,
    refuse_no_group,
)
from rebalance_core.engine.table_writer import LedgerFacts
from rebalance_core.model.errors import InputRefused, UsageError
from rebalance_core.process.simulate import ledger_tasks
from rebalance_core.spark.checks import check_and_count
from rebalance_core.spark.opening_state import with_state
from rebalance_core.spark.read_tables import InputTables
from rebalance_core.spark.runtime import SparkRuntime
from rebalance_core.spark.sources import run_folder
from rebalance_core.spark.task_tables import kept_tables
from rebalance_core.storage.run_folder import counted_rows, read_version


@dataclass(frozen=True, eq=False)
class Ledger:
    """A lazy DataFrame per ledger table, with the contract's columns.

    If a simulation selected tables, accessing any other raises `UsageError`. The ledger of a
    simulation is a context manager: the rows of its tables and of the input are kept in memory and
    on disk until it is closed. Its tables can still be used afterwards, but are computed again.
    Ledgers of the same input share its checked rows and, with the same options, all rows; the first
    ledger that is closed releases them.
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
    pop_starts: DataFrame
    rejected: DataFrame
    replayed: DataFrame | None = None
    """The groups that the kernels left to the replay (cluster, consumer_group, reason); None for a
    ledger that was read.
    """
    kept: tuple[DataFrame, ...] = ()
    """The input of the tables, kept until `close`."""

    @classmethod
    def read(cls, spark: SparkSession, path: str) -> Ledger:
        """Return the ledger that a finished run wrote into ``path``.

        Raises:
            InputRefused: the folder is not a finished result, its contract version is not
                supported, or a table is missing or differs from what its run wrote.
        """
        folder = str(path).rstrip("/")
        written = run_folder(spark, folder)
        counted_rows(written, read_version(written), LEDGER_TABLES)
        try:
            tables: dict[str, Any] = {
                name: spark.read.schema(table.ddl).parquet(f"{folder}/{name}")
                for name, table in LEDGER_TABLES.items()
            }
            return cls(**tables)
        except AnalysisException as error:
            first_line = str(error).strip().splitlines()[0]
            raise InputRefused(f"{folder} lacks a table of the ledger: {first_line}") from error

    def frames(self) -> dict[str, DataFrame]:
        """Return the existing DataFrames by table name, in the contract's order."""
        frames = {name: getattr(self, name) for name in LEDGER_TABLES}
        return {n: frame for n, frame in frames.items() if not isinstance(frame, _NotChosen)}

    def close(self) -> None:
        """Release the kept rows."""
        for frame in self.kept:
            frame.unpersist()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class _NotChosen:
    """Stands for a table that was not chosen."""

    def __init__(self, name: str, chosen: Sequence[str]) -> None:
        self._error = f"{name} is not among the tables of this simulation: {', '.join(chosen)}"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # the object itself is checked
            raise AttributeError(name)
        raise UsageError(self._error)


_TABLES = {**LEDGER_TABLES, REPLAYED.name: REPLAYED}


def simulate(
    inputs: InputTables,
    options: SimulationOptions | None = None,
    *,
    state: str | None = None,
    tables: Sequence[str] | None = None,
) -> Ledger:
    """Replay every group of the input in any session (notebook, Connect).

    The call checks the rows in one job; the first use of a table computes all tables in another.
    Checked rows and the rows of all tables are kept in packed form until `Ledger.close` or the end
    of ``with simulate(...) as ledger:``.

    Args:
        inputs: The input tables.
        options: See `SimulationOptions`.
        state: Path or URI of the output of simulate, ingest or audit. The simulation begins at that
            run's end, and its tables have only rows that begin later.
        tables: The tables to compute besides ``rejected``; None for those in the options.

    Raises:
        UsageError: The engine is unknown, or a strategy text does not parse.
        InputRefused: An input lacks columns, or has no events, no group or too many bad rows.
            Events of missing members appear only in ``rejected``.
    """
    options = options or SimulationOptions()
    if tables is not None:
        options = replace(options, tables=tables)
    check_options(options)
    names = chosen_tables(options)
    if state is not None:
        session = inputs.cluster_events.sparkSession
        inputs = with_state(session, inputs, state_folder(run_folder(session, state)))
    with ExitStack() as released:
        checked = check_and_count(inputs, options.max_queue_nums, (interests_of,))
        released.callback(checked.close)
        checked.refuse(options.bad_rows)
        refuse_no_consumer(checked.stats(Interests), checked.rejections.complaints)
        refuse_no_group(options.group, checked.stats(Interests))
        runtime = SparkRuntime(checked.chunks.sparkSession)
        rows, work = ledger_tasks(runtime, checked, options, (*names, REPLAYED.name))
        made = kept_tables(rows.frame, rows.work(work), LedgerFacts, _TABLES)
        released.pop_all()
    frames: dict[str, Any] = {
        name: made.rows(name) if name in names else _NotChosen(name, names)
        for name in LEDGER_TABLES
    }
    return Ledger(
        **frames,
        replayed=made.rows(REPLAYED.name),
        kept=(made.chunks, checked.chunks),
    )

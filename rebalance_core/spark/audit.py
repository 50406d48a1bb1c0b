"""The tables of an audit as frames, and the audit for callers with a session."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from rebalance_core.checks.conform import unknown_columns
from rebalance_core.contracts import INPUT_TABLES, REJECTED
from rebalance_core.contracts.propagation import PROPAGATION
from rebalance_core.engine.options import LedgerConfig, SimulationOptions
from rebalance_core.ingest.assumptions import Assumptions
from rebalance_core.ingest.collection import Collection
from rebalance_core.process import audit
from rebalance_core.process.audited import AuditWritten
from rebalance_core.process.runtime import StatsOf
from rebalance_core.process.stage_rows import StageRows
from rebalance_core.spark.checks import CheckedFrames, check_and_count
from rebalance_core.spark.ingest import ingested_tables
from rebalance_core.spark.read_tables import (
    READ_TABLES,
    InputTables,
    observed,
    read_observed,
    stored_tables,
)
from rebalance_core.spark.runtime import SparkRuntime
from rebalance_core.spark.sources import Source, read_written, refuse_changed, source_of
from rebalance_core.storage.place import object_store


@dataclass(frozen=True, eq=False)
class AuditFrames:
    """The tables of an audit, as read; lazy.

    Attributes:
        history: the input of its simulation.
        seen: the existing observed tables, ingest's findings and ``propagation``, by name.
        rejected: rows of ``rejected`` from an ingest; None without an ingest.
        stages: receives the row counts of the check, as in `SparkRuntime`.
    """

    history: InputTables
    seen: Mapping[str, Source]
    rejected: DataFrame | None = None
    stages: list[StageRows] | None = None

    @property
    def state_end_ms(self) -> int | None:
        """The end of the opening state, as `Inputs`."""
        return self.history.state_end_ms

    def sources(self) -> dict[str, Source]:
        """Return all sources by name."""
        return {**self.history.sources(), **self.seen}

    @contextmanager
    def checked(
        self,
        stats_of: tuple[StatsOf, ...],
        max_queue_nums: int,
        warn: Callable[[str], object] | None,
    ) -> Iterator[CheckedFrames]:
        """Check all tables in one job, and warn about unknown columns in the history."""
        counted = check_and_count(self, max_queue_nums, stats_of, stages=self.stages)
        with closing(counted) as checked:
            for name, columns in checked.unknown.items():
                if warn is not None and name in INPUT_TABLES:
                    warn(unknown_columns(name, columns))
            yield checked

    def with_propagation(self, folder: str) -> AuditFrames:
        """Return these tables together with those that `propagate` wrote into a folder."""
        session = self.history.cluster_events.sparkSession
        refuse_changed(session, folder, [PROPAGATION.name])
        source = source_of(PROPAGATION, read_written(session, folder, PROPAGATION.name))
        return replace(self, seen={**self.seen, PROPAGATION.name: source})


def read_inputs(session: SparkSession, folder: str) -> AuditFrames:
    """Return the tables in a folder, by name.

    Raises:
        InputRefused: a table lacks columns, appears twice or is not readable.
    """
    return AuditFrames(InputTables.read(session, folder), read_observed(session, folder))


def read_ingested(session: SparkSession, folder: str) -> AuditFrames:
    """Return the tables that `ingest` wrote into a folder."""
    rejected, store = read_written(session, folder, REJECTED.name), object_store(folder)
    if store is None:
        return replace(read_inputs(session, folder), rejected=rejected)
    seen = stored_tables(session, store, READ_TABLES)
    return AuditFrames(InputTables.read_stored(session, store), seen, rejected)


def unwritten_inputs(
    session: SparkSession, collection: Collection, assumed: Assumptions, kept: ExitStack
) -> AuditFrames:
    """Make the input tables of a collection as an ingest does; ``kept`` releases them at the
    end.
    """
    tables = kept.enter_context(ingested_tables(session, collection, assumed))
    history: dict[str, Any] = {name: tables[name] for name in INPUT_TABLES}
    return AuditFrames(InputTables(**history), observed(tables))


def audit_and_write(
    session: SparkSession,
    inputs: AuditFrames,
    output: str,
    options: SimulationOptions | None = None,
    config: LedgerConfig | None = None,
    **keywords: Any,
) -> AuditWritten:
    """Audit and write; the keywords are those of `process.audit.audit_and_write`."""
    runtime = SparkRuntime(session)
    return audit.audit_and_write(inputs, output, options, config, runtime=runtime, **keywords)

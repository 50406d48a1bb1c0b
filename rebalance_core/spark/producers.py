"""Producers on Spark: `simulate` for a model, `replay` for recorded results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from rebalance_core.checks.packed_rows import bucket_of, by_bucket
from rebalance_core.checks.row_checks import Rejections
from rebalance_core.checks.row_limits import BadRowLimits, RowCounts
from rebalance_core.contracts import ALL_TABLES, REJECTED
from rebalance_core.contracts.producers import (
    BROKER_ISOLATIONS,
    PRODUCER_WRITTEN,
    PUBLISH_CHOICES,
    SEND_RESULTS,
)
from rebalance_core.engine.options import RowForecast
from rebalance_core.engine.table_writer import Written
from rebalance_core.model.clients import Version
from rebalance_core.process.producers import (
    EVENTS,
    brokers_of,
    clients_of,
    forecast_of,
    refuse_results,
)
from rebalance_core.process.runtime import TableRows
from rebalance_core.producers.answers import (
    PRODUCERS_PER_PART,
    TALLIES,
    added_up,
    answer_tables,
    simulated_parts,
)
from rebalance_core.producers.model import ProducerModel, Variant, variants_of
from rebalance_core.producers.results import (
    CLIENT,
    ResultsOptions,
    recorded_answers,
    replayed_parts,
)
from rebalance_core.spark.checks import check_and_count
from rebalance_core.spark.read_tables import read_table
from rebalance_core.spark.routed_rows import routed_rows, routed_tables
from rebalance_core.spark.sources import GivenTables, task_count
from rebalance_core.spark.task_tables import KeptTables, kept_tables, task_tables

# What tasks tell the driver of the producers whose rows they made.

DETAILED = (PUBLISH_CHOICES.name, BROKER_ISOLATIONS.name)
"""The tables that tasks write."""


@dataclass(slots=True)
class ProducerStats:
    """Counts of some producers.

    Attributes:
        tallies: Rows of `TALLIES`, one a key.
        rejected: What is wrong with rows of ``rejected``.
        refused: Rows of ``rejected`` that the replay itself refused.
    """

    tallies: pa.Table = field(default_factory=TALLIES.arrow_schema().empty_table)
    rejected: Rejections = field(default_factory=Rejections)
    refused: int = 0

    def merge(self, other: ProducerStats) -> None:
        """Add the counts of other producers."""
        self.tallies = added_up(pa.concat_tables([self.tallies, other.tallies]))
        self.rejected.merge(other.rejected)
        self.refused += other.refused

    def counted(self, parts: Mapping[str, pa.Table]) -> TableRows:
        """The rows of parts, once they are counted."""
        for name, rows in parts.items():
            if name == TALLIES.name:
                self.tallies = added_up(pa.concat_tables([self.tallies, rows]))
                continue
            if name == REJECTED.name:
                self.rejected.add(rows)
            yield from ((name, batch) for batch in rows.to_batches())


# A model of producers simulated on Spark: producers by number, spread over the tasks.


def simulate_and_write(
    session: SparkSession,
    model: ProducerModel,
    versions: Sequence[Version],
    output: str,
    *,
    partitions: int | None = None,
    before_writing: Callable[[], object] | None = None,
) -> Written:
    """Simulate a model and write its tables; the rows are those of the run in a process.

    A producer's rows depend on the model and its number only, so partitions change nothing.

    Args:
        session: Any session.
        model: What to simulate.
        versions: To compare with the groups' own.
        output: Path or URI of a folder, which gets the tables; none of them may be there.
        partitions: Tasks; None: Spark's default parallelism.
        before_writing: Called before the first table is written.

    Raises:
        OutputExists: A table is in the folder already.
    """
    if before_writing is not None:
        before_writing()
    variants = variants_of(model, versions)
    numbers = session.range(0, model.producers, 1, partitions)
    with task_tables(session, output, (*PRODUCER_WRITTEN, REJECTED.name)) as tables:
        facts = tables.make(numbers, _SimulateTask(model, variants), ProducerStats, DETAILED)
        answers = answer_tables(model, variants, facts.tallies)
        nothing = {REJECTED.name: REJECTED.arrow_schema().empty_table()}
        for name, rows in (answers | nothing).items():
            tables.add(name, rows)
        return Written(tables.finish(), answers)


@dataclass(frozen=True, slots=True)
class _SimulateTask:
    """`Work` of `task_tables`: the rows of some producers; its facts are a `ProducerStats`."""

    model: ProducerModel
    variants: Mapping[str, Sequence[Variant]]

    def __call__(self, batches: Iterable[pa.RecordBatch], facts: ProducerStats) -> TableRows:
        for numbers in (batch.column(0).to_pylist() for batch in batches):
            for begin in range(0, len(numbers), PRODUCERS_PER_PART):
                some = numbers[begin : begin + PRODUCERS_PER_PART]
                yield from facts.counted(simulated_parts(self.model, self.variants, some))


# Recorded results of producers replayed on Spark, client by client.

BrokerNames = Mapping[str, frozenset[str]]


def read_results(
    session: SparkSession, paths: Mapping[str, str], input_format: str | None = None
) -> GivenTables:
    """``send_results`` and, if its path is given, ``cluster_events``; lazy."""
    return GivenTables(
        {
            name: read_table(session, ALL_TABLES[name], path, input_format)
            for name, path in paths.items()
        }
    )


def replay_and_write(
    session: SparkSession,
    inputs: GivenTables,
    options: ResultsOptions,
    limits: BadRowLimits,
    output: str,
    *,
    before_writing: Callable[[], object] | None = None,
    warn: Callable[[str], object] | None = None,
) -> Written:
    """Write what producers chose and avoided; the rows are those of the run in a process.

    Args:
        session: Any session.
        inputs: As of `read_results`.
        options: What to assume of the producers.
        limits: How many rows may be bad.
        output: Path or URI of a folder, which gets the tables; none of them may be there.
        before_writing: Called before the first table is written.
        warn: Gets a text for each table with unknown columns, which are not read.

    Raises:
        InputRefused: No row, or too many bad ones.
        OutputExists: A table is in the folder already.
    """
    with _replayed(session, inputs, options, warn) as (kept, counts, facts):
        refuse_results(counts, limits, facts.rejected)
        if before_writing is not None:
            before_writing()
        answers = recorded_answers(facts.tallies)
        with task_tables(session, output, (*PRODUCER_WRITTEN, REJECTED.name)) as tables:
            kept.write(tables, (*DETAILED, REJECTED.name))
            for name, rows in answers.items():
                tables.add(name, rows)
            written = tables.finish()
    return Written(written, answers, facts.rejected.codes, counts)


def replay_forecast(
    session: SparkSession,
    inputs: GivenTables,
    options: ResultsOptions,
    limits: BadRowLimits,
    warn: Callable[[str], object] | None = None,
) -> RowForecast:
    """Foretell how `replay_and_write` would end for its input; writes nothing."""
    with _replayed(session, inputs, options, warn) as (_, counts, facts):
        return forecast_of(counts, facts.rejected, limits)


@contextmanager
def _replayed(
    session: SparkSession,
    inputs: GivenTables,
    options: ResultsOptions,
    warn: Callable[[str], object] | None,
) -> Iterator[tuple[KeptTables[ProducerStats], Mapping[str, RowCounts], ProducerStats]]:
    """Give the rows that tasks made of the checked results, the counts, and what tasks counted.

    What is kept meanwhile is released.
    """
    with ExitStack() as released:
        checked = check_and_count(inputs, stats_of=(_brokers_seen,), warn=warn)
        released.callback(checked.close)
        brokers = checked.stats(_BrokersSeen).brokers if EVENTS in checked.tables else None
        counts = dict(checked.counts)
        of_results = counts[SEND_RESULTS.name]
        tasks = task_count(of_results.rows, session)
        rows = routed_rows(checked, _ClientRouting(tasks))
        kept = kept_tables(rows, _ReplayTask(options, brokers), ProducerStats)
        released.callback(kept.close)
        facts = kept.facts()
        counts[SEND_RESULTS.name] = replace(of_results, bad=of_results.bad + facts.refused)
        yield kept, counts, facts


@dataclass(frozen=True)
class _BrokersSeen:
    """Every broker that an event names, by cluster."""

    brokers: BrokerNames

    @classmethod
    def merged(cls, parts: Iterable[Self]) -> Self:
        brokers: dict[str, frozenset[str]] = {}
        for part in parts:
            for cluster, names in part.brokers.items():
                brokers[cluster] = brokers.get(cluster, frozenset()) | names
        return cls(brokers)


def _brokers_seen(table: str, rows: pa.Table) -> _BrokersSeen | None:
    return _BrokersSeen(brokers_of(rows)) if table == EVENTS else None


@dataclass(frozen=True)
class _ClientRouting:
    """The bucket of each result is that of its client."""

    buckets: int

    def split(self, table: str, rows: pa.Table) -> Iterator[tuple[int, pa.Table]]:
        if table == SEND_RESULTS.name:
            clients = zip(*(rows[name].to_pylist() for name in CLIENT), strict=True)
            buckets = np.array([bucket_of(client, self.buckets) for client in clients])
            yield from by_bucket(rows, buckets)


@dataclass(frozen=True, slots=True)
class _ReplayTask:
    """`Work` of `task_tables`: the rows of some clients; its facts are a `ProducerStats`."""

    options: ResultsOptions
    brokers: BrokerNames | None

    def __call__(self, batches: Iterable[pa.RecordBatch], facts: ProducerStats) -> TableRows:
        for _, tables in routed_tables(batches):
            results = tables.pop(SEND_RESULTS.name, None)
            yield from facts.counted(tables)
            if results is not None:
                parts = replayed_parts(clients_of(results), self.options, self.brokers)
                facts.refused += len(parts[REJECTED.name])
                yield from facts.counted(parts)

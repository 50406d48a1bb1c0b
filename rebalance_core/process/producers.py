"""The producers job: simulate a model, or replay recorded send results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa

from rebalance_core.checks.conform import with_text
from rebalance_core.checks.packed_rows import bucket_of, by_bucket
from rebalance_core.checks.rejections import Rejections
from rebalance_core.checks.row_counts import RowCounts
from rebalance_core.checks.row_limits import BadRowLimits, refuse_bad_rows
from rebalance_core.contracts import ALL_TABLES, REJECTED
from rebalance_core.contracts.producers import (
    BROKER_ISOLATIONS,
    PRODUCER_WRITTEN,
    PUBLISH_CHOICES,
    SEND_RESULTS,
)
from rebalance_core.contracts.table import RAW, SOURCE
from rebalance_core.engine.options import RowForecast
from rebalance_core.engine.table_writer import Written
from rebalance_core.model.errors import InputRefused
from rebalance_core.model.versions import Version
from rebalance_core.process.runtime import HERE, Kept, Part, Runtime, TableRows
from rebalance_core.producers import results
from rebalance_core.producers.answers import (
    PRODUCERS_PER_PART,
    TALLIES,
    added_up,
    answer_tables,
    simulated_parts,
)
from rebalance_core.producers.model import BOTH_GENERATIONS, ProducerModel, Variant, variants_of
from rebalance_core.producers.results import ResultsOptions
from rebalance_core.storage.place import Location

WRITTEN = (*PRODUCER_WRITTEN, REJECTED.name)

DETAILED = (PUBLISH_CHOICES.name, BROKER_ISOLATIONS.name)
"""The tables that tasks compute."""


@dataclass(slots=True)
class ProducerStats:
    """Counts over the producers of a task.

    Attributes:
        tallies: Rows of `TALLIES`, one per key.
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
        """Count the rows of each table, then yield them."""
        for name, rows in parts.items():
            if name == TALLIES.name:
                self.tallies = added_up(pa.concat_tables([self.tallies, rows]))
                continue
            if name == REJECTED.name:
                self.rejected.add(rows)
            yield from ((name, batch) for batch in rows.to_batches())


Progress = Callable[[int, int], object]


def simulate_producers(
    model: ProducerModel, versions: Sequence[Version] = BOTH_GENERATIONS
) -> dict[str, pa.Table]:
    """Return the tables of a model, by name (`contracts.producers.PRODUCER_WRITTEN`), in memory.

    ``publish_choices``, ``broker_isolations`` and ``queue_rates`` are for the groups in the model;
    ``producer_outcomes`` and ``producer_shares`` compare every version, without and with fault
    tolerance. The cost depends on changes of state, not on sends. The result is deterministic.

    Args:
        model: From `planning.producer_model.read_model`, or built by hand.
        versions: Versions to compare with the groups' own.
    """
    made: dict[str, list[pa.RecordBatch]] = {name: [] for name in DETAILED}
    variants, facts = variants_of(model, versions), ProducerStats()
    for name, rows in _SimulateTask(model, variants)(HERE.numbers(model.producers), facts):
        made[name].append(rows)
    tables = answer_tables(model, variants, facts.tallies)
    for name, batches in made.items():
        tables[name] = pa.Table.from_batches(batches, ALL_TABLES[name].arrow_schema())
    return {name: tables[name] for name in PRODUCER_WRITTEN}


def simulate_and_write(
    model: ProducerModel,
    versions: Sequence[Version],
    output: Location,
    *,
    before_writing: Callable[[], object] | None = None,
    progress: Progress | None = None,
    runtime: Runtime = HERE,
) -> Written[dict[str, pa.Table]]:
    """Simulate a model and write its tables. Memory: the rows of some producers at a time.

    A producer's rows depend only on the model and its number, not on the division into tasks.

    Args:
        model: What to simulate.
        versions: As in `simulate_producers`.
        output: The folder for the tables (`place_of`); none of them may exist in it.
        before_writing: Called before the first table is written.
        progress: Called with the number of finished producers and the total; only in-process.
        runtime: Where the job runs.

    Raises:
        OutputExists: A table already exists in the folder.
    """
    if before_writing is not None:
        before_writing()
    variants = variants_of(model, versions)
    with runtime.tables(output, WRITTEN) as tables:
        work = _SimulateTask(model, variants, progress)
        facts = tables.write(runtime.numbers(model.producers), work, ProducerStats, DETAILED)
        answers = answer_tables(model, variants, facts.tallies)
        for name, rows in answers.items():
            tables.add(name, rows)
        return Written(tables.finish(), answers)


@dataclass(frozen=True, slots=True)
class _SimulateTask:
    """`Work` that makes the rows of the producers with the given numbers; its facts are a
    `ProducerStats`.
    """

    VERB: ClassVar[str] = "simulate"
    model: ProducerModel
    variants: Mapping[str, Sequence[Variant]]
    progress: Progress | None = None

    def __call__(self, producers: Iterable[Part], facts: ProducerStats) -> TableRows:
        numbers, done = (number for number, _ in producers), 0
        while some := list(islice(numbers, PRODUCERS_PER_PART)):
            yield from facts.counted(simulated_parts(self.model, self.variants, some))
            done += len(some)
            if self.progress is not None:
                self.progress(done, self.model.producers)


EVENTS = "cluster_events"
NO_RESULT = f"{SEND_RESULTS.name} holds no row; there is nothing to replay"
BrokerNames = Mapping[str, frozenset[str]]


def replay_and_write(
    inputs: Any,
    options: ResultsOptions,
    limits: BadRowLimits,
    output: Location,
    *,
    before_writing: Callable[[], object] | None = None,
    warn: Callable[[str], object] | None = None,
    runtime: Runtime = HERE,
) -> Written[dict[str, pa.Table]]:
    """Write the choices and avoided queues of producers. Memory: in-process, the input and all
    tables.

    Args:
        inputs: ``send_results`` and, if it exists, ``cluster_events``, which names the brokers, as
            `Runtime.read` returns them.
        options: The assumptions about the producers.
        limits: The limits on bad rows.
        output: The folder for the tables (`place_of`); none of them may exist in it.
        before_writing: Called before the first table is written.
        warn: Receives a message for each table with unknown columns, which are ignored.
        runtime: Where the job runs.

    Raises:
        InputRefused: There are no rows, too many rows are bad, or columns are missing.
        OutputExists: A table already exists in the folder.
    """
    with _replayed(runtime, inputs, options, warn) as (kept, counts, facts):
        refuse_results(counts, limits, facts.rejected)
        if before_writing is not None:
            before_writing()
        answers = results.recorded_answers(facts.tallies)
        with runtime.tables(output, WRITTEN) as tables:
            kept.write(tables, (*DETAILED, REJECTED.name))
            for name, rows in answers.items():
                tables.add(name, rows)
            written = tables.finish()
    return Written(written, answers, facts.rejected.codes, counts)


def replay_forecast(
    inputs: Any,
    options: ResultsOptions,
    limits: BadRowLimits,
    warn: Callable[[str], object] | None = None,
    *,
    runtime: Runtime = HERE,
) -> RowForecast:
    """Return how `replay_and_write` would judge the rows of its input, without writing."""
    with _replayed(runtime, inputs, options, warn) as (_, counts, facts):
        refused = None
        try:
            refuse_results(counts, limits, facts.rejected)
        except InputRefused as refusal:
            refused = refusal
        return RowForecast(counts, facts.rejected.complaints(), refused)


def refuse_results(
    counts: Mapping[str, RowCounts], limits: BadRowLimits, rejections: Rejections
) -> None:
    """Raise `InputRefused` if there is no result or too many rows are bad."""
    if not counts[SEND_RESULTS.name].rows:
        raise InputRefused(NO_RESULT)
    refuse_bad_rows(counts, limits, rejections.complaints)


@contextmanager
def _replayed(
    runtime: Runtime,
    inputs: Any,
    options: ResultsOptions,
    warn: Callable[[str], object] | None,
) -> Iterator[tuple[Kept[ProducerStats], Mapping[str, RowCounts], ProducerStats]]:
    """Yield the rows that tasks made from the checked results, the counts, and the tasks'
    counts.
    """
    with runtime.check(inputs, (_brokers_seen,), warn=warn) as checked:
        brokers = checked.stats(_BrokersSeen).brokers if EVENTS in checked.tables else None
        of_results = checked.counts[SEND_RESULTS.name]
        tasks = runtime.task_count(of_results.rows)
        rows = runtime.deal(checked, _ClientRouting(tasks))
        with runtime.keep(rows, _ReplayTask(options, brokers), ProducerStats) as kept:
            facts = kept.facts()
            of_results = replace(of_results, bad=of_results.bad + facts.refused)
            yield kept, {**checked.counts, SEND_RESULTS.name: of_results}, facts


@dataclass(frozen=True)
class _BrokersSeen:
    """All brokers named in events, by cluster."""

    brokers: BrokerNames

    @classmethod
    def merged(cls, parts: Iterable[Self]) -> Self:
        brokers: dict[str, frozenset[str]] = {}
        for part in parts:
            for cluster, names in part.brokers.items():
                brokers[cluster] = brokers.get(cluster, frozenset()) | names
        return cls(brokers)


def _brokers_seen(table: str, rows: pa.Table) -> _BrokersSeen | None:
    if table != EVENTS:
        return None
    named = rows.filter(rows["broker_name"].is_valid())
    pairs = named.group_by(["cluster", "broker_name"]).aggregate([]).to_pylist()
    brokers: dict[str, set[str]] = {}
    for pair in pairs:
        brokers.setdefault(pair["cluster"], set()).add(pair["broker_name"])
    return _BrokersSeen({cluster: frozenset(names) for cluster, names in brokers.items()})


@dataclass(frozen=True)
class _ClientRouting:
    """Routes each result to the bucket of its client."""

    buckets: int

    @property
    def units(self) -> int:
        return 0  # clients are counted in the tasks alone

    def split(self, table: str, rows: pa.Table) -> Iterator[tuple[int, pa.Table]]:
        if table == SEND_RESULTS.name:
            clients = zip(*(rows[name].to_pylist() for name in results.CLIENT), strict=True)
            buckets = np.array([bucket_of(client, self.buckets) for client in clients])
            yield from by_bucket(rows, buckets)


@dataclass(frozen=True, slots=True)
class _ReplayTask:
    """`Work` that makes the rows of some clients; its facts are a `ProducerStats`."""

    VERB: ClassVar[str] = "replay"
    options: ResultsOptions
    brokers: BrokerNames | None

    def __call__(self, parts: Iterable[Part], facts: ProducerStats) -> TableRows:
        for _, tables in parts:
            send_results = tables.pop(SEND_RESULTS.name, None)
            rejected = {name: tables[name] for name in tables if name == REJECTED.name}
            yield from facts.counted(rejected)
            if send_results is not None:
                made = results.replayed_parts(_clients_of(send_results), self.options, self.brokers)
                facts.refused += len(made[REJECTED.name])
                yield from facts.counted(made)


def _clients_of(rows: pa.Table) -> Iterator[list[dict[str, Any]]]:
    """Yield the used rows of ``send_results``, client by client."""
    clients: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    rows = with_text(SEND_RESULTS, rows)
    for row in rows.select([*SEND_RESULTS.column_names, SOURCE, RAW]).to_pylist():
        clients.setdefault(tuple(row[name] for name in results.CLIENT), []).append(row)
    yield from clients.values()

"""Producers in this process: `simulate` for a model, `replay` for recorded results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from rebalance_core.checks.conform import with_text
from rebalance_core.checks.input_tables import read_table
from rebalance_core.checks.row_checks import Rejections, check_table
from rebalance_core.checks.row_limits import BadRowLimits, RowCounts, refuse_bad_rows
from rebalance_core.contracts import ALL_TABLES, REJECTED
from rebalance_core.contracts.producers import PRODUCER_WRITTEN, SEND_RESULTS
from rebalance_core.contracts.table import RAW, SOURCE
from rebalance_core.engine.options import RowForecast
from rebalance_core.engine.table_writer import TableWriters, Written
from rebalance_core.model.errors import InputRefused
from rebalance_core.model.versions import Version
from rebalance_core.producers.answers import (
    PRODUCERS_PER_PART,
    TALLIES,
    added_up,
    answer_tables,
    simulated_parts,
)
from rebalance_core.producers.model import BOTH_GENERATIONS, ProducerModel, variants_of
from rebalance_core.producers.results import (
    CLIENT,
    ResultsOptions,
    recorded_answers,
    replayed_parts,
)
from rebalance_core.storage.place import Location

# A model of producers simulated in this process.

Progress = Callable[[int, int], object]


def simulate_producers(
    model: ProducerModel, versions: Sequence[Version] = BOTH_GENERATIONS
) -> dict[str, pa.Table]:
    """The tables of a model, by name (`contracts.producers.PRODUCER_WRITTEN`), in memory.

    ``publish_choices``, ``broker_isolations`` and ``queue_rates`` are of the groups as the model
    has them; ``producer_outcomes`` and ``producer_shares`` compare every version, without and with
    fault tolerance. Cost: changes of state, not sends. Same model, same rows.

    Args:
        model: `planning.producer_model.file.read_model`, or made by hand.
        versions: To compare with the groups' own.
    """
    tables: dict[str, list[pa.Table]] = {}
    for part in _parts(model, versions, None):
        for name, rows in part.items():
            tables.setdefault(name, []).append(rows)
    made = {name: pa.concat_tables(parts) for name, parts in tables.items()}
    answers = answer_tables(model, variants_of(model, versions), made.pop(TALLIES.name))
    return {name: (made | answers)[name] for name in PRODUCER_WRITTEN}


def simulate_and_write(
    model: ProducerModel,
    versions: Sequence[Version],
    output: Location,
    *,
    before_writing: Callable[[], object] | None = None,
    progress: Progress | None = None,
) -> Written:
    """Simulate a model and write its tables. Memory: the rows of some producers.

    Args:
        model: What to simulate.
        versions: As of `simulate_producers`.
        output: A folder (`place_of`), which gets the tables; none of them may be there.
        before_writing: Called before the first table is written.
        progress: Told how many producers are done, of how many.

    Raises:
        OutputExists: A table is in the folder already.
    """
    if before_writing is not None:
        before_writing()
    tallies = TALLIES.arrow_schema().empty_table()
    with TableWriters(output, (*PRODUCER_WRITTEN, REJECTED.name)) as writers:
        for part in _parts(model, versions, progress):
            tallies = added_up(pa.concat_tables([tallies, part.pop(TALLIES.name)]))
            _write(writers, part)
        answers = answer_tables(model, variants_of(model, versions), tallies)
        _write(writers, answers)
    return Written(writers.written(), answers)


def _parts(
    model: ProducerModel, versions: Sequence[Version], progress: Progress | None
) -> Iterator[dict[str, pa.Table]]:
    variants = variants_of(model, versions)
    for begin in range(0, model.producers, PRODUCERS_PER_PART):
        numbers = range(begin, min(begin + PRODUCERS_PER_PART, model.producers))
        yield simulated_parts(model, variants, numbers)
        if progress is not None:
            progress(numbers.stop, model.producers)


def _write(writers: TableWriters, tables: dict[str, pa.Table]) -> None:
    for name, rows in tables.items():
        for batch in rows.to_batches():
            writers.write(name, batch)


# Recorded results of producers replayed in this process.

EVENTS = "cluster_events"
NO_RESULT = f"{SEND_RESULTS.name} holds no row; there is nothing to replay"


@dataclass(frozen=True, eq=False)
class Replayed:
    """The tables of recorded results, and what was wrong with the rows."""

    tables: Mapping[str, pa.Table]
    counts: Mapping[str, RowCounts]

    @cached_property
    def rejections(self) -> Rejections:
        """What is wrong with the rejected rows."""
        return Rejections.of(self.tables[REJECTED.name])


def read_results(
    paths: Mapping[str, str], input_format: str | None = None
) -> tuple[dict[str, pa.Table], dict[str, list[str]]]:
    """``send_results`` and, if its path is given, ``cluster_events``; and unknown columns.

    Raises:
        InputRefused: Nothing is there, columns are missing, a file cannot be read.
    """
    read = {name: read_table(ALL_TABLES[name], path, input_format) for name, path in paths.items()}
    tables = {name: rows for name, (rows, _) in read.items()}
    return tables, {name: unknown for name, (_, unknown) in read.items() if unknown}


def replay_producers(
    inputs: Mapping[str, pa.Table], options: ResultsOptions, limits: BadRowLimits | None = None
) -> Replayed:
    """What producers chose and avoided, from recorded results.

    Args:
        inputs: ``send_results`` and, if known, ``cluster_events``, which name the brokers.
        options: What to assume of the producers.
        limits: How many rows may be bad.

    Raises:
        InputRefused: No row, too many bad ones, or columns are missing.
    """
    replayed = _replayed(inputs, options)
    refuse_results(replayed.counts, limits or BadRowLimits(), replayed.rejections)
    return replayed


def replay_and_write(
    inputs: Mapping[str, pa.Table],
    options: ResultsOptions,
    limits: BadRowLimits,
    output: Location,
    *,
    before_writing: Callable[[], object] | None = None,
) -> Written:
    """The same, written. Memory: the input and all tables.

    Raises:
        InputRefused: As of `replay_producers`.
        OutputExists: A table is in the folder already.
    """
    replayed = replay_producers(inputs, options, limits)
    if before_writing is not None:
        before_writing()
    with TableWriters(output, (*PRODUCER_WRITTEN, REJECTED.name)) as writers:
        for name, rows in replayed.tables.items():
            for batch in rows.to_batches():
                writers.write(name, batch)
    return Written(
        writers.written(),
        replayed.tables,
        replayed.rejections.codes,
        replayed.counts,
    )


def replay_forecast(
    inputs: Mapping[str, pa.Table], options: ResultsOptions, limits: BadRowLimits
) -> RowForecast:
    """How `replay_and_write` would end for the rows of its input; writes nothing."""
    replayed = _replayed(inputs, options)
    return forecast_of(replayed.counts, replayed.rejections, limits)


def forecast_of(
    counts: Mapping[str, RowCounts], rejections: Rejections, limits: BadRowLimits
) -> RowForecast:
    """How a run ends with so many rows, so many of them bad, wherever it takes place."""
    refused = None
    try:
        refuse_results(counts, limits, rejections)
    except InputRefused as refusal:
        refused = refusal
    return RowForecast(counts, rejections.complaints(), refused)


def refuse_results(
    counts: Mapping[str, RowCounts], limits: BadRowLimits, rejections: Rejections
) -> None:
    """Raise `InputRefused` where there is no result, or too many rows are bad."""
    if not counts[SEND_RESULTS.name].rows:
        raise InputRefused(NO_RESULT)
    refuse_bad_rows(counts, limits, rejections.complaints)


def _replayed(inputs: Mapping[str, pa.Table], options: ResultsOptions) -> Replayed:
    checked = {name: check_table(name, rows) for name, rows in inputs.items()}
    brokers = None
    if EVENTS in checked:
        brokers = brokers_of(checked[EVENTS].tables[EVENTS])
    good = checked[SEND_RESULTS.name].tables[SEND_RESULTS.name]
    parts = replayed_parts(clients_of(good), options, brokers)
    answers = recorded_answers(parts.pop(TALLIES.name))
    found = parts.pop(REJECTED.name)
    rejected = pa.concat_tables([*(one.rejected for one in checked.values()), found])
    counts = {name: one.counts[name] for name, one in checked.items()}
    of_results = counts[SEND_RESULTS.name]
    counts[SEND_RESULTS.name] = replace(of_results, bad=of_results.bad + len(found))
    tables = parts | answers | {REJECTED.name: rejected}
    return Replayed(tables, counts)


def brokers_of(events: pa.Table) -> dict[str, frozenset[str]]:
    """Every broker that an event names, by cluster."""
    named = events.filter(events["broker_name"].is_valid())
    pairs = named.group_by(["cluster", "broker_name"]).aggregate([]).to_pylist()
    brokers: dict[str, set[str]] = {}
    for pair in pairs:
        brokers.setdefault(pair["cluster"], set()).add(pair["broker_name"])
    return {cluster: frozenset(names) for cluster, names in brokers.items()}


def clients_of(rows: pa.Table) -> Iterator[list[dict[str, Any]]]:
    """The used rows of ``send_results``, client by client."""
    clients: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    rows = with_text(SEND_RESULTS, rows)
    for row in rows.select([*SEND_RESULTS.column_names, SOURCE, RAW]).to_pylist():
        clients.setdefault(tuple(row[name] for name in CLIENT), []).append(row)
    yield from clients.values()

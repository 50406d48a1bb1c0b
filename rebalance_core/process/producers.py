"""Producers in this process: `simulate` for a model, `replay` for recorded results."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from rebalance_core.checks.conform import with_text
from rebalance_core.checks.input_tables import ArrowTables, read_tables
from rebalance_core.checks.row_checks import Rejections, check_tables
from rebalance_core.checks.row_limits import BadRowLimits, RowCounts, refuse_bad_rows
from rebalance_core.contracts import REJECTED
from rebalance_core.contracts.producers import PRODUCER_WRITTEN, SEND_RESULTS
from rebalance_core.contracts.table import RAW, SOURCE
from rebalance_core.engine.options import RowForecast
from rebalance_core.engine.table_writer import TableWriters, Written
from rebalance_core.model.clients import Version
from rebalance_core.model.errors import InputRefused
from rebalance_core.producers import results
from rebalance_core.producers.answers import (
    PRODUCERS_PER_PART,
    TALLIES,
    added_up,
    answer_tables,
    simulated_parts,
)
from rebalance_core.producers.model import BOTH_GENERATIONS, ProducerModel, variants_of
from rebalance_core.producers.results import ResultsOptions
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
        model: `planning.producer_model.read_model`, or made by hand.
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
            writers.write_tables(part)
        answers = answer_tables(model, variants_of(model, versions), tallies)
        writers.write_tables(answers)
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
        """Issues of the rejected rows."""
        return Rejections.of(self.tables[REJECTED.name])


def read_results(paths: Mapping[str, str], input_format: str | None = None) -> ArrowTables:
    """``send_results`` and, if its path is given, ``cluster_events``, which names the brokers.

    Raises:
        InputRefused: Nothing is there, columns are missing, a file cannot be read.
    """
    return read_tables(paths, input_format)


def replay_and_write(
    inputs: ArrowTables,
    options: ResultsOptions,
    limits: BadRowLimits,
    output: Location,
    *,
    before_writing: Callable[[], object] | None = None,
    warn: Callable[[str], object] | None = None,
) -> Written:
    """Write what producers chose and avoided. Memory: the input and all tables.

    Args:
        inputs: As of `read_results`.
        options: What to assume of the producers.
        limits: How many rows may be bad.
        output: A folder (`place_of`), which gets the tables; none of them may be there.
        before_writing: Called before the first table is written.
        warn: Gets a text for each table with unknown columns, which are not read.

    Raises:
        InputRefused: No row, too many bad ones, or columns are missing.
        OutputExists: A table is in the folder already.
    """
    replayed = _replayed(inputs, options, warn)
    refuse_results(replayed.counts, limits, replayed.rejections)
    if before_writing is not None:
        before_writing()
    with TableWriters(output, (*PRODUCER_WRITTEN, REJECTED.name)) as writers:
        writers.write_tables(replayed.tables)
    codes = replayed.rejections.codes
    return Written(writers.written(), replayed.tables, codes, replayed.counts)


def replay_forecast(
    inputs: ArrowTables,
    options: ResultsOptions,
    limits: BadRowLimits,
    warn: Callable[[str], object] | None = None,
) -> RowForecast:
    """Return how `replay_and_write` would end for the rows of its input; writes nothing."""
    replayed = _replayed(inputs, options, warn)
    return forecast_of(replayed.counts, replayed.rejections, limits)


def forecast_of(
    counts: Mapping[str, RowCounts], rejections: Rejections, limits: BadRowLimits
) -> RowForecast:
    """Return how a run ends with so many rows, so many of them bad, wherever it takes place."""
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


def _replayed(
    inputs: ArrowTables, options: ResultsOptions, warn: Callable[[str], object] | None
) -> Replayed:
    checked = check_tables(inputs, warn=warn)
    brokers = brokers_of(checked.tables[EVENTS]) if EVENTS in checked.tables else None
    good = checked.tables[SEND_RESULTS.name]
    parts = results.replayed_parts(clients_of(good), options, brokers)
    answers = results.recorded_answers(parts.pop(TALLIES.name))
    found = parts.pop(REJECTED.name)
    of_results = checked.counts[SEND_RESULTS.name]
    of_results = replace(of_results, bad=of_results.bad + len(found))
    rejected = {REJECTED.name: pa.concat_tables([checked.rejected, found])}
    counts = {**checked.counts, SEND_RESULTS.name: of_results}
    return Replayed(parts | answers | rejected, counts)


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
        clients.setdefault(tuple(row[name] for name in results.CLIENT), []).append(row)
    yield from clients.values()

"""Recorded results of producers replayed in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from rebalance_core.checks.conform import with_text
from rebalance_core.checks.issue_arrays import issue_counts
from rebalance_core.checks.reading.tables import read_table
from rebalance_core.checks.row_checks import check_table, complaints
from rebalance_core.checks.row_counts import Complaint, RowCounts
from rebalance_core.checks.row_limits import BadRowLimits, refuse_bad_rows
from rebalance_core.contracts import ALL_TABLES, REJECTED
from rebalance_core.contracts.producers import PRODUCER_WRITTEN, SEND_RESULTS
from rebalance_core.contracts.table import RAW, SOURCE
from rebalance_core.engine.row_forecast import RowForecast
from rebalance_core.engine.table_writer import TableWriters
from rebalance_core.engine.written import ProducersWritten
from rebalance_core.model.errors import InputRefused
from rebalance_core.producers.results import (
    CLIENT,
    ResultsOptions,
    recorded_answers,
    replayed_parts,
)
from rebalance_core.producers.simulation.answers import TALLIES
from rebalance_core.storage.locations import Location

EVENTS = "cluster_events"
NO_RESULT = f"{SEND_RESULTS.name} holds no row; there is nothing to replay"


@dataclass(frozen=True, eq=False)
class Replayed:
    """The tables of recorded results, and what was wrong with the rows."""

    tables: Mapping[str, pa.Table]
    counts: Mapping[str, RowCounts]


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
    known = replayed.tables[REJECTED.name]
    refuse_results(replayed.counts, limits or BadRowLimits(), lambda: complaints(known))
    return replayed


def replay_and_write(
    inputs: Mapping[str, pa.Table],
    options: ResultsOptions,
    limits: BadRowLimits,
    output: Location,
    *,
    before_writing: Callable[[], object] | None = None,
) -> ProducersWritten:
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
    return ProducersWritten(
        writers.written(),
        replayed.tables,
        dict(sorted(issue_counts(replayed.tables[REJECTED.name]).items())),
        {name: count.rows for name, count in replayed.counts.items()},
    )


def replay_forecast(
    inputs: Mapping[str, pa.Table], options: ResultsOptions, limits: BadRowLimits
) -> RowForecast:
    """How `replay_and_write` would end for the rows of its input; writes nothing."""
    replayed = _replayed(inputs, options)
    return forecast_of(replayed.counts, complaints(replayed.tables[REJECTED.name]), limits)


def forecast_of(
    counts: Mapping[str, RowCounts], known: Sequence[Complaint], limits: BadRowLimits
) -> RowForecast:
    """How a run ends with so many rows, so many of them bad, wherever it takes place."""
    try:
        refuse_results(counts, limits, lambda: known)
    except InputRefused as refusal:
        return RowForecast(counts, known, refusal)
    return RowForecast(counts, known, None)


def refuse_results(
    counts: Mapping[str, RowCounts], limits: BadRowLimits, known: Callable[[], Sequence[Complaint]]
) -> None:
    """Raise `InputRefused` where there is no result, or too many rows are bad."""
    if not counts[SEND_RESULTS.name].rows:
        raise InputRefused(NO_RESULT)
    refuse_bad_rows(counts, limits, known)


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
    counts[SEND_RESULTS.name] = RowCounts(of_results.rows, of_results.bad + len(found))
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

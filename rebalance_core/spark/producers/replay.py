"""Recorded results of producers replayed on Spark, client by client."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from rebalance_core.checks.conform import with_text
from rebalance_core.checks.row_counts import RowCounts
from rebalance_core.checks.row_limits import BadRowLimits
from rebalance_core.contracts import ALL_TABLES, REJECTED
from rebalance_core.contracts.producers import BROKER_ISOLATIONS, PUBLISH_CHOICES, SEND_RESULTS
from rebalance_core.engine.row_forecast import RowForecast
from rebalance_core.engine.written import ProducersWritten
from rebalance_core.process.producers.replay import EVENTS, forecast_of, refuse_results
from rebalance_core.producers.results.answers import recorded_answers
from rebalance_core.producers.results.parts import CLIENT, ResultsOptions, replayed_parts
from rebalance_core.producers.simulation.tagged import TAGGED_DDL, tagged
from rebalance_core.spark.driver_rows import rows_of
from rebalance_core.spark.engine.summary import rejected_per_code
from rebalance_core.spark.producers.tables import of_kind, tallies_of, write_answers
from rebalance_core.spark.tables.check_rows import complaints, count_rows
from rebalance_core.spark.tables.quarantine import Quarantined, check
from rebalance_core.spark.tables.read import read_table
from rebalance_core.spark.tables.sources import Source
from rebalance_core.spark.tables.write import write_table

_DETAILED = (PUBLISH_CHOICES.name, BROKER_ISOLATIONS.name)


@dataclass(frozen=True, eq=False)
class _Replayed:
    rows: DataFrame
    rejected: DataFrame
    counts: Mapping[str, RowCounts]


def read_results(
    session: SparkSession, paths: Mapping[str, str], input_format: str | None = None
) -> dict[str, Source]:
    """``send_results`` and, if its path is given, ``cluster_events``; lazy."""
    return {
        name: read_table(session, ALL_TABLES[name], path, input_format)
        for name, path in paths.items()
    }


def replay_and_write(
    session: SparkSession,
    inputs: Mapping[str, Source],
    options: ResultsOptions,
    limits: BadRowLimits,
    output: str,
    *,
    before_writing: Callable[[], object] | None = None,
) -> ProducersWritten:
    """What producers chose and avoided; the rows are those of the run in a process.

    Args:
        session: Any session.
        inputs: As of `read_results`.
        options: What to assume of the producers.
        limits: How many rows may be bad.
        output: Path or URI of a folder, which gets the tables; none of them may be there.
        before_writing: Called before the first table is written.

    Raises:
        InputRefused: No row, or too many bad ones.
        OutputExists: A table is in the folder already.
    """
    folder = output.rstrip("/")
    with _replayed(inputs, options) as replayed:
        refuse_results(replayed.counts, limits, lambda: complaints(replayed.rejected))
        if before_writing is not None:
            before_writing()
        written = {
            name: write_table(of_kind(replayed.rows, name), folder, name) for name in _DETAILED
        }
        written[REJECTED.name] = write_table(replayed.rejected, folder, REJECTED.name)
        answers = recorded_answers(tallies_of(replayed.rows))
        codes = rejected_per_code(replayed.rejected)
        rows = {name: count.rows for name, count in replayed.counts.items()}
    written |= write_answers(session, answers, folder)
    return ProducersWritten(written, answers, codes, rows)


def replay_forecast(
    inputs: Mapping[str, Source], options: ResultsOptions, limits: BadRowLimits
) -> RowForecast:
    """How `replay_and_write` would end for the rows of its input; writes nothing."""
    with _replayed(inputs, options) as replayed:
        return forecast_of(replayed.counts, complaints(replayed.rejected), limits)


@contextmanager
def _replayed(inputs: Mapping[str, Source], options: ResultsOptions) -> Iterator[_Replayed]:
    """Checked, replayed and counted; what is kept meanwhile is released."""
    checked = check(inputs)
    kept = [checked.chunks.persist()]
    try:
        brokers = _brokers(checked.tables[EVENTS]) if EVENTS in checked.tables else None
        good = checked.tables[SEND_RESULTS.name]
        rows = good.groupBy(*CLIENT).applyInArrow(_task(options, brokers), TAGGED_DDL).persist()
        kept.append(rows)
        rejected = of_kind(rows, REJECTED.name).unionByName(checked.rejected)
        yield _Replayed(rows, rejected, _counts(checked, rejected))
    finally:
        for frame in kept:
            frame.unpersist()


def _counts(checked: Quarantined, rejected: DataFrame) -> dict[str, RowCounts]:
    bad = {
        row["table_name"]: row["count"] for row in rows_of(rejected.groupBy("table_name").count())
    }
    counts = count_rows(checked)
    return {name: RowCounts(count.rows, bad.get(name, 0)) for name, count in counts.items()}


def _brokers(events: DataFrame) -> dict[str, frozenset[str]]:
    named = events.where("broker_name IS NOT NULL").groupBy("cluster")
    names = named.agg(sf.collect_set("broker_name").alias("names"))
    return {row["cluster"]: frozenset(row["names"]) for row in rows_of(names)}


def _task(
    options: ResultsOptions, brokers: Mapping[str, frozenset[str]] | None
) -> Callable[[pa.Table], pa.Table]:
    """The UDF's body: the rows of one client."""

    def rows_of(client: pa.Table) -> pa.Table:
        rows = with_text(SEND_RESULTS, client).to_pylist()
        return pa.Table.from_batches(tagged(replayed_parts([rows], options, brokers)))

    return rows_of

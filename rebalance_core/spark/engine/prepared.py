"""Work units made ready for every table: groups prepared once, and the rows of the replay.

A chunk of units is followed once; what every pass for a table reads is the outcome, pickled. It
holds no offsets: `pull_starts`, which needs them, prepares its own chunks.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from rebalance_core.contracts import LEDGER_TABLES
from rebalance_core.kernels.codes.coded_groups import EngineOptions, read_coded_groups
from rebalance_core.kernels.codes.columns import EVENTS
from rebalance_core.kernels.codes.eligibility import REASONS, REGULAR
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups, prepare_groups
from rebalance_core.replay.group_replay import GroupLedger, rejected_row
from rebalance_core.spark.engine.fan_out import GROUP, TABLE
from rebalance_core.spark.engine.group_rows import event_of, history_of, strategy_for
from rebalance_core.spark.engine.packing import PART, PARTS, chunks, split_units

WITH_OFFSETS = "pull_starts"
REJECTED = "rejected"
REPLAYED = "replayed"
REPLAYED_SCHEMA = pa.schema(
    [("cluster", pa.string()), ("consumer_group", pa.string()), ("reason", pa.string())]
)
WITHOUT_OFFSETS = tuple(name for name in LEDGER_TABLES if name != WITH_OFFSETS)

_CHUNK = pa.schema([("size", pa.int64()), ("chunk", pa.binary())])
_DDL = "size BIGINT, chunk BINARY"
_CODEC = "lz4"


@dataclass(frozen=True, slots=True)
class Prepared:
    """A chunk of units.

    Attributes:
        groups: each with (i, n): it has the i-th of n ranges of its groups' queues.
        rows: by table, what does not come from the kernels; `REPLAYED` has groups and reasons.
    """

    groups: list[tuple[tuple[int, int], PreparedGroups]] = field(default_factory=list)
    rows: dict[str, list[pa.RecordBatch]] = field(default_factory=dict)


def prepared_rows(rows: DataFrame, options: EngineOptions) -> DataFrame:
    """The rows, whose units stand together in each task, as a frame of `Prepared` chunks."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for chunk in chunks(batches):
            plain = pickle.dumps(prepare(chunk, options, WITHOUT_OFFSETS), pickle.HIGHEST_PROTOCOL)
            kept = pa.compress(plain, _CODEC, asbytes=True)
            yield pa.RecordBatch.from_arrays(
                [pa.array([len(plain)]), pa.array([kept])], schema=_CHUNK
            )

    return rows.mapInArrow(run, _DDL)


def prepared_chunks(batches: Iterable[pa.RecordBatch]) -> Iterator[Prepared]:
    """The chunks of `prepared`."""
    for batch in batches:
        for size, chunk in zip(batch.column(0).to_pylist(), batch.column(1), strict=True):
            yield pickle.loads(pa.decompress(chunk.as_buffer(), size, _CODEC))


def prepare(chunk: pa.Table, options: EngineOptions, tables: Iterable[str]) -> Prepared:
    """Follow the events of a chunk of units: groups in one part together, giants' parts alone.

    Args:
        chunk: rows of `fan_out` with ``_part`` and ``_parts``.
        options: see `EngineOptions`.
        tables: those that rows of the replay are wanted of.
    """
    tables = tuple(tables)
    alone = pc.greater(chunk[PARTS], 1)
    made = Prepared()
    _prepare_unit(made, chunk.filter(pc.invert(alone)), (0, 1), options, tables)
    for unit in split_units(chunk.filter(alone)):
        part = (unit[PART][0].as_py(), unit[PARTS][0].as_py())
        _prepare_unit(made, unit, part, options, tables)
    return made


def _prepare_unit(
    made: Prepared,
    rows: pa.Table,
    part: tuple[int, int],
    options: EngineOptions,
    tables: tuple[str, ...],
) -> None:
    if not rows.num_rows:
        return
    prepared = prepare_groups(read_coded_groups(rows, options, strategy_for, table_column=TABLE))
    made.groups.append((part, prepared))
    if part[0]:
        return  # what is not by queue comes with the first part
    made.rows.setdefault(REPLAYED, []).append(_replayed(prepared))
    if REJECTED in tables:
        made.rows.setdefault(REJECTED, []).append(_unknown_members(prepared, rows))
    for ledger in _ledgers(prepared, rows, options):
        for table in tables:
            batch = pa.RecordBatch.from_pylist(
                ledger.rows(table), LEDGER_TABLES[table].arrow_schema()
            )
            made.rows.setdefault(table, []).append(batch)


def _ledgers(
    prepared: PreparedGroups, rows: pa.Table, options: EngineOptions
) -> Iterator[GroupLedger]:
    """The groups that the kernels do not take, one after the other."""
    left = np.flatnonzero(prepared.reason != REGULAR)
    if not len(left):
        return
    names = prepared.coded.names
    wanted = {(names.clusters[g].as_py(), names.groups[g].as_py()) for g in left.tolist()}
    for unit in split_units(rows):
        if (unit[GROUP[0]][0].as_py(), unit[GROUP[1]][0].as_py()) in wanted:
            yield GroupLedger(
                history_of(
                    unit,
                    queue_offsets_given=options.queue_offsets_given,
                    committed_offsets_given=options.committed_offsets_given,
                ),
                strategy_for,
                include_retry_topics=options.include_retry_topics,
                strategy_override=options.strategy_override,
            )


def _replayed(prepared: PreparedGroups) -> pa.RecordBatch:
    left = np.flatnonzero(prepared.reason != REGULAR)
    names, codes = prepared.coded.names, list(REASONS)
    reasons = [codes[reason] for reason in prepared.reason[left].tolist()]
    return pa.RecordBatch.from_arrays(
        [
            names.clusters.take(pa.array(left)),
            names.groups.take(pa.array(left)),
            pa.array(reasons, pa.string()),
        ],
        schema=REPLAYED_SCHEMA,
    )


def _unknown_members(prepared: PreparedGroups, rows: pa.Table) -> pa.RecordBatch:
    """The events of regular groups that name a process which is not there."""
    events = prepared.coded.events
    unknown = prepared.membership.unknown
    unknown = unknown[prepared.reason[events.group[unknown]] == REGULAR]
    given = rows.filter(pc.equal(rows[TABLE], EVENTS)).take(pa.array(events.row[unknown]))
    rejected = [rejected_row(event_of(row)) for row in given.to_pylist()]
    return pa.RecordBatch.from_pylist(rejected, LEDGER_TABLES[REJECTED].arrow_schema())

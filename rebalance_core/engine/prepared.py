"""Groups made ready for every table: prepared once, and the rows of the replay."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.checks.conform import with_text
from rebalance_core.contracts import INPUT_TABLES, LEDGER_TABLES, Table
from rebalance_core.contracts.table import columns
from rebalance_core.engine.group_history import event_of, history_of, strategy_for
from rebalance_core.engine.units import GROUP
from rebalance_core.kernels.codes.coded_groups import EngineOptions, read_coded_groups
from rebalance_core.kernels.codes.codes import EVENTS
from rebalance_core.kernels.codes.group_rows import REASONS, REGULAR
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups, prepare_groups
from rebalance_core.replay.group_replay import GroupLedger, rejected_row

REJECTED = "rejected"
REPLAYED = Table(
    "replayed",
    "A group that the replay took instead of the kernels.",
    columns(
        """
        cluster STRING its cluster
        consumer_group STRING its name
        reason STRING why
        """
    ),
)


@dataclass(frozen=True, slots=True)
class Prepared:
    """Some groups, or a part of one.

    Attributes:
        part: (i, n): the i-th of n ranges of their queues.
        groups: What the kernels make rows of.
        rows: By table, what does not come from the kernels; `REPLAYED` has groups and reasons.
    """

    part: tuple[int, int]
    groups: PreparedGroups
    rows: dict[str, list[pa.RecordBatch]] = field(default_factory=dict)


def prepare_tables(
    tables: Mapping[str, pa.Table],
    options: EngineOptions,
    wanted: Iterable[str],
    part: tuple[int, int] = (0, 1),
) -> Prepared:
    """Follow the events of groups.

    Args:
        tables: The rows of the groups, by table.
        options: See `EngineOptions`.
        wanted: Tables that rows of the replay are wanted of.
        part: The range of their queues.
    """
    wanted = tuple(wanted)
    prepared = prepare_groups(read_coded_groups(tables, options, strategy_for))
    made = Prepared(part, prepared)
    if part[0]:
        return made  # what is not by queue comes with the first part
    made.rows[REPLAYED.name] = [_replayed(prepared)]
    if REJECTED in wanted:
        made.rows[REJECTED] = [_unknown_members(prepared, tables[EVENTS])]
    for ledger in _ledgers(prepared, tables, options):
        for table in wanted:
            batch = pa.RecordBatch.from_pylist(
                ledger.rows(table), LEDGER_TABLES[table].arrow_schema()
            )
            made.rows.setdefault(table, []).append(batch)
    return made


def _ledgers(
    prepared: PreparedGroups, tables: Mapping[str, pa.Table], options: EngineOptions
) -> Iterator[GroupLedger]:
    """The groups that the kernels do not take, one after the other."""
    names = prepared.coded.names
    for group in np.flatnonzero(prepared.reason != REGULAR).tolist():
        rows = _rows_of(tables, names.clusters[group], names.groups[group])
        yield GroupLedger(
            history_of(
                rows,
                queue_offsets_given=options.queue_offsets_given,
                committed_offsets_given=options.committed_offsets_given,
            ),
            strategy_for,
            include_retry_topics=options.include_retry_topics,
            strategy_override=options.strategy_override,
        )


def _rows_of(
    tables: Mapping[str, pa.Table], cluster: pa.Scalar, group: pa.Scalar
) -> dict[str, pa.Table]:
    """The rows of one group."""
    keys = zip(GROUP, (cluster, group), strict=True)
    wanted = reduce(operator.and_, (pc.field(column) == value for column, value in keys))
    return {name: table.filter(wanted) for name, table in tables.items()}


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
        schema=REPLAYED.arrow_schema(),
    )


def _unknown_members(prepared: PreparedGroups, rows: pa.Table) -> pa.RecordBatch:
    """The events of regular groups that name a process which is not there."""
    events = prepared.coded.events
    unknown = prepared.membership.unknown
    unknown = unknown[prepared.reason[events.group[unknown]] == REGULAR]
    given = with_text(INPUT_TABLES[EVENTS], rows.take(pa.array(events.row[unknown])))
    rejected = [rejected_row(event_of(row)) for row in given.to_pylist()]
    return pa.RecordBatch.from_pylist(rejected, LEDGER_TABLES[REJECTED].arrow_schema())

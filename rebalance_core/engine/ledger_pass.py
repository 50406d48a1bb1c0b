"""Yields the rows of every ledger table for a set of groups, computing owners only once."""

import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Generic, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.checks.conform import with_text
from rebalance_core.checks.opening_state import is_of_state
from rebalance_core.contracts import INPUT_TABLES, LEDGER_TABLES, SIMULATED_TABLES
from rebalance_core.engine.fan_out import (
    GROUP,
    ROWS_PER_CHUNK,
    GroupedRows,
    OffsetsByTopic,
    fan_out,
    joining,
    with_empty_events_if_missing,
    without_quiet_groups,
)
from rebalance_core.engine.group_history import event_of, history_of, strategy_for
from rebalance_core.engine.options import REFERENCE, SimulationOptions, group_pattern
from rebalance_core.engine.replayed import REPLAYED
from rebalance_core.engine.sharing_groups import Group, groups_sharing_with, joins_of
from rebalance_core.kernels.cell_holders import Piece
from rebalance_core.kernels.encoded_groups import read_encoded_groups
from rebalance_core.kernels.engine_options import EngineOptions
from rebalance_core.kernels.group_kinds import REASONS, REGULAR
from rebalance_core.kernels.ledger import ledger_rows
from rebalance_core.kernels.ownership.changes import OwnerChanges
from rebalance_core.kernels.ownership.holdings import Holdings
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups, prepare_groups
from rebalance_core.kernels.queue_parts import WHOLE, Part, part_of, turns_of
from rebalance_core.kernels.shared_loads import sharing_of
from rebalance_core.kernels.table_columns import EVENTS, OFFSETS
from rebalance_core.replay.group_replay import GroupLedger, rejected_row
from rebalance_core.replay.history import GroupHistory


@dataclass(frozen=True, eq=False)
class HistoriesOfSharedInstances:
    """The histories of groups and of the groups that share their client instances.

    Attributes:
        rows: the rows of the selected groups and of all groups that share their instances.
        sharing_groups: the groups that share instances with each, from `groups_sharing_with`.
        options: the options for `history_of`.
    """

    rows: GroupedRows
    sharing_groups: Mapping[Group, Sequence[Group]]
    options: EngineOptions

    @classmethod
    def of_tables(
        cls, tables: Mapping[str, pa.Table], options: EngineOptions, pattern: str | None = None
    ) -> "HistoriesOfSharedInstances":
        """Return the histories in checked tables, limited by a SQL LIKE pattern if no groups share
        instances.
        """
        sharing_groups = groups_sharing_with(joins_of(tables[EVENTS]))
        return cls(fan_out(tables, None if sharing_groups else pattern), sharing_groups, options)

    @cached_property
    def numbers(self) -> dict[Group, int]:
        """The number of each group within the rows."""
        columns = self.rows.clusters, self.rows.groups
        names = zip(*(column.to_pylist() for column in columns), strict=True)
        return {name: number for number, name in enumerate(names)}

    def history(self, group: Group) -> GroupHistory:
        """Return the history of a group, which is rebuilt at each call."""
        sharing_groups = (
            sharing_group
            for sharing_group in self.sharing_groups.get(group, ())
            if sharing_group in self.numbers
        )
        return replace(self._alone(group), sharing_groups=tuple(map(self._alone, sharing_groups)))

    def _alone(self, group: Group) -> GroupHistory:
        number = self.numbers[group]
        return history_of(self.rows.tables_of(number, number + 1), self.options)


MadeT = TypeVar("MadeT")
REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class Prepared:
    """Groups, or a part of one group, prepared for the kernels.

    Attributes:
        part: The part of their queues to compute.
        groups: The input of the kernels.
        rows: Rows that do not come from the kernels, by table; `REPLAYED` has groups and reasons.
    """

    part: Part
    groups: PreparedGroups
    rows: dict[str, list[pa.RecordBatch]] = field(default_factory=dict)


def prepare_tables(
    tables: Mapping[str, pa.Table],
    options: EngineOptions,
    wanted: Iterable[str],
    part: Part = WHOLE,
) -> Prepared:
    """Prepare groups for the kernels, and compute the rows that do not come from the kernels.

    Args:
        tables: The rows of the groups, by table.
        options: See `EngineOptions`.
        wanted: The tables that the replay computes.
        part: The part of their queues to compute.
    """
    wanted = tuple(wanted)
    prepared = prepare_groups(read_encoded_groups(tables, options, strategy_for))
    made = Prepared(part, prepared)
    if part.number == 0:  # rows without a queue come with the first part
        made.rows[REPLAYED.name] = [_replayed(prepared)]
        if REJECTED in wanted:
            made.rows[REJECTED] = [_unknown_members(prepared, tables[EVENTS])]
    else:
        wanted = tuple(name for name in wanted if name in BY_QUEUE)
    for ledger in _ledgers(prepared, tables, options):
        for table in wanted:
            batch = pa.RecordBatch.from_pylist(
                ledger.rows(table), LEDGER_TABLES[table].arrow_schema()
            )
            if part != WHOLE and table in BY_QUEUE:
                batch = _of_part(batch, part)
            made.rows.setdefault(table, []).append(batch)
    return made


def _of_part(rows: pa.RecordBatch, part: Part) -> pa.RecordBatch:
    """Return the rows about the queues in a part; its task lacks the commits of other queues."""
    turn = turns_of(rows["topic"], rows["broker_name"])
    queue_id = rows["queue_id"].to_numpy().astype(np.int64)
    return rows.filter(pa.array(part_of(turn, queue_id, part.parts, part.block) == part.number))


def _ledgers(
    prepared: PreparedGroups, tables: Mapping[str, pa.Table], options: EngineOptions
) -> Iterator[GroupLedger]:
    """Yield the replay's ledger of each group that the kernels cannot process."""
    names = prepared.encoded.names
    for group in np.flatnonzero(prepared.reason != REGULAR).tolist():
        rows = _rows_of(tables, names.clusters[group], names.groups[group])
        yield GroupLedger(
            history_of(rows, options),
            strategy_for,
            include_retry_topics=options.include_retry_topics,
            strategy_override=options.strategy_override,
        )


def _rows_of(
    tables: Mapping[str, pa.Table], cluster: pa.Scalar, group: pa.Scalar
) -> dict[str, pa.Table]:
    """Return the rows of one group."""
    keys = zip(GROUP, (cluster, group), strict=True)
    wanted = reduce(operator.and_, (pc.field(column) == value for column, value in keys))
    shared = OFFSETS in tables and "consumer_group" not in tables[OFFSETS].column_names
    of_group = {
        name: table.filter(wanted)
        for name, table in tables.items()
        if name != OFFSETS or not shared
    }
    if shared:
        of_group[OFFSETS] = OffsetsByTopic(tables[OFFSETS]).of(of_group)
    return of_group


def _replayed(prepared: PreparedGroups) -> pa.RecordBatch:
    left = np.flatnonzero(prepared.reason != REGULAR)
    names, codes = prepared.encoded.names, list(REASONS)
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
    """Return the rows of ``rejected`` for events of regular groups about a process that does not
    exist.
    """
    events = prepared.encoded.events
    unknown = prepared.membership.unknown
    unknown = unknown[prepared.reason[events.group[unknown]] == REGULAR]
    event_rows = with_text(INPUT_TABLES[EVENTS], rows.take(pa.array(events.row[unknown])))
    rejected = [rejected_row(event_of(row)) for row in event_rows.to_pylist()]
    return pa.RecordBatch.from_pylist(rejected, LEDGER_TABLES[REJECTED].arrow_schema())


LedgerRows = Iterator[tuple[str, pa.RecordBatch]]
"""Batches of rows, each with the name of its table."""

BY_QUEUE = ("ownership", "diffs", "pull_starts", "pop_starts")
"""Tables with one row per queue; each part of a giant group yields its own rows."""
MOST_KEPT_CELLS = 1 << 21
"""With more cells than this, owners are recomputed for each table because, at 8 or more bytes per
cell, they would not fit into memory alongside the rows.
"""
CELLS_PER_CHANGE = 8
"""The memory used by a row of `OwnerChanges`, in cells of 8 bytes (58 bytes, rounded up)."""
REFERENCE_REASON = "REFERENCE"


def ledger_pass(
    tables: Mapping[str, pa.Table], options: EngineOptions, *, names_encoded: bool = False
) -> LedgerRows:
    """Yield the rows of all ledger tables, and of `REPLAYED`, for whole groups.

    Args:
        tables: the rows of the groups by input table, each with its group's name.
        options: see `EngineOptions`.
        names_encoded: see `rows_of`.
    """
    yield from rows_of(prepare_tables(tables, options, LEDGER_TABLES), names_encoded=names_encoded)


def rows_of(
    made: Prepared, wanted: Collection[str] = SIMULATED_TABLES, *, names_encoded: bool = False
) -> LedgerRows:
    """Yield the rows of all ledger tables, and of `REPLAYED`; ``epochs`` come first.

    Args:
        made: prepared groups, with the replay's rows of every ledger table. Rows without a queue
            come with the first part of a group.
        wanted: the tables that the kernels compute.
        names_encoded: whether rows from the kernels have encoded names, as `kernels.ledger`
            describes; rows from the replay never do.
    """
    kept = _CachedHoldings if len(wanted) > 1 else Holdings
    part, prepared = made.part, made.groups
    holdings = kept(prepared, WHOLE) if part.number == 0 else None
    sharing = sharing_of(prepared)
    of_part = holdings if part == WHOLE and holdings else kept(prepared, part)
    for name in SIMULATED_TABLES:
        if name not in wanted:
            continue
        of_table = of_part if name in BY_QUEUE else holdings
        if of_table:
            for rows in ledger_rows(name, prepared, of_table, sharing, names_encoded=names_encoded):
                yield name, rows
    for name in (*LEDGER_TABLES, REPLAYED.name):
        for rows in made.rows.get(name, ()):
            yield name, rows


def reference_pass(
    tables: Mapping[str, pa.Table],
    options: EngineOptions,
    wanted: Iterable[str] = LEDGER_TABLES,
) -> LedgerRows:
    """Run `ledger_pass` for one group with the replay only."""
    history = history_of(tables, options)
    ledger = GroupLedger(
        history,
        strategy_for,
        include_retry_topics=options.include_retry_topics,
        strategy_override=options.strategy_override,
    )
    for name in wanted:
        schema = LEDGER_TABLES[name].arrow_schema()
        yield name, pa.RecordBatch.from_pylist(ledger.rows(name), schema)
    replayed = [[history.cluster], [history.consumer_group], [REFERENCE_REASON]]
    yield REPLAYED.name, pa.RecordBatch.from_arrays(replayed, schema=REPLAYED.arrow_schema())


class _CachedHoldings(Holdings):
    """`Holdings` that keep their pieces and changes for the next table, unless there are too
    many.
    """

    def __init__(self, prepared: PreparedGroups, part: Part) -> None:
        super().__init__(prepared, part)
        self._pieces = _Kept[Piece](MOST_KEPT_CELLS)
        self._changed = _Kept[tuple[Piece, OwnerChanges]](MOST_KEPT_CELLS)

    def pieces(self) -> Iterator[Piece]:
        """Yield the pieces, as `Holdings.pieces` does."""
        return self._pieces.all(super().pieces, lambda piece: len(piece.cells))

    def changed_pieces(self) -> Iterator[tuple[Piece, OwnerChanges]]:
        """Yield the pieces and changes, as `Holdings.changed_pieces` does."""
        return self._changed.all(super().changed_pieces, _size)


def _size(changed: tuple[Piece, OwnerChanges]) -> int:
    piece, changes = changed
    return len(piece.cells) + CELLS_PER_CHANGE * len(changes.cell)


class _Kept(Generic[MadeT]):
    """The results of an iteration, kept for the next one if they are small enough.

    Args:
        most: The maximum total size to keep.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: list[MadeT] | None = None

    def all(
        self, make: Callable[[], Iterator[MadeT]], size: Callable[[MadeT], int]
    ) -> Iterator[MadeT]:
        """Yield the kept results or, without any, those of ``make``."""
        if self._kept is not None:
            yield from self._kept
            return
        kept: list[MadeT] = []
        total = 0
        for made in make():
            total += size(made)
            if total <= self._most:
                kept.append(made)
            else:
                kept.clear()
            yield made
        if total <= self._most:
            self._kept = kept


# The rows of a ledger that overlap [from_ms, to_ms) and begin after the opening state; metrics
# follow their epochs.
_OF_EPOCHS = ("group_metrics", "pop_metrics")
"""Tables whose rows follow those of their epoch."""
_WITHOUT_TIMES = "queue_states"
"""The table whose intervals have epochs but no times."""
_EPOCH = (*GROUP, "epoch")


def within(
    rows: LedgerRows, options: SimulationOptions, state_end_ms: int | None = None
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield the rows of a `ledger_pass` that lie in the time range, in order.

    Args:
        rows: rows in which the epochs of a group precede its metrics.
        options: ``from_ms`` and ``to_ms`` give the range; None means unbounded.
        state_end_ms: the end of the opening state, which already contains the rows that begin
            before it; None without an opening state.
    """
    if options.from_ms is None and options.to_ms is None and state_end_ms is None:
        yield from rows
        return
    epochs: list[pa.Table] = []
    for name, batch in rows:
        table = pa.Table.from_batches([batch])
        if name in _OF_EPOCHS:
            table = _of_epochs(table, epochs)
        elif name == _WITHOUT_TIMES:
            table = _meeting_epochs(table, epochs)
            if state_end_ms is not None:
                table = _beginning_in(table, epochs)
        elif name in SIMULATED_TABLES:
            table = table.filter(_touches(name, options) & _begins(name, state_end_ms))
        elif name == REJECTED and state_end_ms is not None:
            table = table.filter(pa.array(~is_of_state(table, "source")))
        if name == "epochs":
            epochs.append(table.select(_EPOCH))
        for kept in table.to_batches():
            yield name, kept


def _of_epochs(metrics: pa.Table, epochs: list[pa.Table]) -> pa.Table:
    """Return the metrics of these epochs."""
    return joining(metrics, pa.concat_tables(epochs))


def _meeting_epochs(intervals: pa.Table, epochs: list[pa.Table]) -> pa.Table:
    """Return the intervals that contain any of these epochs; the intervals of a group are
    contiguous.
    """
    shown = (
        pa.concat_tables(epochs)
        .group_by(list(GROUP))
        .aggregate([("epoch", "min"), ("epoch", "max")])
    )
    numbers = pa.array(
        range(intervals.num_rows), pa.int64()
    )  # without rows, pyarrow cannot infer the type
    spans = intervals.select([*GROUP, "from_epoch", "to_epoch"]).append_column("_row", numbers)
    met = spans.join(shown, keys=list(GROUP), join_type="inner").filter(
        (pc.field("from_epoch") <= pc.field("epoch_max"))
        & (pc.field("to_epoch").is_null() | (pc.field("to_epoch") > pc.field("epoch_min")))
    )
    return intervals.take(met["_row"].combine_chunks().sort())


def _beginning_in(intervals: pa.Table, epochs: list[pa.Table]) -> pa.Table:
    """Return the intervals that begin with one of these epochs."""
    first = pa.concat_tables(epochs).rename_columns([*GROUP, "from_epoch"])
    return joining(intervals, first)


def _begins(name: str, state_end_ms: int | None) -> pc.Expression:
    """Return the filter for rows that begin after the opening state."""
    columns = SIMULATED_TABLES[name].column_names
    start = pc.field("from_ms" if "from_ms" in columns else "change_ms")
    return pc.scalar(True) if state_end_ms is None else start >= state_end_ms


def _touches(name: str, options: SimulationOptions) -> pc.Expression:
    columns = SIMULATED_TABLES[name].column_names
    if "from_ms" in columns:
        start, end = pc.field("from_ms"), pc.field("to_ms")
    else:
        start, end = pc.field("change_ms"), pc.field("change_ms") + 1
    touches = pc.scalar(True)
    if options.from_ms is not None:
        touches &= end.is_null() | (end > options.from_ms)
    if options.to_ms is not None:
        touches &= start < options.to_ms
    return touches


Giants = Mapping[tuple[str, str], list[Part]]
"""The parts of divided groups that a bucket computes, by cluster and group."""


def bucket_pass(
    tables: Mapping[str, pa.Table],
    giants: Giants,
    engine: EngineOptions,
    options: SimulationOptions,
    *,
    names_encoded: bool = True,
    state_end_ms: int | None = None,
    progress: Callable[[int, int], object] | None = None,
    wanted: Sequence[str] = tuple(LEDGER_TABLES),
) -> LedgerRows:
    """Yield the rows of ledger tables for a bucket, a few groups at a time.

    Args:
        tables: The rows that `routing.Routing.split` assigned to the bucket; a table without rows
            may be missing.
        giants: The groups of which this bucket computes a part.
        engine: See `EngineOptions`.
        options: The simulation's options.
        names_encoded: See `rows_of`; suits a `TableWriter`.
        state_end_ms: As in `within`; groups without a later event have no later rows.
        progress: Called with the number of finished groups and the total number of groups.
        wanted: The tables, in the contract's order; they must include ``epochs`` if times are
            bounded.
    """
    of_groups: Mapping[str, pa.Table] = {n: t for n, t in tables.items() if n != OFFSETS}
    offsets = OffsetsByTopic(tables[OFFSETS]) if OFFSETS in tables else None
    of_groups = with_empty_events_if_missing(of_groups)
    if state_end_ms is not None:
        of_groups = without_quiet_groups(of_groups, state_end_ms)
    grouped = fan_out(of_groups, group_pattern(options))
    if state_end_ms is not None:
        grouped = grouped.with_events_since(state_end_ms)
    alone = options.engine == REFERENCE
    whole = ((begin, end, WHOLE) for begin, end in grouped.chunks(1))
    for begin, end, part in whole if alone else _pieces(grouped, giants):
        rows = grouped.tables_of(begin, end)
        if offsets is not None:
            rows[OFFSETS] = offsets.of(rows)
        if alone:
            made = reference_pass(rows, engine, wanted)
        else:
            prepared = prepare_tables(rows, engine, wanted, part)
            made = rows_of(prepared, wanted, names_encoded=names_encoded)
        yield from within(made, options, state_end_ms)
        if progress is not None:
            progress(end, len(grouped))


def _pieces(grouped: GroupedRows, giants: Giants) -> Iterator[tuple[int, int, Part]]:
    """Yield (first group, end, part) for ranges of whole groups and parts of divided groups."""
    names = zip(grouped.clusters.to_pylist(), grouped.groups.to_pylist(), strict=True)
    divided = {n: giants[name] for n, name in enumerate(names) if name in giants} if giants else {}
    for begin, end in grouped.chunks(ROWS_PER_CHUNK):
        for number in [n for n in divided if begin <= n < end]:
            if begin < number:
                yield begin, number, WHOLE
            for part in divided[number]:
                yield number, number + 1, part
            begin = number + 1
        if begin < end:
            yield begin, end, WHOLE

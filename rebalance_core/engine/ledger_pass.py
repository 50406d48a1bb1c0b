"""One pass over some groups: the rows of every ledger table, owners worked out once."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import pyarrow as pa

from rebalance_core.contracts import LEDGER_TABLES, SIMULATED_TABLES
from rebalance_core.engine.group_history import history_of, strategy_for
from rebalance_core.engine.prepared import REPLAYED, Prepared, prepare_tables
from rebalance_core.kernels.cells import Piece
from rebalance_core.kernels.codes.coded_groups import EngineOptions
from rebalance_core.kernels.ownership.holdings import Holdings
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups
from rebalance_core.kernels.tables.ledger import ledger_rows
from rebalance_core.kernels.tables.loads import sharing_of
from rebalance_core.replay.group_replay import replay_group

Rows = Iterator[tuple[str, pa.RecordBatch]]
"""Name of a table and rows of it."""

BY_QUEUE = ("ownership", "diffs", "pull_starts")
"""Tables with rows of single queues: the parts of a giant group have their own."""
WHOLE = (0, 1)
"""The part that a group in one part is."""
MOST_KEPT_CELLS = 1 << 21
"""Owners of more cells are worked out anew for each table: at 8 bytes and more a cell they would
not fit beside the rows."""
REFERENCE_REASON = "REFERENCE"


def ledger_pass(
    tables: Mapping[str, pa.Table], options: EngineOptions, *, names_coded: bool = False
) -> Rows:
    """Rows of all ledger tables, and of `REPLAYED`, for whole groups.

    Args:
        tables: the rows of the groups by input table, each with its group's name.
        options: see `EngineOptions`.
        names_coded: see `rows_of`.
    """
    yield from rows_of(prepare_tables(tables, options, LEDGER_TABLES), names_coded=names_coded)


def rows_of(
    made: Prepared, wanted: Collection[str] = SIMULATED_TABLES, *, names_coded: bool = False
) -> Rows:
    """Rows of all ledger tables, and of `REPLAYED`; ``epochs`` come first.

    Args:
        made: groups with the rows of the replay of every ledger table. What is not by queue comes
            with the first part of a group.
        wanted: the tables that rows of the kernels are wanted of.
        names_coded: rows of the kernels have coded names, as `kernels.tables.ledger` says; those of
            the replay never do.
    """
    kept = _HoldingsOnce if len(wanted) > 1 else Holdings
    part, prepared = made.part, made.groups
    holdings = kept(prepared, WHOLE) if part[0] == 0 else None
    sharing = sharing_of(prepared)
    of_part = holdings if part == WHOLE and holdings else kept(prepared, part)
    for name in SIMULATED_TABLES:
        if name not in wanted:
            continue
        of_table = of_part if name in BY_QUEUE else holdings
        if of_table:
            for rows in ledger_rows(name, prepared, of_table, sharing, names_coded=names_coded):
                yield name, rows
    for name in (*LEDGER_TABLES, REPLAYED.name):
        for rows in made.rows.get(name, ()):
            yield name, rows


def reference_pass(tables: Mapping[str, pa.Table], options: EngineOptions) -> Rows:
    """`ledger_pass` of one group by the replay alone."""
    history = history_of(
        tables,
        queue_offsets_given=options.queue_offsets_given,
        committed_offsets_given=options.committed_offsets_given,
    )
    ledger = replay_group(
        history,
        strategy_for,
        include_retry_topics=options.include_retry_topics,
        strategy_override=options.strategy_override,
    )
    for name, table in LEDGER_TABLES.items():
        yield name, pa.RecordBatch.from_pylist(ledger.get(name, []), table.arrow_schema())
    replayed = [[history.cluster], [history.consumer_group], [REFERENCE_REASON]]
    yield REPLAYED.name, pa.RecordBatch.from_arrays(replayed, schema=REPLAYED.arrow_schema())


class _HoldingsOnce(Holdings):
    """Holdings whose pieces are kept while they are few."""

    def __init__(self, prepared: PreparedGroups, part: tuple[int, int]) -> None:
        super().__init__(prepared, part)
        self._kept: list[Piece] | None = None

    def pieces(self) -> Iterator[Piece]:
        """As `Holdings.pieces`."""
        if self._kept is not None:
            yield from self._kept
            return
        kept: list[Piece] = []
        cells = 0
        for piece in super().pieces():
            cells += len(piece.cells)
            if cells <= MOST_KEPT_CELLS:
                kept.append(piece)
            else:
                kept.clear()
            yield piece
        if cells <= MOST_KEPT_CELLS:
            self._kept = kept

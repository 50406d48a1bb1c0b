"""Pieces and changes are made once for all tables, or for each table if there are too many."""

from collections import Counter
from collections.abc import Iterator

import pyarrow as pa
import pytest

from rebalance_core.engine import ledger_pass
from rebalance_core.engine.ledger_pass import Prepared, rows_of
from rebalance_core.kernels.cell_holders import Piece
from rebalance_core.kernels.ownership.changes import Differ, OwnerChanges
from rebalance_core.kernels.ownership.holdings import Holdings
from rebalance_core.kernels.queue_parts import WHOLE
from tests.unit.kernels.fleets import build
from tests.unit.replay.histories import history, join, leave, topic

TABLES = ("epochs", "diffs", "pull_starts", "consumer_load", "group_metrics")


def found(most: int, made: Counter[str], monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """The rows by table, and in ``made`` how often pieces and changes were made."""

    def pieces(self: Holdings) -> Iterator[Piece]:
        made["pieces"] += 1
        yield from of_holdings(self)

    def changes(self: Differ, piece: Piece) -> OwnerChanges:
        made["changes"] += 1
        return of_piece(self, piece)

    of_holdings, of_piece = Holdings.pieces, Differ.changes
    events = [topic(0, 5), join(1, "a"), join(2, "b"), leave(3, "a"), join(4, "c")]
    prepared = build([history(*events)])
    with monkeypatch.context() as patched:
        patched.setattr(ledger_pass, "MOST_KEPT_CELLS", most)
        patched.setattr(Holdings, "pieces", pieces)
        patched.setattr(Differ, "changes", changes)
        rows: dict[str, list[str]] = {}
        for table, batch in rows_of(Prepared(WHOLE, prepared), TABLES):
            rows.setdefault(table, []).extend(map(str, pa.Table.from_batches([batch]).to_pylist()))
    return rows


def test_rows_do_not_depend_on_what_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    once, pieces, none = Counter[str](), Counter[str](), Counter[str]()
    kept = found(1 << 21, once, monkeypatch)
    # 20 cells and 20 changes: the first fit, both do not
    assert found(30, pieces, monkeypatch) == found(1, none, monkeypatch) == kept
    assert kept["diffs"]
    assert once == {"pieces": 1, "changes": 1}
    assert pieces == {"pieces": 1, "changes": 3}
    assert none == {"pieces": 5, "changes": 3}

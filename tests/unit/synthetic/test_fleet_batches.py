"""Arrow batches of a fleet: the rows of the entities, whatever the size of the batches."""

import pytest

from rebalance_core.contracts import INPUT_TABLES
from rebalance_core.synthetic.fleet import FleetPlan
from rebalance_core.synthetic.fleet_batches import arrow_batch, arrow_batches
from rebalance_core.synthetic.table_parts import PARTS

ARROW_PLAN = FleetPlan(40, 1, 11, groups_per_cluster=20)


@pytest.mark.parametrize("name", PARTS)
def test_chunks_of_any_size_hold_the_same_rows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = INPUT_TABLES[name]
    for part in PARTS[name]:
        entities = range(part.entities(ARROW_PLAN))
        whole = [
            row
            for b in arrow_batches(ARROW_PLAN, table, part, iter(entities))
            for row in b.to_pylist()
        ]
        monkeypatch.setattr("rebalance_core.synthetic.fleet_batches.ROWS_PER_BATCH", 1)
        small = list(arrow_batches(ARROW_PLAN, table, part, iter(entities)))
        monkeypatch.undo()
        pieces = [piece for number in entities for piece in part.rows(ARROW_PLAN, number)]
        assert len(small) == sum(arrow_batch(table, piece).num_rows > 0 for piece in pieces)
        assert all(batch.num_rows for batch in small)
        assert [row for batch in small for row in batch.to_pylist()] == whole


def test_an_entity_without_rows_is_an_empty_batch_of_all_columns() -> None:
    table = INPUT_TABLES["committed_offsets"]
    no_rows, no_columns = arrow_batch(table, []), arrow_batch(table, {})
    for batch in (no_rows, no_columns):
        assert (batch.num_rows, tuple(batch.schema.names)) == (0, table.column_names)

"""Columns that follow from others of their row are the same by row and by Arrow array."""

import pickle
from typing import Any

import pyarrow as pa
import pytest

from rebalance_core.contracts import ALL_TABLES
from rebalance_core.contracts.derived import Derived, none_of, ratio
from rebalance_core.contracts.table import Column, Table, arrow_type, columns

COUNTS = (None, 0, 1, 2, 7)
DERIVED = [
    (table, column)
    for table in ALL_TABLES.values()
    for column in table.columns
    if column.derived is not None
]


@pytest.mark.parametrize(("table", "column"), DERIVED, ids=lambda one: str(one.name))
def test_both_engines_make_the_same(table: Table, column: Column) -> None:
    assert column.derived is not None
    inputs = [table.column(name) for name in column.derived.of]
    choices = [COUNTS if one.nullable else COUNTS[1:] for one in inputs]
    rows: list[tuple[Any, ...]] = [()]
    for choice in choices:
        rows = [(*row, value) for row in rows for value in choice]
    arrays = [
        pa.array(list(values), arrow_type(one.type))
        for one, values in zip(inputs, zip(*rows, strict=True), strict=True)
    ]
    made = column.derived.array(*arrays)
    assert made.type == arrow_type(column.type)
    assert made.to_pylist() == [column.derived.value(*row) for row in rows]


def test_declarations_travel_to_tasks() -> None:
    assert pickle.loads(pickle.dumps(ALL_TABLES)) == ALL_TABLES


def test_there_are_some() -> None:
    assert {f"{table.name}.{column.name}" for table, column in DERIVED} >= {
        "consumer_load.idle",
        "group_metrics.amplification",
    }


def test_a_row_gets_what_follows_from_it() -> None:
    table = Table("t", "", columns("a INT a\nb? INT b\nc? DOUBLE a / b", {"c": ratio("a", "b")}))
    assert table.with_derived({"a": 3, "b": 2}) == {"a": 3, "b": 2, "c": 1.5}
    assert table.with_derived({"a": 3, "b": None})["c"] is None


def test_a_column_of_no_table_is_refused() -> None:
    with pytest.raises(ValueError, match="'d' derives from 'b', which is no column"):
        Table("t", "", columns("a INT a\nd BOOLEAN d", {"d": none_of("a", "b")}))
    with pytest.raises(ValueError, match="'e' is no column"):
        columns("a INT a", {"e": Derived(("a",), bool, bool)})

"""Rows of dicts to Arrow and back."""

from typing import Any

from rebalance_core.contracts import OBSERVED_TABLES, REJECTED
from rebalance_core.contracts.observed import OBSERVED_FACTS
from rebalance_core.contracts.rows import ObservedFactsRow, RejectedRow
from rebalance_core.contracts.table import batch_of_columns, batch_of_rows, rows_of_arrow


def test_rows_come_back_with_all_columns() -> None:
    rows: list[dict[str, Any]] = [
        {"kind": "DUMP", "details": {"command": "x"}, "times": 1},
        {"details": {}},
        {},
    ]
    back: list[dict[str, object]] = rows_of_arrow(batch_of_rows(OBSERVED_FACTS, rows))
    whole = dict.fromkeys(OBSERVED_FACTS.column_names)
    assert back == [whole | row for row in rows]


def test_no_row_has_the_schema_of_the_table() -> None:
    for table in OBSERVED_TABLES.values():
        for batch in (batch_of_rows(table, []), batch_of_columns(table, {})):
            assert batch.num_rows == 0
            assert batch.schema.equals(table.arrow_schema())


def test_half_a_surrogate_pair_is_a_question_mark_as_on_the_jvm() -> None:
    half = "a\ud83db"
    issues = [{"code": half, "message": "\U0001f600"}]
    rows: list[RejectedRow] = rows_of_arrow(
        batch_of_rows(REJECTED, [{"raw": half, "issues": issues}])
    )
    (row,) = rows
    assert (row["raw"], row["issues"]) == ("a?b", [{"code": "a?b", "message": "\U0001f600"}])
    facts: list[ObservedFactsRow] = rows_of_arrow(
        batch_of_rows(OBSERVED_FACTS, [{"details": {half: half}}])
    )
    assert facts[0]["details"] == {"a?b": "a?b"}

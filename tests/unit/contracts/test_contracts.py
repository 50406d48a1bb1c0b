"""Columns, rows to Arrow and back, and the pages about them."""

import re
from pathlib import Path
from typing import Any

import pytest

from rebalance_core.contracts import ALL_TABLES, OBSERVED_TABLES, REJECTED, Table
from rebalance_core.contracts.observed import OBSERVED_FACTS
from rebalance_core.contracts.table import (
    arrow_type,
    batch_of_columns,
    batch_of_rows,
    rows_of_arrow,
)
from rebalance_core.model import group_settings, verdicts
from rebalance_core.model.events import EVENT_TYPES
from rebalance_core.protocol import start_offset
from tests.tree import TREE

# Columns with a fixed set of words take it from the model.

ALLOWED = {
    ("findings", "severity"): verdicts.SEVERITIES,
    ("group_verdicts", "verdict"): tuple(verdicts.VERDICTS),
    ("epochs", "status"): verdicts.EPOCH_STATUSES,
    ("plan_steps", "status"): verdicts.EPOCH_STATUSES,
    ("pull_starts", "status"): verdicts.START_STATUSES,
    ("memberships", "message_model"): group_settings.MESSAGE_MODELS,
    ("consumer_groups", "consumer_type"): group_settings.CONSUMER_TYPES,
    ("consumer_groups", "rebalance_mode"): group_settings.REBALANCE_MODES,
}


@pytest.mark.parametrize(("table", "column"), ALLOWED)
def test_the_allowed_values_are_those_of_the_model(table: str, column: str) -> None:
    assert ALL_TABLES[table].column(column).allowed == ALLOWED[table, column]


def test_the_meaning_names_every_allowed_value() -> None:
    for table, column in (("findings", "severity"), ("group_verdicts", "verdict")):
        declared = ALL_TABLES[table].column(column)
        assert all(word in declared.meaning for word in declared.allowed)


# Rows of dicts to Arrow and back.


def test_rows_come_back_with_all_columns() -> None:
    rows: list[dict[str, Any]] = [
        {"kind": "DUMP", "details": {"command": "x"}, "times": 1},
        {"details": {}},
        {},
    ]
    back = rows_of_arrow(batch_of_rows(OBSERVED_FACTS, rows))
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
    (row,) = rows_of_arrow(batch_of_rows(REJECTED, [{"raw": half, "issues": issues}]))
    assert (row["raw"], row["issues"]) == ("a?b", [{"code": "a?b", "message": "\U0001f600"}])
    (fact,) = rows_of_arrow(batch_of_rows(OBSERVED_FACTS, [{"details": {half: half}}]))
    assert fact["details"] == {"a?b": "a?b"}


# The pages about the contracts say what the code says.

RULES = [
    start_offset.STORED,
    start_offset.LOCAL_STORE,
    start_offset.BROKER_ZERO,
    start_offset.MAX_OFFSET,
    start_offset.FIRST_ZERO,
    start_offset.TIMESTAMP_SEARCH,
    start_offset.RETRY_ZERO,
    start_offset.RETRY_MAX,
    start_offset.QUERY_FAILED,
    start_offset.PULL_ALWAYS_ZERO,
]
README_LINES = 120


@pytest.mark.parametrize("table", ALL_TABLES.values(), ids=lambda table: table.name)
def test_keys_are_columns_and_types_derive(table: Table) -> None:
    assert set(table.key) <= set(table.column_names)
    assert len(set(table.column_names)) == len(table.column_names)
    assert [arrow_type(column.type) for column in table.columns]
    assert table.ddl.count("`") == 2 * len(table.columns)


@pytest.mark.parametrize("word", [*EVENT_TYPES, *RULES])
def test_semantics_names_every_event_type_and_start_rule(word: str) -> None:
    assert f"`{word}`" in (TREE / "docs/semantics.md").read_text()


def test_the_readme_is_short_and_its_links_exist() -> None:
    text = (TREE / "README.md").read_text()
    assert len(text.splitlines()) <= README_LINES
    links = re.findall(r"\]\((?!http)([^)#]+)", text)
    assert len(links) > 3
    assert [link for link in links if not (TREE / link).exists()] == []


@pytest.mark.parametrize("page", sorted((TREE / "docs").glob("*.md")), ids=lambda page: page.name)
def test_links_of_a_page_lead_to_files(page: Path) -> None:
    links = re.findall(r"\]\((?!http)([^)#]+)", page.read_text("utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []

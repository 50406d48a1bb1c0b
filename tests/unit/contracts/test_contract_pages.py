"""The pages about the contracts say what the code says."""

import re
from pathlib import Path

import pytest

from rebalance_core.contracts import ALL_TABLES, Table
from rebalance_core.contracts.table import arrow_type
from rebalance_core.model.events import EVENT_TYPES
from rebalance_core.protocol import start_offset
from tests.tree import TREE

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

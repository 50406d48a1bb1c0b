"""Pages in Chinese: their commands and outputs are those of the English pages."""

import re
from pathlib import Path

import pytest

from rebalance_core.audit.registry import MEANINGS
from tests.docs.pages import blocks_of
from tests.tree import TREE

RULES = TREE / "docs/rules.zh.md"
"""The rules in one sentence each; the English page is generated, and longer."""
PAIRS = [
    (page, page.with_name(page.name.replace(".zh.md", ".md")))
    for page in sorted([*TREE.glob("*.zh.md"), *TREE.glob("docs/*.zh.md")])
    if page != RULES
]
EACH = pytest.mark.parametrize(("chinese", "english"), PAIRS, ids=[one.name for one, _ in PAIRS])


def commands(page: Path) -> list[tuple[str, dict[str, str], list[str]]]:
    """Blocks with their marks; comments and what aligns them left out."""
    return [
        (block.label, block.marks, [re.sub(r"\s+#.*", "", line) for line in block.text.split("\n")])
        for block in blocks_of(page)
    ]


def test_there_are_pages_in_chinese() -> None:
    assert [page.name for page, _ in PAIRS] == [
        "README.zh.md",
        "often-said.zh.md",
        "on-call.zh.md",
        "troubleshooting.zh.md",
        "tutorial.zh.md",
    ]


@EACH
def test_blocks_are_equal_but_for_comments(chinese: Path, english: Path) -> None:
    assert commands(chinese) == commands(english)


@EACH
def test_parts_are_equal_and_pages_linked(chinese: Path, english: Path) -> None:
    texts = [page.read_text("utf-8") for page in (chinese, english)]
    heads, tables = (
        [re.findall(pattern, text, re.MULTILINE) for text in texts]
        for pattern in (r"^(#+) ", r"^\|(?=.*\|$)")
    )
    assert heads[0] == heads[1]
    assert len(tables[0]) == len(tables[1])
    assert f"]({english.name})" in texts[0]
    assert f"]({chinese.name})" in texts[1]
    # links of either lead to the same places, in either language
    links = [re.findall(r"\]\((?!http)([^)]+)", text.replace(".zh.md", ".md")) for text in texts]
    assert set(links[0]) == set(links[1])


def test_each_rule_has_a_row_in_chinese() -> None:
    text = RULES.read_text("utf-8")
    rows = dict(re.findall(r"^\| `([A-Z_]+)` \| (.+) \|$", text, re.MULTILINE))
    assert len(rows) == text.count("\n| `")
    assert [rule_id for rule_id in MEANINGS if rule_id not in rows] == [], f"add rows to {RULES}"
    assert [one for one in rows.values() if not re.search(r"[\u4e00-\u9fff]", one)] == []

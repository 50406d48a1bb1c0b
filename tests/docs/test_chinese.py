"""Pages in Chinese: their commands and outputs are those of the English pages."""

import re
from pathlib import Path

import pytest

from tests.docs.pages import blocks_of
from tests.tree import TREE

PAIRS = [
    (page, page.with_name(page.name.replace(".zh.md", ".md")))
    for page in sorted([*TREE.glob("*.zh.md"), *TREE.glob("docs/*.zh.md")])
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
